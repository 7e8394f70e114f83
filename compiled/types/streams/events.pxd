cdef class Content:
    cdef public object text
cdef class Reasoning:
    cdef public object text
cdef class CallStart:
    cdef public object index, name, id
cdef class CallArguments:
    cdef public object index, text
cdef class CallEnd:
    cdef public object index, id, complete
