cimport cython
cdef list _PAIRS
cdef str _ALPHABET
cdef unsigned long long _FOURTH, _SQUARE
@cython.locals(number=cython.ulonglong, low=cython.ulonglong, high=cython.ulonglong)
cpdef str call_id(str seed, Py_ssize_t index)
cpdef str joined(list texts)
cdef class Call:
    cdef public bint again, broken, complete, lent, other
    cdef public set given
    cdef public tuple sink
    cdef public object id, name, reader
    cdef public list arguments
    cdef public Py_ssize_t end, index, members, noted, seen, start
    cdef public object made
    cpdef Call copy(self)
    cdef give(self, name)
    cdef _own(self)
    cpdef object read(self)
    cdef shorten(self, Py_ssize_t length)
    cpdef str text(self)
