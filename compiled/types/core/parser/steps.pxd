cimport cython
from .machine cimport Machine
from .names cimport Names
@cython.final
cdef class Step:
    cdef public bint long, solid
    cdef public object make, match, whole
    cdef public str text
    cdef public Py_ssize_t ahead, floor, ip, least, popped
    cdef public list items, more, names, pushed, sets, tried
@cython.final
cdef class Steps:
    cdef public object find
    cdef public Py_ssize_t least
    cdef public list short, steps
    @cython.locals(step=Step, left=Py_ssize_t, end=Py_ssize_t, place=Py_ssize_t, more=Py_ssize_t, names=Names, items=list, found=list, stack=list, literal=str, begun=str, height=Py_ssize_t, ip=Py_ssize_t)
    cpdef Py_ssize_t read(self, Machine machine, str text, Py_ssize_t i) except -2
    cdef Py_ssize_t _made(self, Step step, Machine machine, str text, Py_ssize_t i) except -2
    cdef _set(self, list steps)
