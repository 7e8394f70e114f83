cimport cython
@cython.final
cdef class Program:
    cdef public list code
    cdef public Py_ssize_t start, fallback
    cdef public bint late_ids, unwanted
    cdef public tuple recipe
