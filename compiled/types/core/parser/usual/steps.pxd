cimport cython
cdef class Step:
    cdef public object ahead
    cdef public bint begins, cut, top
    cdef public object calling
    cdef public Py_ssize_t ip, popped
    cdef public list items, names, parts, pushed
    @cython.locals(names=list, end=Py_ssize_t)
    cpdef object find(self, str text, Py_ssize_t i, bint final)
cdef class Steps:
    cdef public object _make
    cdef public list _made
    @cython.locals(step=Step)
    cpdef tuple find(self, str text, Py_ssize_t i, bint final)
