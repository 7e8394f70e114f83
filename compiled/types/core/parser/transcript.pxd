cimport cython
cdef list _PAIRS
cdef str _ALPHABET
cdef unsigned long long _SQUARE
@cython.locals(number=cython.ulonglong, first=Py_ssize_t, second=Py_ssize_t, third=Py_ssize_t, fourth=Py_ssize_t)
cpdef str call_id(str seed, Py_ssize_t index)
cdef str _joined(list texts)
cdef Py_ssize_t _holding(offsets, Py_ssize_t first, Py_ssize_t start) except -1
cdef class _Call:
    cdef public bint again, broken, complete, lent, started
    cdef public object given, id, name, reader, record
    cdef public list arguments
    cdef public object past
    cdef public Py_ssize_t end, index, members, seen, start
    cdef public object made
    cpdef _Call copy(self)
    cdef give(self, name)
    cdef _own(self)
    cpdef gather(self)
    cpdef object read(self)
    cdef shorten(self, Py_ssize_t length)
    cpdef str text(self)
cdef class Transcript:
    cdef public bint broken, ending, late_ids, unwanted, wrong
    cdef public _Call call
    cdef public list calls, content, diagnostics, notes, pieces, reasoning, regions, runs
    cdef public object past
    cdef public int kind
    cdef public Py_ssize_t length, origin
    cdef public object seed
    cdef public object answer, checks, spelling, tools
    cdef public set said
    cdef public _Text text
    cpdef gather(self)
    cpdef seal(self)
    cpdef sink(self, int region)
    cpdef advance(self, int kind, Py_ssize_t length)
    @cython.locals(op=int, raw=str, kind=int, region=int, length=Py_ssize_t, origin=Py_ssize_t, clipped=Py_ssize_t, again=bint, said=list, call=_Call)
    cpdef apply(self, items, list events)
    cdef _in_call(self, _Call call, int op, str raw, value, list events)
    @cython.locals(other=_Call)
    cdef _compare(self, _Call call)
    cdef _argue(self, _Call call, text, list events)
    cdef _start(self, _Call call, list events)
    cdef _judge(self, _Call call)
    cpdef judge_by(self, checks)
    cdef _judge_answer(self, wrong, Py_ssize_t at)
    cpdef judge_whole(self)
    @cython.locals(call=_Call)
    cpdef close(self, list events)
    cdef object _id(self, _Call call)
    cpdef str settled_seed(self)
    cdef _record(self, _Call call)
    cpdef over(self)
    cpdef note(self, code, Py_ssize_t at, expected, call=*)
cdef class _Text:
    cdef public list grown, marks, spelt
    cdef public Py_ssize_t origin, read
    @cython.locals(texts=dict, marks=list, mark=Py_ssize_t, at=Py_ssize_t, grown=Py_ssize_t, text=str)
    cpdef str whole(self, str encoded, ids)
    cpdef Py_ssize_t position(self, Py_ssize_t at) except -1
