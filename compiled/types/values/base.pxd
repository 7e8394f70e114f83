cimport cython
cpdef str escape(text)
