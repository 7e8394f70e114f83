cdef bint _are_integers(list piece) except -1
