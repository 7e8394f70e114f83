cimport cython
cdef class Transcoder:
    cdef public str out, error
    cdef public bint done
    cdef public list notes
    cdef public Py_ssize_t length, marked
    cdef public object plain
    cdef _reset(self)
    cpdef Py_ssize_t scan(self, str text, Py_ssize_t start, bint final) except? -1
    cpdef bint holds(self, str text) except -1
    cpdef cut_off(self)
