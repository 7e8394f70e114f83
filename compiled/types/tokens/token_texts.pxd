cimport cython
@cython.final
cdef class TokenTexts:
    cdef public bint skip
    cdef public dict texts
    cpdef str text(self, str text)
