cimport cython
from ..kept cimport Kept
@cython.final
cdef class Toolset:
    cdef public _Checked _checked
    cdef public object raw
    cdef public str respelt
    cdef public dict _tools, kept
    cdef public bint missed
@cython.final
cdef class _Checked:
    cdef public object copy, places, raw
    cdef public list functions
    cdef public str respelt
@cython.locals(found=_Checked)
cdef _Checked _checked(given, Kept seen)
cpdef Toolset read_tools(tools)
