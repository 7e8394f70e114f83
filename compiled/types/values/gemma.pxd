cimport cython
from .base cimport escape
from .json cimport JsonScanner
cdef object _assigns, _assigns_begun, _key_run, _whole_key, _whole_next_key, _whole_scalar
cdef class GemmaScanner(JsonScanner):
    cdef public list bare
    cdef public tuple closers, openers
    cdef public bint open, told
    cdef public object ahead, arguments, patterns, quote
    cdef public str name, sign
    @cython.locals(key=bint, char=str, end=Py_ssize_t)
    cdef Py_ssize_t begin(self, str text, Py_ssize_t i, bint final) except? -1
    cdef Py_ssize_t after(self, str text, Py_ssize_t i, bint final) except? -1
    cdef _look_ahead(self)
    cdef Py_ssize_t _string_over(self, str text, Py_ssize_t end) except? -2
    @cython.locals(i=Py_ssize_t)
    cdef Py_ssize_t _members(self, str text, object key) except? -1
    @cython.locals(end=Py_ssize_t, begin=Py_ssize_t, over=Py_ssize_t)
    cdef Py_ssize_t inside(self, str text, Py_ssize_t i, bint final) except? -1
    @cython.locals(least=Py_ssize_t, close=Py_ssize_t, begin=Py_ssize_t)
    cdef Py_ssize_t _decided(self, str text, Py_ssize_t i, Py_ssize_t end) except? -1
    cdef Py_ssize_t _text(self, str text, Py_ssize_t i, bint final) except? -1
    @cython.locals(n=Py_ssize_t, end=Py_ssize_t, limit=Py_ssize_t)
    cdef Py_ssize_t _bare(self, str text, Py_ssize_t i, bint final) except? -1
    @cython.locals(quote=str, quoted=str)
    cdef Py_ssize_t _equals(self, str text, Py_ssize_t i, bint final) except? -1
