cimport cython
from ..core.machine.instructions cimport Program
from ..core.machine.machine cimport Machine
@cython.final
cdef class Run:
    cdef public bint acts
    cdef public Spot here
    cdef public list items, regions
    cdef public Py_ssize_t end, length
@cython.final
cdef class Spot:
    cdef public Spot after
    cdef public Known known
    cdef public list leads
    cdef public dict moved, runs, stands
    cdef public str name, text
    cdef public object region, tool, value, waiting
    cdef public tuple state
    cpdef restore(self, Machine machine, Py_ssize_t position)
    cpdef Run lead(self, str text)
    cpdef bint declared(self, tools) except -1
@cython.final
cdef class Known:
    cdef public dict spots
    cdef public Py_ssize_t credits, passed
    cpdef bint looks(self) except -1
    @cython.locals(at=Py_ssize_t, floor=Py_ssize_t, kind=int)
    cpdef Spot spot(self, Machine machine, value=*)
    @cython.locals(later=Machine)
    cpdef Spot after(self, Spot spot, Machine machine)
    @cython.locals(later=Machine)
    cpdef Spot moved(self, Spot spot, Machine machine, bint line)
    @cython.locals(here=Spot, trial=Machine, end=Py_ssize_t, read=Py_ssize_t)
    cpdef Spot learn(self, Spot spot, Machine machine, str text, list items, Py_ssize_t position)
cpdef bint value_begins(Machine machine) except -1
