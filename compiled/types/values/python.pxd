cimport cython
from .base cimport escape
from .json cimport JsonScanner
cdef object _apostrophe, _apostrophe_begun, _word_run, _prefix, _adjacent, _adjacent_begun, _first, _escape, _escape_begun, _whole_string, _number_run, _json_number
cdef dict _WORDS, _MODES
cdef class PythonScanner(JsonScanner):
    cdef public bint named
    cdef public object closers
    cdef public str mode
    cpdef bint holds(self, str text) except -1
    @cython.locals(char=Py_UCS4, end=Py_ssize_t, inside=str)
    cdef Py_ssize_t begin(self, str text, Py_ssize_t i, bint final) except? -1
    @cython.locals(kind=str)
    cdef Py_ssize_t _opened(self, str text, Py_ssize_t i, bint final) except? -1
    @cython.locals(n=Py_ssize_t, limit=Py_ssize_t, brace=bint, after=Py_ssize_t, char=Py_UCS4)
    cdef str _kind(self, str text, Py_ssize_t i, bint final)
    @cython.locals(end=Py_ssize_t, word=str)
    cdef Py_ssize_t _word(self, str text, Py_ssize_t i, bint final) except? -1
    @cython.locals(end=Py_ssize_t, over=bint)
    cdef Py_ssize_t _number(self, str text, Py_ssize_t i, bint final) except? -1
    @cython.locals(char=str, quote=str, prefix=str, out=str)
    cdef Py_ssize_t _opened_string(self, str text, Py_ssize_t i, Py_ssize_t at, bint final) except? -1
    cdef _open(self, str mode)
    @cython.locals(n=Py_ssize_t, end=Py_ssize_t, quote=str, char=str, run=str, at=Py_ssize_t)
    cdef Py_ssize_t inside(self, str text, Py_ssize_t i, bint final) except? -1
    cdef Py_ssize_t _escaped(self, str text, Py_ssize_t i, bint final) except? -1
    cdef int _string_over(self, str text, Py_ssize_t after) except -2
    @cython.locals(after=Py_ssize_t, over=int)
    cdef Py_ssize_t _closed_string(self, str text, Py_ssize_t i, Py_ssize_t width, bint final) except? -1
