cimport cython
@cython.final
cdef class Names:
    cdef public bint alone, header, of_tool
    cdef public object follow, key, odd, run, spell
    cdef public tuple follows
    cdef public int item
    cpdef tuple declared(self, machine)
