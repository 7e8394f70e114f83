cimport cython
@cython.final
cdef class Detokenizer:
    cdef public object vocabulary
    cdef public object _errors, _pieces
    cdef public bytes held
    cpdef str decode(self, id)
    cpdef str flush(self)
    cdef str _mend(self, piece)
