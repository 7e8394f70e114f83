cimport cython
from ...values.base cimport Transcoder
from .machine cimport Machine
from .transcript cimport Transcript
cdef object _no_shortcut
cdef bint _are_integers(list piece) except -1
cdef class Stream:
    cdef public list _early, _parts, _pieces
    cdef public bint _ended, _strict
    cdef public Py_ssize_t _fed
    cdef public str _finished, _held
    cdef public object _asked, _ids, _make, _not_given, _plain
    cdef public int _kind
    cdef public Machine _machine
    cdef public Transcript _transcript
    cdef public Transcoder _value
    cpdef _feed(self, piece)
    @cython.locals(other=Stream)
    cpdef Stream fork(self)
    @cython.locals(end=Py_ssize_t, text=str)
    cdef list _feed_value(self, Transcoder value, str piece)
    cdef _begin_with_text(self)
    cdef _begin_with_ids(self)
    cpdef _begin(self, start, ids, tools, id_seed)
    cdef _run(self, text, list events, Py_ssize_t scanned=*)
    cdef _settle(self)
    cdef _catch_up(self)
    cdef _note_region(self)
@cython.locals(stream=Stream)
cpdef Stream opened(tuple asked, bint strict)
@cython.locals(stream=Stream)
cpdef Stream begun(start, tools)
