cimport cython
from .base cimport Transcoder, escape
from .json cimport JsonScanner
cdef object _assigns, _assigns_begun, _key_run, _whole_key, _whole_next_key, _whole_scalar
cdef dict _CLOSE, _EXPECTED
cdef class GemmaScanner(Transcoder):
    cdef public list bare, comma, stack
    cdef public tuple closers, openers
    cdef public JsonScanner inner
    cdef public bint key, open, told, waiting
    cdef public object ahead, arguments, kinds, patterns, quote
    cdef public str name, sign
    cdef public int state
    @cython.locals(n=Py_ssize_t, i=Py_ssize_t, parts=list, state=int)
    cpdef Py_ssize_t scan(self, str text, Py_ssize_t start, bint final) except? -1
    cdef _look_ahead(self)
    cdef _fail(self)
    cdef _over(self)
    cdef _after_comma(self, str text, Py_ssize_t i, list parts)
    cdef Py_ssize_t _string_over(self, str text, Py_ssize_t end) except? -2
    @cython.locals(i=Py_ssize_t)
    cdef Py_ssize_t _value_begins(self, str text, object key, list parts) except? -1
    @cython.locals(end=Py_ssize_t, begin=Py_ssize_t, over=Py_ssize_t)
    cdef Py_ssize_t _string(self, str text, Py_ssize_t i, bint final, list parts) except? -1
    @cython.locals(least=Py_ssize_t, close=Py_ssize_t, begin=Py_ssize_t)
    cdef Py_ssize_t _decided(self, str text, Py_ssize_t i, Py_ssize_t end) except? -1
    cdef Py_ssize_t _text(self, str text, Py_ssize_t i, bint final, list parts) except? -1
    @cython.locals(inner=JsonScanner, end=Py_ssize_t)
    cdef Py_ssize_t _scalar(self, str text, Py_ssize_t i, bint final, list parts) except? -1
    @cython.locals(n=Py_ssize_t, end=Py_ssize_t, limit=Py_ssize_t)
    cdef Py_ssize_t _bare(self, str text, Py_ssize_t i, bint final, list parts) except? -1
    @cython.locals(quote=str, quoted=str)
    cdef Py_ssize_t _equals(self, str text, Py_ssize_t i, bint final, list parts) except? -1
    @cython.locals(char=str, state=int, end=Py_ssize_t)
    cdef Py_ssize_t _between(self, str text, Py_ssize_t i, bint final, list parts) except? -1
    cdef _word(self, str text, Py_ssize_t i, bint final, list parts)
    @cython.locals(char=str, close=str)
    cdef Py_ssize_t _next(self, str text, Py_ssize_t i, bint final, list parts) except? -1
