cimport cython
cpdef str squeezed(str text)
cdef class Follow:
    cdef public str stop
    cdef public tuple texts, least
    cdef public object begun, open, match, look, found
    cdef public bint loose
    @cython.locals(rest=str, known=str)
    cpdef int stands(self, str text, Py_ssize_t at) except -2
cdef class Closers:
    cdef public object look, loose, sure
    cdef public tuple stops
    cdef public dict known
    cpdef Follow get(self, str stop)
