cimport cython
@cython.final
cdef class ArgumentValue:
    cdef public bint named
    cdef public object raw, read
