cimport cython
from ..core.machine.value cimport Transcoder
from ..core.machine.instructions cimport Program
from ..core.machine.machine cimport Machine
from .transcript cimport Transcript
cdef object _no_shortcut
cdef class Stream:
    cdef public list _early, _parts, _pieces
    cdef public bint _ended, _strict
    cdef public Py_ssize_t _fed, _first, _most
    cdef public str _finished, _held
    cdef public object _asked, _ids, _make, _plain, _undo
    cdef public int _kind
    cdef public Machine _machine
    cdef public Transcript _transcript
    cdef public Transcoder _value
    cpdef _feed(self, piece)
    @cython.locals(other=Stream)
    cpdef Stream fork(self)
    @cython.locals(transcript=Transcript)
    cdef _copy_to(self, Stream other)
    cdef Transcript _record(self)
    @cython.locals(found=Stream)
    cdef _go_back(self, Py_ssize_t count)
    @cython.locals(found=Stream)
    cdef _keep(self, id)
    @cython.locals(end=Py_ssize_t, text=str)
    cdef list _feed_value(self, Transcoder value, str piece)
    cdef _feed_id(self, id, list events)
    cdef _feed_text(self, str text, list events)
    cdef _feed_ids(self, ids, list events)
    cdef _begin_with_text(self)
    cdef _begin_with_ids(self)
    @cython.locals(shared=Machine, machine=Machine, origin=Py_ssize_t, read=Py_ssize_t)
    cpdef _begin(self, begin, ids, tools)
    cdef _run(self, text, list events, Py_ssize_t scanned=*)
    cdef _settle(self)
    cdef _catch_up(self)
    cdef Py_ssize_t _note_region(self) except -1
@cython.locals(stream=Stream)
cpdef Stream opened(tuple asked, bint strict, Py_ssize_t rollback=*)
@cython.locals(stream=Stream)
cpdef Stream begun(start, tools)
