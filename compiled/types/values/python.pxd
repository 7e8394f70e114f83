cimport cython
from .base cimport Transcoder, escape
cdef object _apostrophe, _apostrophe_begun, _word_run, _prefix, _adjacent, _adjacent_begun, _first, _escape, _escape_begun, _whole_string, _number_run, _json_number
cdef dict _WORDS, _CLOSE, _EXPECTED, _MODES
cdef class PythonScanner(Transcoder):
    cdef public bint key, named, waiting
    cdef public object closers
    cdef public Py_ssize_t kept
    cdef public str mode
    cdef public list number, parts, stack
    cdef public int state
    @cython.locals(n=Py_ssize_t, i=Py_ssize_t, parts=list)
    cpdef Py_ssize_t scan(self, str text, Py_ssize_t start, bint final) except? -1
    cpdef bint holds(self, str text) except -1
    cdef _put(self, str text, Py_ssize_t i, Py_ssize_t end, str out)
    cdef _fail(self)
    cdef _over(self)
    @cython.locals(char=Py_UCS4, state=int, end=Py_ssize_t, inside=str)
    cdef Py_ssize_t _between(self, str text, Py_ssize_t i, bint final) except? -1
    @cython.locals(char=str, kind=str)
    cdef Py_ssize_t _opened(self, str text, Py_ssize_t i, bint final) except? -1
    @cython.locals(n=Py_ssize_t, limit=Py_ssize_t, brace=bint, after=Py_ssize_t, char=Py_UCS4)
    cdef str _kind(self, str text, Py_ssize_t i, bint final)
    @cython.locals(char=str, kind=str, close=str, n=Py_ssize_t, limit=Py_ssize_t, end=Py_ssize_t)
    cdef Py_ssize_t _next(self, str text, Py_ssize_t i, bint final) except? -1
    cdef Py_ssize_t _closed(self, str text, Py_ssize_t i) except? -1
    @cython.locals(end=Py_ssize_t, word=str)
    cdef Py_ssize_t _word(self, str text, Py_ssize_t i, bint final) except? -1
    @cython.locals(end=Py_ssize_t, over=bint)
    cdef Py_ssize_t _number(self, str text, Py_ssize_t i, bint final) except? -1
    @cython.locals(char=str, quote=str, prefix=str, out=str)
    cdef Py_ssize_t _opened_string(self, str text, Py_ssize_t i, Py_ssize_t at, bint final) except? -1
    @cython.locals(n=Py_ssize_t, end=Py_ssize_t, quote=str, char=str, run=str, single=bint, at=Py_ssize_t)
    cdef Py_ssize_t _string(self, str text, Py_ssize_t i, bint final) except? -1
    cdef Py_ssize_t _escaped(self, str text, Py_ssize_t i, bint final) except? -1
    cdef int _string_over(self, str text, Py_ssize_t after) except -2
    @cython.locals(after=Py_ssize_t, over=int)
    cdef Py_ssize_t _closed_string(self, str text, Py_ssize_t i, Py_ssize_t width, bint final) except? -1
