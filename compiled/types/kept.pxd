cimport cython
@cython.final
cdef class _Entry:
    cdef public bint asked
    cdef public Py_ssize_t size
    cdef public object value
@cython.final
cdef class Kept:
    cdef object __weakref__
    cdef public object fresh, _lock, _new, _values
    cdef public Py_ssize_t largest, most, size, _new_size
    @cython.locals(found=_Entry)
    cpdef get(self, key)
    cpdef add(self, key, value, Py_ssize_t size)
