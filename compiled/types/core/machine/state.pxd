cimport cython
from .value cimport Transcoder
from .instructions cimport Program
cdef class MachineState:
    cdef public object arg, left, tool
    cdef public str text
    cdef public Py_ssize_t base, ip, floor, furthest, drafted, section, nth
    cdef public bint asked, calling, cut_off, final, live
    cdef public int flags, text_region
    cdef public object tools
    cdef public Program program
    cdef public list stack, trail, wanted
    cdef public tuple seen
    cdef public Transcoder value
    @cython.locals(other=MachineState)
    cpdef object copy(self)
    @cython.locals(ins=tuple, text=str, held=bint, literal=str)
    cpdef bint hold(self, str piece) except -1
    cpdef skip_to(self, Py_ssize_t position, str held)
    @cython.locals(items=list, height=Py_ssize_t, kind=int, ip=Py_ssize_t, after=Py_ssize_t, calling=bint)
    cdef list _final(self, Py_ssize_t length)
    @cython.locals(stack=list, height=Py_ssize_t)
    cdef Py_ssize_t _oldest(self)
    @cython.locals(raw=str)
    cdef tuple _go_back(self, Py_ssize_t length, str text, Py_ssize_t i)
    @cython.locals(at=Py_ssize_t)
    cdef _wanted(self, Py_ssize_t i, what)
    cdef str _expected(self, Py_ssize_t at)
