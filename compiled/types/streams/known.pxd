cimport cython
from ..core.machine.instructions cimport Program
from ..core.machine.machine cimport Machine
from ..core.machine.value cimport Transcoder
@cython.final
cdef class Run:
    cdef public bint passes
    cdef public Spot here
    cdef public list items, regions
    cdef public Py_ssize_t end, length
@cython.final
cdef class Spot:
    cdef public Spot after, open
    cdef public Known known
    cdef public list leads
    cdef public dict moved, runs, stands
    cdef public str name, text
    cdef public object make, region, running, tool, value, waiting
    cdef public tuple state
    cpdef restore(self, Machine machine, Py_ssize_t position, Transcoder value=*)
    @cython.locals(value=Transcoder)
    cpdef Transcoder begin(self, Machine machine)
    @cython.locals(run=Run, found=Run, here=Spot)
    cpdef Run run(self, str text, Py_ssize_t i, tools)
@cython.final
cdef class Known:
    cdef public dict first, spots
    cdef public Py_ssize_t credits, passed
    cpdef bint looks(self) except -1
    cpdef Spot begin(self, Machine machine)
    @cython.locals(at=Py_ssize_t, floor=Py_ssize_t, kind=int)
    cpdef Spot spot(self, Machine machine, bint begins=*)
    @cython.locals(after=Spot)
    cpdef Spot after(self, Machine machine)
    @cython.locals(later=Machine, moved=Spot)
    cpdef Spot moved(self, Spot spot, Machine machine, bint line)
    @cython.locals(made=list, here=Spot, trial=Machine, run=Run, end=Py_ssize_t, read=Py_ssize_t, begins=bint)
    cpdef Run learn(self, Spot spot, Machine machine, str text, Py_ssize_t position, list items)
cdef bint _begins(Machine machine, Py_ssize_t read) except -1
