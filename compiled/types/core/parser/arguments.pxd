cimport cython
cdef class ArgumentValue:
    cdef public bint named
    cdef public object raw, read
