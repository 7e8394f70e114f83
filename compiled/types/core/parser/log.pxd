cimport cython
@cython.final
cdef class Log:
    cdef public object new, past
    @cython.locals(other=Log)
    cpdef Log copy(self)
    cpdef all(self)
    cpdef since(self, Py_ssize_t count)
    @cython.locals(texts=list)
    cpdef str joined(self)
