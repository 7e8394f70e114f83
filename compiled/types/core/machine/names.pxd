cimport cython
@cython.final
cdef class Names:
    cdef public bint alone, header, of_tool, plain
    cdef public object key, odd, parts, run, spell
    cdef public str chars
    cdef public tuple follows
    cdef public int item
    cpdef tuple declared(self, machine)
    @cython.locals(end=Py_ssize_t, followed=int)
    cpdef tuple read(self, machine, str text, Py_ssize_t i, bint final)
    cdef int _followed(self, str rest) except -2
