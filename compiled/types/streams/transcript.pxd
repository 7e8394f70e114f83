cimport cython
from .call cimport Call, call_id, joined
from .events cimport CallArguments, CallEnd, CallStart, Content, Reasoning
from .known cimport Run
from .text cimport Text, holding
@cython.final
cdef class Transcript:
    cdef public bint ending, late_ids, serious, unwanted, whole, wrong
    cdef public Call call
    cdef public list calls, content, diagnostics, notes, pieces, reasoning, records, regions, runs, untold
    cdef public int kind
    cdef public Py_ssize_t length, looked, origin
    cdef public object seed
    cdef public tuple line
    cdef public object answer, checks, spelling, tools
    cdef public dict mended, said
    cdef public Text text
    cpdef list named_calls(self, ids)
    cpdef sink(self, int region)
    cpdef advance(self, int kind, Py_ssize_t length)
    @cython.locals(call=Call, begin=Py_ssize_t, at=Py_ssize_t, kind=int, op=int, region=int, odd=bint)
    cpdef take(self, Run run, list events)
    @cython.locals(call=Call, region=int)
    cpdef argue(self, Py_ssize_t length, out)
    @cython.locals(call=Call)
    cpdef tell(self, list events)
    @cython.locals(op=int, raw=str, region=int, alike=bint)
    cpdef apply(self, items, list events)
    @cython.locals(op=int, raw=str, size=Py_ssize_t)
    cdef list _after_prefix(self, items)
    cdef bint _say(self, int op, text, list events) except -1
    @cython.locals(call=Call)
    cdef _mark(self, int op, value, Py_ssize_t at, list events)
    cdef _start(self, Call call, list events)
    cdef _judge(self, Call call)
    cpdef judge_by(self, checks)
    cdef _judge_answer(self, wrong, Py_ssize_t at)
    cpdef judge_whole(self)
    @cython.locals(call=Call)
    cpdef close(self, list events, Py_ssize_t at)
    cdef object _id(self, Call call)
    cpdef str settled_seed(self)
    cdef _record(self, Call call)
    cpdef over(self)
    cpdef note(self, code, Py_ssize_t at, expected, call=*)
