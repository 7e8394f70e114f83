cimport cython
from .value cimport Transcoder
from .state cimport MachineState
from .names cimport Names
cdef class Machine(MachineState):
    @cython.locals(ins=tuple)
    cpdef waiting(self)
    cpdef list finish(self, bint cut_off=*, line=*)
    @cython.locals(code=list, text=str, i=Py_ssize_t, ip=Py_ssize_t, final=bint, n=Py_ssize_t, stack=list, trail=list, ins=tuple, op=int, end=Py_ssize_t, value=Transcoder, at=Py_ssize_t, kind=int, target=Py_ssize_t, length=Py_ssize_t, calling=bint, waits=bint, cut=bint, over=bint, begun=bint, blank=Py_ssize_t, found=Py_ssize_t, no_white=bint, stop=Py_ssize_t)
    cpdef list feed(self, piece, Py_ssize_t scanned=*, bint pause=*, line=*)
    @cython.locals(raw=str, tag=int)
    cpdef list named(self, list parts)
    cdef object _by_place(self, str char)
