cimport cython
from .call cimport Call, call_id, joined
from .text cimport Text, holding
@cython.final
cdef class Transcript:
    cdef public bint ending, late_ids, serious, unwanted, whole, wrong
    cdef public Call call
    cdef public list calls, content, diagnostics, notes, pieces, reasoning, records, regions, runs
    cdef public int kind
    cdef public Py_ssize_t length, looked, origin
    cdef public object seed
    cdef public tuple line
    cdef public object answer, checks, earlier, spelling, tools
    cdef public set mended, said
    cdef public Text text
    cpdef list named_calls(self, ids)
    cpdef sink(self, int region)
    cpdef advance(self, int kind, Py_ssize_t length)
    @cython.locals(begin=Py_ssize_t, at=Py_ssize_t, kind=int)
    cpdef pass_over(self, items, regions, Py_ssize_t length, list events)
    @cython.locals(op=int, raw=str, given=str, kind=int, region=int, length=Py_ssize_t, origin=Py_ssize_t, clipped=Py_ssize_t, again=bint, said=list, call=Call)
    cpdef apply(self, items, list events)
    cdef _in_call(self, Call call, int op, str raw, value, list events)
    cdef _compare(self, Call call)
    cpdef whole_calls(self)
    cdef _argue(self, Call call, text, list events)
    cdef _start(self, Call call, list events)
    cdef _judge(self, Call call)
    cpdef judge_by(self, checks)
    cdef _judge_answer(self, wrong, Py_ssize_t at)
    cpdef judge_whole(self)
    @cython.locals(call=Call)
    cpdef close(self, list events)
    cdef object _id(self, Call call)
    cpdef str settled_seed(self)
    cdef _record(self, Call call)
    cpdef over(self)
    cpdef note(self, code, Py_ssize_t at, expected, call=*)
