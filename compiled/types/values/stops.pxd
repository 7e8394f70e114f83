cimport cython
@cython.final
cdef class StopFinder:
    cdef public object at, find, plain, plain_json, shown, token
    cdef public StopFinder quiet
    cdef public bint end
    cdef public tuple known, markers, named, openers, seams, stops, tags
    cpdef object whole(self, str text, Py_ssize_t i)
    cpdef tuple text(self, str text, Py_ssize_t start, bint final)
