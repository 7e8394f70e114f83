cimport cython
cdef object _basestring
cpdef str escape(text)
