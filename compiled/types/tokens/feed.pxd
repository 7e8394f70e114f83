cimport cython
from .detokenizer cimport Detokenizer
@cython.final
cdef class IdFeed:
    cdef public Detokenizer _detokenizer
    cdef public object _offsets, _recipe, _texts, alphabet, spelling, texts, tokenizer
    cdef public list _marks, _new, unknown
    cdef public Py_ssize_t _begin
    @cython.locals(text=str)
    cpdef str text(self, id)
    cdef str _empty(self, id, Py_ssize_t position)
    @cython.locals(parts=list, texts=list, kind=int, runs=list, begun=Py_ssize_t, place=Py_ssize_t, held=str, position=Py_ssize_t)
    cpdef list decode(self, ids)
    cdef Py_ssize_t _next(self, Py_ssize_t place) except -1
    cdef _settle(self)
    cdef _look(self)
    cpdef str ran(self, list ids)
    cpdef str flush(self)
