cimport cython
from ..machine cimport Machine
from ..names cimport Names
cdef class Step:
    cdef public bint begins, cut, top
    cdef public object calling
    cdef public Py_ssize_t ip, popped
    cdef public list items, longer, names, pushed
cdef class Steps:
    cdef public object last, make, match, no_token
    cdef public list begun
    cdef public Py_ssize_t most
    cdef public dict steps
    @cython.locals(step=Step, final=bint, at=Py_ssize_t, begun=str, place=Py_ssize_t, names=Names, made=list, items=list, stack=list, height=Py_ssize_t, tag=int)
    cpdef Py_ssize_t read(self, Machine machine, str text, Py_ssize_t i) except -2
