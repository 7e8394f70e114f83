cimport cython
from .reading cimport Reading
cdef class Stream:
    cdef public bint _strict
    cdef public Py_ssize_t _rollback
    cdef public str _finished
    cdef public object _asked, _loops
    cdef public Reading _reading, _text
    cpdef Reading _begun(self)
    cdef Reading _begin_with_ids(self)
    cdef Reading _begin(self, bint with_ids=*)
    @cython.locals(reading=Reading)
    cpdef _feed(self, piece)
    @cython.locals(other=Stream, reading=Reading)
    cpdef Stream fork(self)
@cython.locals(stream=Stream)
cpdef Stream opened(tuple asked, bint strict, Py_ssize_t rollback=*)
@cython.locals(stream=Stream)
cpdef Stream begun(start, tools)
