cimport cython
from .detokenizer cimport Detokenizer
cdef class Spelling:
    cdef public bint skip
    cdef public dict texts
    cpdef str text(self, str text)
cdef class IdFeed:
    cdef public Detokenizer _detokenizer
    cdef public object _recipe, _table, alphabet, offsets, spelling, tokenizer
    cdef public list marks, unknown
    cpdef str text(self, id, Py_ssize_t position)
    cdef str _empty(self, id, Py_ssize_t position)
    @cython.locals(parts=list, texts=list, begins=list, kind=int, text=str, detokenizer=Detokenizer)
    cpdef list decode(self, ids, Py_ssize_t position)
    cpdef str flush(self)
