cimport cython
cdef class _Call:
    cdef public list arguments
    cdef public bint broken, complete, started
    cdef public object id, name, record
    cdef public Py_ssize_t index, members, start
    cdef public object made
    cdef public tuple sink
cdef class Transcript:
    cdef public bint broken, ending, late_ids, unwanted
    cdef public _Call call
    cdef public list calls, content, diagnostics, notes, pieces, reasoning, regions, runs
    cdef public int kind
    cdef public Py_ssize_t length, origin
    cdef public object seed
    cdef public object spelling, tools
    cdef public _Text text
    cpdef sink(self, int region)
    cpdef advance(self, int kind, Py_ssize_t length)
    @cython.locals(op=int, raw=str, kind=int, clipped=Py_ssize_t, call=_Call)
    cpdef apply(self, items, list events)
    cdef _in_call(self, _Call call, int op, str raw, value, list events)
    cdef _argue(self, _Call call, text, list events)
    cdef _start(self, _Call call, list events)
    @cython.locals(call=_Call)
    cpdef close(self, list events)
    cdef object _id(self, _Call call)
    cpdef over(self)
    cpdef note(self, code, Py_ssize_t at, expected, call=*)
cdef class _Text:
    cdef public list grown, marks, spelt
    cdef public Py_ssize_t origin, read
