cdef class Toolset:
    cdef public _Checked _checked
    cdef public object raw
    cdef public str respelt
    cdef public dict _tools, kept
cdef class _Checked:
    cdef public object copy, places, raw
    cdef public list functions
    cdef public str respelt
