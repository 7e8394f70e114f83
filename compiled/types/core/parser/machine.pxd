cimport cython
from ...values.base cimport Transcoder
from .instructions cimport Program
from .names cimport Names
from .usual cimport Steps
cdef object _white
cdef class Machine:
    cdef public object arg, left, tool
    cdef public str rest, text
    cdef public Py_ssize_t base, i, ip, floor, furthest, drafted, section, nth
    cdef public bint calling, cut_off, final, line_ended, live
    cdef public int flags, text_region
    cdef public object sealed, tools
    cdef public Program program
    cdef public list stack, trail, wanted
    cdef public Transcoder value
    cpdef Machine copy(self)
    cpdef bint holds(self, str piece) except -1
    cpdef bint hold(self, str piece) except -1
    cpdef unhold(self, Py_ssize_t length)
    @cython.locals(ins=tuple, op=int)
    cpdef waiting(self)
    cpdef str release(self)
    cpdef skip_to(self, Py_ssize_t position, str held, bint line)
    cpdef list finish(self, bint cut_off=*)
    @cython.locals(items=list, height=Py_ssize_t, kind=int, ip=Py_ssize_t, after=Py_ssize_t, calling=bint)
    cdef list _final(self, Py_ssize_t length)
    @cython.locals(code=list, text=str, i=Py_ssize_t, ip=Py_ssize_t, final=bint, n=Py_ssize_t, stack=list, trail=list, ins=tuple, op=int, end=Py_ssize_t, value=Transcoder, at=Py_ssize_t, kind=int, target=Py_ssize_t, length=Py_ssize_t, calling=bint, waits=bint, cut=bint, over=bint, begun=bint, moved=bint, text_end=Py_ssize_t, blank=Py_ssize_t, names=Names, declared=tuple, steps=Steps, frame=tuple, before=Py_ssize_t)
    cpdef list feed(self, piece, Py_ssize_t scanned=*)
    @cython.locals(raw=str, kind=int)
    cdef bint _ends_line(self, list items)
    @cython.locals(raw=str, tag=int)
    cpdef list named(self, list parts)
    @cython.locals(stack=list, height=Py_ssize_t)
    cdef Py_ssize_t _oldest(self)
    cpdef gather(self)
    cdef object _by_place(self, str char)
    @cython.locals(raw=str)
    cdef tuple _go_back(self, Py_ssize_t length, str text, Py_ssize_t i)
    @cython.locals(at=Py_ssize_t)
    cdef _wanted(self, Py_ssize_t i, what)
    cdef str _expected(self, Py_ssize_t at)
