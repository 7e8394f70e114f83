cimport cython
from ..core.machine.value cimport Transcoder
from ..core.machine.instructions cimport Program
from ..core.machine.machine cimport Machine
from .known cimport Known, Run, Spot
from .transcript cimport Transcript
cdef object _no_shortcut
cdef class Stream:
    cdef public list _early, _parts, _passed, _pieces
    cdef public bint _ended, _strict
    cdef public Py_ssize_t _at, _fed
    cdef public str _finished, _held
    cdef public object _asked, _back, _ids, _loops, _make, _plain
    cdef public Known _known
    cdef public Spot _spot
    cdef public int _kind
    cdef public Machine _machine
    cdef public Transcript _transcript
    cdef public Transcoder _value
    cpdef _feed(self, piece)
    @cython.locals(other=Stream)
    cpdef Stream fork(self)
    @cython.locals(machine=Machine, transcript=Transcript)
    cdef _copy_to(self, Stream other)
    cdef Transcript _record(self)
    @cython.locals(found=Stream)
    cdef _go_back(self, back, Py_ssize_t count)
    @cython.locals(found=Stream)
    cdef _keep(self, back)
    @cython.locals(text=str)
    cpdef str _ran(self, id)
    cdef _read_id(self, id, list events)
    cdef _feed_ids(self, ids, list events)
    cdef _read(self, str text, list events)
    @cython.locals(spot=Spot, run=Run)
    cdef _read_on(self, str text, list events)
    @cython.locals(end=Py_ssize_t, at=Py_ssize_t, text=str, spot=Spot)
    cdef _read_value(self, Transcoder value, str piece, list events)
    cdef _begin_with_text(self)
    cdef _begin_with_ids(self)
    @cython.locals(shared=Machine, machine=Machine, origin=Py_ssize_t, read=Py_ssize_t)
    cpdef _begin(self, begin, ids, tools)
    cdef _run(self, str text, list events, Py_ssize_t scanned=*)
    @cython.locals(machine=Machine, known=Known)
    cdef _go(self, str text, list events, Py_ssize_t scanned=*)
    cdef Spot _moved(self, Spot spot)
    @cython.locals(known=Known, machine=Machine, transcript=Transcript, run=Run, n=Py_ssize_t, end=Py_ssize_t, begin=Py_ssize_t, value=Transcoder, items=list)
    cdef _follow(self, Spot spot, str text, Py_ssize_t i, list events)
    @cython.locals(machine=Machine, spot=Spot)
    cdef _settle(self)
    cdef _wait(self, int region, plain, Transcoder value=*)
    cdef Machine _at_place(self)
    @cython.locals(machine=Machine)
    cdef _catch_up(self)
    cdef Py_ssize_t _note(self) except -1
@cython.locals(stream=Stream)
cpdef Stream opened(tuple asked, bint strict, Py_ssize_t rollback=*)
@cython.locals(stream=Stream)
cpdef Stream begun(start, tools)
