cimport cython
@cython.final
cdef class StopFinder:
    cdef public object find, plain, plain_json, shown, token
    cdef public StopFinder quiet
    cdef public bint end
    cdef public tuple known, markers, named, openers, seams, stops, tags, texts
    cdef public dict heads
    @cython.locals(begun=str, stop=str, stops=list)
    cpdef Py_ssize_t at(self, str text, Py_ssize_t i)
    cpdef object whole(self, str text, Py_ssize_t i)
    cpdef tuple text(self, str text, Py_ssize_t start, bint final)
