cimport cython
cdef bint _are_texts(list pieces) except -1
cdef class Detokenizer:
    cdef public object vocabulary
    cdef public object _errors, _pieces
    cdef public bytes _held
    cpdef str decode(self, id)
    cpdef list whole(self, ids)
    cpdef str flush(self)
    cdef str _mend(self, piece)
