cimport cython
from .log cimport Log
cdef list _PAIRS
cdef str _ALPHABET
cdef unsigned long long _SQUARE
@cython.locals(number=cython.ulonglong, first=Py_ssize_t, second=Py_ssize_t, third=Py_ssize_t, fourth=Py_ssize_t)
cpdef str call_id(str seed, Py_ssize_t index)
cdef class Call:
    cdef public bint again, broken, complete, lent, started
    cdef public object given, id, name, reader, record
    cdef public Log arguments
    cdef public Py_ssize_t end, index, members, seen, start
    cdef public object made
    cpdef Call copy(self)
    cdef give(self, name)
    cdef _own(self)
    cpdef object read(self)
    cpdef str text(self)
