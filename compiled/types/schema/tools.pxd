cimport cython
from ..kept cimport Kept
@cython.final
cdef class Toolset:
    cdef public _Checked _checked
    cdef public object raw
    cdef public str respelt
    cdef public dict _tools, kept
@cython.final
cdef class _Checked:
    cdef public object places, raw
    cdef public list functions, parts
    cdef public str respelt
    @cython.locals(place=Py_ssize_t, fields=Py_ssize_t, function=dict)
    cdef bint holds(self, given)
@cython.locals(found=_Checked)
cdef _Checked _checked(given, Kept seen)
cpdef Toolset read_tools(tools)
