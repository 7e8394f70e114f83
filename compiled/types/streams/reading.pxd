cimport cython
from ..core.machine.value cimport Transcoder
from ..core.machine.machine cimport Machine
from .known cimport Known, Run, Spot
from .transcript cimport Transcript
cdef class Reading:
    cdef public list early, parts, passed, pieces
    cdef public bint ended
    cdef public Py_ssize_t at, fed
    cdef public str held
    cdef public object back, ids, make, plain
    cdef public Known known
    cdef public Spot spot
    cdef public int kind
    cdef public Machine machine
    cdef public Transcript transcript
    cdef public Transcoder value
    cpdef read(self, str text, list events)
    cdef give(self, str piece, str out, list events)
    @cython.locals(text=str)
    cpdef str ran(self, id)
    cpdef read_id(self, id, list events)
    @cython.locals(text=str)
    cpdef read_ids(self, ids, list events)
    cdef _decode(self, ids, list events)
    @cython.locals(spot=Spot, run=Run)
    cpdef read_on(self, str text, list events)
    @cython.locals(end=Py_ssize_t, at=Py_ssize_t, text=str, spot=Spot)
    cpdef read_value(self, Transcoder value, str piece, list events)
    cpdef run(self, str text, list events, Py_ssize_t scanned=*)
    cpdef tuple line(self)
    @cython.locals(machine=Machine, known=Known)
    cdef _go(self, str text, list events, Py_ssize_t scanned=*)
    @cython.locals(machine=Machine, spot=Spot, transcript=Transcript)
    cpdef end(self, list events, bint cut_off=*)
    @cython.locals(known=Known, machine=Machine, transcript=Transcript, run=Run, before=Spot, n=Py_ssize_t, end=Py_ssize_t, begin=Py_ssize_t, value=Transcoder, items=list)
    cdef _follow(self, Spot spot, str text, Py_ssize_t i, list events)
    @cython.locals(machine=Machine, spot=Spot)
    cdef _settle(self)
    cdef _wait(self, int region, plain, Transcoder value=*)
    @cython.locals(spot=Spot)
    cpdef Machine at_place(self)
    cdef Spot _place(self)
    @cython.locals(machine=Machine)
    cdef _catch_up(self)
    cdef gather(self)
    cpdef Py_ssize_t note(self) except -1
    cpdef Transcript record(self)
    @cython.locals(spot=Spot)
    cpdef stands(self)
    @cython.locals(other=Reading, transcript=Transcript)
    cpdef Reading copy(self)
    @cython.locals(begin=Py_ssize_t)
    cpdef shorten(self, Py_ssize_t count)
