cimport cython
from ..core.machine.value cimport Transcoder
from .base cimport escape
from .closers cimport Closers, Follow
from .json cimport JsonScanner
from ..core.machine.stops cimport StopFinder
cdef object _ONLY_STRING
@cython.locals(one=str)
cdef str _first(tuple texts, str text, Py_ssize_t at)
@cython.locals(name=str, begun=Py_ssize_t, end=Py_ssize_t)
cdef Py_ssize_t _tag_at(tuple names, str after, str text, Py_ssize_t at, bint final) except? -2
@cython.final
cdef class RawReader:
    cdef public bint python
    cdef public StopFinder stops
    cdef public Closers closers
    cdef public object types
    cdef public tuple escapes
cdef class _Raw(Transcoder):
    cdef public StopFinder stops
    cdef public bint begun, open, passed, told
    cdef public Py_ssize_t depth
    cdef public tuple names
    cdef public Closers closers
    cdef public object tools
    cdef _set_up(self, StopFinder stops, Closers closers, tuple names, tools)
    @cython.locals(follow=Follow)
    cpdef bint holds(self, str text) except -1
    cpdef tuple text(self, str text, Py_ssize_t start, bint final)
    @cython.locals(over=bint, size=Py_ssize_t, stop=str, closes=Py_ssize_t, stops=StopFinder, quiet=StopFinder, named=Py_ssize_t)
    cpdef tuple checked(self, str text, Py_ssize_t end, bint final)
    cdef _quotes(self, Py_ssize_t end)
    @cython.locals(at=Py_ssize_t, closes=Py_ssize_t, follow=Follow)
    cdef Py_ssize_t _closes(self, str stop, str text, Py_ssize_t end, bint final) except? -2
    @cython.locals(begin=Py_ssize_t, here=Py_ssize_t, stop=str, closes=Py_ssize_t, stops=StopFinder, follow=Follow)
    cdef Py_ssize_t _next_closer(self, str text, Py_ssize_t at, bint final) except? -3
    @cython.locals(rest=str, opener=str, begun=Py_ssize_t)
    cdef Py_ssize_t _next_tag(self, str text, Py_ssize_t at) except? -2
    @cython.locals(end=Py_ssize_t, later=Py_ssize_t)
    cdef Py_ssize_t _only(self, str before, str after, str text, Py_ssize_t begin, bint final) except? -2
    @cython.locals(at=Py_ssize_t, over=Py_ssize_t)
    cdef Py_ssize_t _opens(self, str text, Py_ssize_t end, bint final) except? -2
    @cython.locals(follows=Py_ssize_t, before=str, after=str)
    cdef Py_ssize_t _named(self, str text, Py_ssize_t end, bint final) except? -2
    @cython.locals(end=Py_ssize_t)
    cdef Py_ssize_t _follows(self, str before, str after, str text, Py_ssize_t at, bint final) except? -2
cdef class RawString(_Raw):
    @cython.locals(n=Py_ssize_t, end=Py_ssize_t, over=bint, out=str)
    cpdef Py_ssize_t scan(self, str text, Py_ssize_t start, bint final) except? -1
    cpdef plain_search(self)
cdef class EscapedString(RawString):
    cdef public tuple escapes
    cdef public str tail
    cpdef plain_search(self)
cdef class RawTyped(_Raw):
    cdef public list held
    cdef public Transcoder inner
    cdef public bint python
    cdef public object types
    @cython.locals(i=Py_ssize_t, end=Py_ssize_t)
    cpdef Py_ssize_t scan(self, str text, Py_ssize_t start, bint final) except? -1
    @cython.locals(end=Py_ssize_t, over=bint, start=Py_ssize_t)
    cdef Py_ssize_t _nested(self, Transcoder inner, str text, Py_ssize_t i, bint final) except? -1
    @cython.locals(probe=JsonScanner, bare=str)
    cdef str _scalar(self, str text, Py_ssize_t end)
cdef class RawUnion(_Raw):
    cdef public bint began, python
    cdef public object escapes, others
    cdef public list held, read
    cdef public Transcoder probe
    cdef public RawString string
    cdef public str tail
    @cython.locals(end=Py_ssize_t, over=bint, string=RawString, held=str)
    cpdef Py_ssize_t scan(self, str text, Py_ssize_t start, bint final) except? -1
    @cython.locals(probe=Transcoder, fed=str, end=Py_ssize_t)
    cdef bint _still_other(self, str piece, bint over) except -1
    cdef bint _begins(self, str text) except -1
    cdef _follow(self, RawString string)
