cimport cython
from .call cimport joined
cpdef Py_ssize_t holding(offsets, Py_ssize_t first, Py_ssize_t start) except -1
cdef class Text:
    cdef public list grown, marks, written
    cdef public Py_ssize_t origin, read
    @cython.locals(texts=dict, marks=list, mark=Py_ssize_t, at=Py_ssize_t, grown=Py_ssize_t, text=str)
    cpdef str whole(self, str encoded, ids)
    cpdef Py_ssize_t position(self, Py_ssize_t at) except -1
