cimport cython
from ..core.machine.instructions cimport Program
from ..core.machine.machine cimport Machine
from ..core.machine.value cimport Transcoder
@cython.final
cdef class Run:
    cdef public bint passes, plain
    cdef public Spot here
    cdef public list items, marks, names, regions
    cdef public Py_ssize_t end, length
    cdef public object line
    cdef _split(self, list items)
@cython.final
cdef class Spot:
    cdef public bint over
    cdef public Py_ssize_t far
    cdef public Spot after, moved, origin
    cdef public Known known
    cdef public list leads
    cdef public dict runs, stands, within
    cdef public set once
    cdef public str before, name, text
    cdef public object make, running, tool, value, waiting
    cdef public tuple state
    cpdef stand(self, Machine machine, str text, bint begins)
    cpdef keep(self, Machine machine, str text)
    cpdef restore(self, Machine machine, Py_ssize_t position, Transcoder value=*)
    cpdef Transcoder begin(self, Machine machine)
    @cython.locals(run=Run, lead=str)
    cpdef Run run(self, str text, Py_ssize_t i, Machine machine)
    @cython.locals(here=Spot)
    cdef bint _goes(self, Run run, Machine machine) except -1
    @cython.locals(origin=Spot, begin=Py_ssize_t, fed=str, lead=str, run=Run, whole=bint, way=Way, here=Spot, at=Py_ssize_t, count=Py_ssize_t, end=Py_ssize_t, found=Run)
    cdef Run _on_the_way(self, str text, Machine machine)
    cpdef lead(self, str text, Run run, Way way=*)
    cpdef Spot place(self, str before, str name, Machine machine)
@cython.final
cdef class Way:
    cdef public list items, steps
    cdef public str lead
@cython.final
cdef class Known:
    cdef public dict first, spots
    cdef public Py_ssize_t credits, learnt
    cpdef bint looks(self) except -1
    cpdef Spot begin(self, Machine machine)
    cdef _forget(self)
    @cython.locals(at=Py_ssize_t, floor=Py_ssize_t, kind=int)
    cpdef Spot spot(self, Machine machine, bint begins=*)
    @cython.locals(found=Spot, before=str, name=str)
    cpdef Spot later(self, Spot spot, Machine machine, str text, list made)
    @cython.locals(after=Spot)
    cpdef Spot after(self, Machine machine)
    @cython.locals(later=Machine)
    cpdef Spot moved(self, Spot spot, Machine machine)
    @cython.locals(made=list, here=Spot, origin=Spot, run=Run, way=Way, ip=Py_ssize_t, begin=Py_ssize_t, read=Py_ssize_t, begins=bint)
    cpdef Run learn(self, Spot spot, Machine machine, str text, Py_ssize_t position, list items, line)
cdef bint _begins(Machine machine, bint moved) except -1
