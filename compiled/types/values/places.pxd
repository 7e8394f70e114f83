cimport cython
cdef dict _places
@cython.final
cdef class Place:
    cdef public dict goes
    cdef public bint stays
    cdef public int state
    cdef public str comma, number, stack
    cpdef learn(self, str text, tuple gone)
