cimport cython
from ..core.machine.value cimport Transcoder
from .base cimport escape
cdef object _run, _odd, _number, _number_run, _word_run, _escape_begun, _members, _items, _key_ends, _next_key, _flat, _escape
cdef dict _IN_MEMBER, _MENDED, _EXPECTED, _RESPELT, _AFTER_COMMA, _places
@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _whole(str text, Py_ssize_t start) except -1
@cython.final
cdef class _Place:
    cdef public dict goes
    cdef public bint stays
    cdef public int state
    cdef public str comma, number, stack
    @cython.locals(end=Py_ssize_t, gone=tuple, more=str)
    cdef tuple into(self, str text)
cdef class JsonScanner(Transcoder):
    cdef public list comma, number, parts, stack
    cdef public str kinds
    cdef public bint key, stopped
    cdef public int dialect, state
    cdef public Py_ssize_t kept
    cdef public object odd
    cdef public _Place place
    cdef public tuple goes_on
    @cython.locals(n=Py_ssize_t, i=Py_ssize_t, end=Py_ssize_t, place=_Place, gone=tuple)
    cpdef Py_ssize_t scan(self, str text, Py_ssize_t start, bint final) except? -1
    @cython.locals(n=Py_ssize_t, kept=Py_ssize_t, comma=Py_ssize_t, parts=list, state=int, own=int, stack=list, end=Py_ssize_t, key=bint, char=Py_UCS4, kind=str, word=str, first=Py_ssize_t, place=_Place)
    cdef Py_ssize_t read(self, str text, Py_ssize_t start, Py_ssize_t i, bint final) except? -1
    cdef _set_up(self, str kinds, int dialect)
    cdef leave(self, _Place place)
    @cython.locals(comma=str, out=str, quote=Py_ssize_t)
    cdef remember(self, _Place before, str text, Py_ssize_t begin, Py_ssize_t end)
    cdef put(self, str text, Py_ssize_t i, Py_ssize_t end, str out)
    cdef Py_ssize_t begin(self, str text, Py_ssize_t i, bint final) except? -1
    cdef Py_ssize_t inside(self, str text, Py_ssize_t i, bint final) except? -1
    cdef Py_ssize_t after(self, str text, Py_ssize_t i, bint final) except? -1
    cdef over(self)
    cdef fail(self, int state)
    cdef str missing(self, int state)
    cdef _without_comma(self, str text, Py_ssize_t comma, Py_ssize_t end, int state)
cdef class ObjectScanner(JsonScanner):
    cdef public StringScanner string
    cdef public list decoded, raw
    @cython.locals(at=Py_ssize_t, end=Py_ssize_t, whole=Py_ssize_t)
    cdef Py_ssize_t read(self, str text, Py_ssize_t start, Py_ssize_t i, bint final) except? -1
    @cython.locals(end=Py_ssize_t)
    cdef Py_ssize_t _other(self, str text, Py_ssize_t start, bint final) except? -1
    cdef _string_ends(self, str text, Py_ssize_t end, bint final)
cdef class NoObject(Transcoder):
    cpdef Py_ssize_t scan(self, str text, Py_ssize_t start, bint final) except? -1
cdef class AnswerScanner(JsonScanner):
    cdef Py_ssize_t read(self, str text, Py_ssize_t start, Py_ssize_t i, bint final) except? -1
cdef class StringScanner(Transcoder):
    cdef public bint begun
    @cython.locals(i=Py_ssize_t, end=Py_ssize_t, inside=str)
    cpdef Py_ssize_t scan(self, str text, Py_ssize_t start, bint final) except? -1
