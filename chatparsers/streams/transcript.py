"""The record of what a stream has read: the message so far, its calls, its regions and its diagnostics.

Strategy: `Transcript.apply` turns the machine's trail items into events and into parts of the message. Texts are kept
as lists of pieces. Asking for the message joins each list and puts the joined text in place of its pieces. So a text
that was joined once is later copied as a whole, and asking often stays cheap.

Invariants:
- Positions count the machine's characters; a special token is one of them. They become positions in the model's text
  when the message is asked for (`Text`).
- The items come in the order of the text, so each region is a run. ``runs`` has the start of each run, and all runs but
  the last are over.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort_right
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import attrgetter, itemgetter
from typing import Any, Protocol

from ..core.machine import instructions as m
from ..core.machine.fences import after
from ..core.machine.instructions import (
    ARG_NAME,
    ARGUMENT,
    CALL,
    CALL_BEGIN,
    CALL_END,
    CONTENT,
    MARKUP,
    NOTE,
    REASONING,
)
from ..schema.tools import Toolset
from ..values.base import quoted
from ..values.so_far import Reader
from .call import Call, call_id, joined, shorten
from .events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning, joined_events
from .known import Run
from .message import Diagnostic, DiagnosticCode, Message, Region, RegionKind, ToolCall, made_call, made_region
from .start import StreamTurn
from .text import Spelling, Text, holding

KINDS: tuple[RegionKind, ...] = ("markup", "content", "reasoning", "call")
"""The name of each region, by the machine's item."""

SERIOUS = frozenset({"malformed", "truncated"})
"""The codes with which a message is not complete."""

STRICT = SERIOUS | {"schema"}
"""The codes at which a strict stream raises."""

Sink = tuple[Callable[[str], Event], "list[str]"]
"""What becomes of a piece that is part of a region: the event it makes, and the texts that it is added to."""

_SNIPPET = 40
_NAMES_SHOWN = 6
_Note = tuple[DiagnosticCode, int, str, "int | None"]


class Checks(Protocol):
    """Who judges arguments and an answer while they are written (`chatparsers.grammar.schemas.checked.Checks`)."""

    def reader(self, name: str) -> Reader: ...
    def answer(self) -> Any: ...


class Transcript:
    """The record of one turn.

    ``tools`` are the request's tools. ``unwanted``: the request wants no calls, so a call makes no event. ``late_ids``:
    the format may write a call's id after its arguments. ``seed`` makes the ids that the model does not write; of a
    turn, its own seed does. The text before ``origin`` is the prefix, which the prompt wrote. ``length`` is the end of
    the last item. ``spelling``: what the characters of special tokens spell; None if text is fed. ``line``: where in a
    line of content the text ends, as far as it was ``looked`` at.
    """

    __slots__ = (
        "answer", "call", "calls", "checks", "content", "diagnostics", "ending", "kind", "late_ids", "length",
        "line", "looked", "mended", "notes", "origin", "pieces", "reasoning", "records", "regions", "runs",
        "said", "seed", "serious", "spelling", "text", "tools", "untold", "unwanted", "whole", "wrong",
    )  # fmt: skip

    def __init__(
        self,
        tools: Toolset,
        program: m.Program,
        seed: str | StreamTurn,
        origin: int,
        length: int,
        spelling: Spelling | None = None,
        line: m.Line = ("", ""),
    ) -> None:
        self.tools = tools
        self.unwanted = program.unwanted
        self.late_ids = program.late_ids
        self.seed = seed
        self.origin = origin
        self.length = self.looked = length
        self.line = line
        self.spelling = spelling
        self.pieces: list[str] = []
        """All that was fed."""
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[Call] = []
        """Those that are over."""
        self.call: Call | None = None
        """The call that is open."""
        self.untold: list[str] = []
        """Texts of its arguments of which there is no event yet, as the piece is still read."""
        self.kind = -1
        """The region of the last run."""
        self.runs: list[tuple[int, int]] = []
        self.notes: list[_Note] = []
        self.mended: dict[tuple[str, int, int], None] = {}
        """What was mended in which value, for one note each. An empty dictionary is smaller than an empty set."""
        self.wrong = self.serious = False
        """Whether there is a note at which a strict stream raises, which asks after each piece; and one with which
        the message is not complete."""
        self.checks: Checks | None = None
        self.answer: Any = None
        """Who reads and judges the content, if it must fit a schema."""
        self.ending = False
        """Whether the text is over. Text of a call that comes after that is not part of its arguments."""
        # Of the last message, what will not change any more.
        self.regions: list[Region] = []
        self.records: list[ToolCall] = []
        self.whole = True
        """Whether all calls of ``records`` are complete."""
        self.said: dict[tuple[str | None, str], None] = {}
        """The names and arguments of those that are, and of the whole calls that the prompt already wrote."""
        self.diagnostics: list[Diagnostic] = []
        """In the order of the text: those of as many notes, the first ones."""
        self.text: Text | None = None

    def copy(self) -> Transcript:
        """An independent copy at this point. It finds anew what is only kept for later messages and calls."""
        other = Transcript.__new__(Transcript)
        other.tools, other.unwanted, other.late_ids = self.tools, self.unwanted, self.late_ids
        other.seed, other.origin, other.length = self.seed, self.origin, self.length
        other.spelling, other.line, other.looked = self.spelling, self.line, self.looked
        other.call = None if self.call is None else self.call.copy()
        for texts in (self.pieces, self.content, self.reasoning):
            joined(texts)
        other.pieces, other.content, other.reasoning = self.pieces[:], self.content[:], self.reasoning[:]
        other.calls, other.runs, other.notes = self.calls[:], self.runs[:], self.notes[:]
        other.kind, other.ending, other.checks = self.kind, self.ending, self.checks
        other.wrong, other.serious, other.mended = self.wrong, self.serious, self.mended.copy()
        other.answer = None if self.answer is None else self.answer.copy()
        other.untold, other.regions, other.text = [], [], None
        other.records, other.whole, other.diagnostics = self.records[:], self.whole, self.diagnostics[:]
        other.said = self.said.copy()
        return other

    def sink(self, region: int) -> Sink | None:
        """What becomes of a piece of the region; None if it must come through `apply`."""
        if region == ARGUMENT:
            call = self.call
            return None if call is None or call.again or self.checks is not None else call.sink
        if region == CONTENT:
            return None if self.answer is not None else (Content, self.content)
        return (Reasoning, self.reasoning) if region == REASONING else None

    @property
    def count(self) -> int:
        """How many calls there are."""
        return len(self.calls) + (self.call is not None)

    def called(self, index: int) -> Call:
        """The call at ``index``."""
        if self.call is not None and self.call.index == index:
            return self.call
        return self.calls[index]

    def shorten(self, end: int, length: int, kind: int) -> None:
        """Takes ``length`` characters off the text, which ends at ``end`` then. All of them are of the region
        ``kind``."""
        shorten(self.pieces, length)
        if kind == CALL and self.call is not None:
            self.call.shorten(length)
        elif kind == CONTENT:
            shorten(self.content, length)
        elif kind == REASONING:
            shorten(self.reasoning, length)
        if self.length > end:
            self.length = end
            while self.runs and self.runs[-1][0] >= end:
                self.runs.pop()
            self.kind = self.runs[-1][1] if self.runs else -1
        self.regions, self.diagnostics, self.text = [], [], None

    # from trail items to events

    def advance(self, kind: int, length: int) -> None:
        """Notes that the next ``length`` characters are in the region ``kind``."""
        if kind != self.kind and length:
            self.runs.append((self.length, kind))
            self.kind = kind
        self.length += length

    def take(self, run: Run, events: list[Event]) -> None:
        """As `apply`, of a known run. `tell` is to come."""
        begin = self.length
        if run.passes and begin >= self.origin:
            self.advance(MARKUP, run.length)
            return
        call, region, names = self.call, self.kind, run.names
        odd = call is not None and (call.again or call.broken or (names and not call.given.isdisjoint(names)))
        if odd or begin < self.origin or not run.plain:
            self.apply(run.items, events)
            return
        for at, kind in run.regions:
            if kind != region:
                self.runs.append((begin + at, kind))
                region = kind
        self.length, self.kind = begin + run.length, region
        for op, at, value in run.marks:
            self._mark(op, value, begin + at, events)

    def argue(self, length: int, out: str) -> None:
        """Takes ``length`` characters of an argument's value, which are ``out`` in JSON. `tell` is to come."""
        call, region = self.call, CALL
        if call is not None:
            if call.again:
                region = MARKUP
            elif out:
                self.untold.append(out if self.spelling is None else self.spelling.json(out))
        self.advance(region, length)

    def tell(self, events: list[Event]) -> None:
        """Makes one event of what the arguments of the open call have got."""
        call = self.call
        if call is None or not self.untold:
            return
        text = "".join(self.untold)
        self.untold = []
        call.arguments.append(text)
        if call.sink is not None:
            last = events[-1] if events else None
            if type(last) is CallArguments and last.index == call.index:
                last.text += text
            else:
                events.append(CallArguments(call.index, text))
            if self.checks is not None:
                self._judge(call)
        else:
            self._start(call, events)

    def apply(self, items: Sequence[m.Item], events: list[Event]) -> None:
        """Takes the items into the message, and adds their events to ``events``."""
        if self.length < self.origin:
            items = self._after_prefix(items)
        spelling, alike = self.spelling, False
        for op, raw, value in items:
            region = op
            if op == ARGUMENT:
                self.argue(len(raw), value)
                continue
            if op > ARGUMENT:
                if op == NOTE:
                    self.note(*value)
                else:
                    self._mark(op, value, self.length, events)
                region = MARKUP if self.call is not None and self.call.again else CALL
            elif op == CALL:
                text = raw if value is None else value
                if self.call is not None and self.call.broken and text:
                    self.untold.append(text if spelling is None else spelling.full(text))
            elif op != MARKUP:
                text = raw if value is None else value
                alike = self._say(op, text if spelling is None else spelling.text(text), events) or alike
                if spelling is not None and not raw.isascii():
                    for dropped, part in spelling.runs(raw):
                        self.advance(MARKUP if dropped else op, len(part))
                    continue
            if raw:
                if region != self.kind:
                    self.runs.append((self.length, region))
                    self.kind = region
                self.length += len(raw)
        if self.untold:
            self.tell(events)
        if alike:
            events[:] = joined_events(events)

    def _after_prefix(self, items: Sequence[m.Item]) -> list[m.Item]:
        """The items without what the prefix has of their text; a call that is broken is given whole."""
        self.line, self.looked = after(self.line, items), self.length + sum([len(raw) for _, raw, _ in items])
        found: list[m.Item] = []
        for op, raw, value in items:
            size = min(len(raw), self.origin - self.length)
            self.length += size
            found.append((op, raw[size:], raw if op == CALL else value))
        return found

    def _say(self, op: int, text: str, events: list[Event]) -> bool:
        """Adds text, which may be empty, to the content or the reasoning. Returns whether the last event was such."""
        alike = False
        if text:
            thought = op == REASONING
            (self.reasoning if thought else self.content).append(text)
            kind = Reasoning if thought else Content
            alike = bool(events) and type(events[-1]) is kind
            events.append(kind(text))
            if self.answer is not None and op == CONTENT:
                wrong = self.answer.wrong
                self.answer.read(text)
                self._judge_answer(wrong, self.length)
        return alike

    def _mark(self, op: int, value: Any, at: int, events: list[Event]) -> None:
        """Takes what an item at the position ``at`` says of the call that is open, or that it opens."""
        call = self.call
        if op == CALL_BEGIN:
            if self.unwanted:
                self.note("unwanted-call", at, "no call")
            else:
                self.call = Call(self.count, at, len(self.notes))
            if value is not None:  # the opener that it lacks
                self.note("unopened-call", at, value)
            return
        if call is None:
            return
        if op == ARG_NAME:
            call.give(value)
            if call.again:
                self.note("repeated-argument", at, "an argument that the call has not given")
            else:
                self.untold.append(f"{', ' if call.members else '{'}{quoted(value)}: ")
                call.members += 1
            return
        if op == CALL_END:
            if call.members > 0:
                self.untold.append("}")
            elif not (self.untold or call.arguments):
                self.untold.append("{}")
        if self.untold:
            self.tell(events)
        if op == m.NAME:
            call.name = value
        elif op == m.ID:
            if not call.id:  # if a model writes several ids, the first counts
                call.id = value or None
        elif op == m.ARGS_BEGIN:
            call.members = 0
            self._start(call, events)
        elif op == CALL_END:
            call.complete = not call.other
            self.close(events, at)
        elif op == m.BROKEN_BEGIN:
            call.broken = call.broken or (call.other and not self.ending)
            self._start(call, events)
        elif op == m.BROKEN_VALUE:
            call.other = value is not None
            call.broken = not call.other and call.members <= 0 and not self.ending
        elif op == m.BROKEN_END:
            self.close(events, at)

    def _start(self, call: Call, events: list[Event]) -> None:
        """Sends the call's start, once its name is known, with the arguments that came before the name."""
        if call.sink is not None or call.name is None:
            return
        call.sink = partial(CallArguments, call.index), call.arguments
        if self.tools and call.name not in self.tools:
            known = ", ".join(self.tools.names()[:_NAMES_SHOWN])
            self.note("unknown-tool", call.start, f"one of {known}", call.index)
        id = None if call.id is None and self.late_ids else self._id(call)
        events.append(CallStart(call.index, call.name, id))
        if call.arguments:
            events.append(CallArguments(call.index, "".join(call.arguments)))
        if self.checks is not None:
            self._judge(call)

    def _judge(self, call: Call) -> None:
        """Notes that the arguments cannot become valid, once."""
        assert self.checks is not None and call.name is not None
        if call.reader is None:
            call.reader = self.checks.reader(call.name)
        wrong = call.reader.wrong
        now = call.read().wrong
        if now and not wrong:
            self.note("schema", call.start, f"arguments that fit the schema at {now}", call.index)

    def judge_by(self, checks: Checks) -> None:
        """Has arguments and content judged from here on."""
        self.checks, self.answer = checks, checks.answer()
        if self.answer is not None:
            self._judge_answer("", self.origin)

    def _judge_answer(self, wrong: str, at: int) -> None:
        """Notes that the content cannot become valid, once. ``wrong``: what was told before."""
        if self.answer.wrong and not wrong:
            self.note("schema", at, f"an answer that fits the schema at {self.answer.wrong}")

    def judge_whole(self) -> None:
        """Notes that the content, which is over, is not valid."""
        if self.answer is not None and (self.content or not self.calls):
            wrong = self.answer.wrong
            self.answer.finish("".join(self.content))
            self._judge_answer(wrong, self.length)

    def close(self, events: list[Event], at: int) -> None:
        """Ends the open call, if there is one, at the position ``at``."""
        call, self.call = self.call, None
        if call is not None:
            call.end = at
            self._start(call, events)
            if call.sink is not None:
                self.calls.append(call)
                events.append(CallEnd(call.index, self._id(call), call.complete))
            else:  # it broke before its name: the next call has its index
                for place in range(call.noted, len(self.notes)):
                    code, at, expected, index = self.notes[place]
                    if index == call.index:
                        self.notes[place] = code, at, expected, None

    def _id(self, call: Call) -> str:
        if call.id:
            return call.id
        if not call.made:
            call.made = call_id(self.settled_seed(), call.index)
        return call.made

    def settled_seed(self) -> str:
        """The seed, which a turn may only make now: most streams have no call."""
        if not isinstance(self.seed, str):
            self.seed = self.seed.id_seed
        return self.seed

    def over(self) -> None:
        """Notes that no more text will come. The items of the held text follow."""
        self.ending = True
        if self.call is not None:
            self.call.broken = False

    def note(self, code: DiagnosticCode, at: int, expected: str, call: int | None = None) -> None:
        """Notes that something was wrong at the position ``at``, in ``call`` or else in the open call. What is mended
        again and again in one value is noted once."""
        opened = self.call
        if code == "mended":
            kind = expected, -1 - len(self.calls), 0
            if opened is not None:
                kind = expected, opened.start, opened.members
            if kind in self.mended:
                return
            self.mended[kind] = None
        if call is None and opened is not None:
            call = opened.index
        self.notes.append((code, at, expected, call))
        if code in STRICT:
            self.wrong = True
            if code in SERIOUS:
                self.serious = True

    def note_unknown(self, ids: Iterable[tuple[int, int]]) -> None:
        """Notes ids that the tokenizer does not have, each after its position."""
        for at, id in ids:
            large = id.bit_length() > 9999  # Python writes no longer ones
            known = f"a token of the vocabulary, which has no id {'so large' if large else id}"
            self.note("unknown-token", at, known)

    # the message

    def message(self, ended: bool, ids: Any, regions: bool, over: bool) -> Message:
        """The message of the text so far.

        ``ended``: the model ended its turn. ``ids``: the feed of ids, None if text was fed. ``regions``: whether it has
        its regions. ``over``: no more text will come. Until then the regions are made at once, because what they are
        made from changes.
        """
        text, places = self._written(ids)
        for call in self.calls[len(self.records) :]:
            self.records.append(self._record(call))
            self.whole = self.whole and call.complete
            said = call.name, call.text()
            if call.complete and said in self.said:
                self.note("repeated-call", call.start, "another call than those before", call.index)
            elif call.complete:
                self.said[said] = None
        calls = self.records[:]
        if self.call is not None and self.call.sink is not None:
            calls.append(self._record(self.call))
            ended = ended and self.call.complete
        made: Any = partial(self._regions, ids, len(self.runs), self.length)
        return Message(
            content=joined(self.content),
            reasoning=joined(self.reasoning),
            tool_calls=calls,
            complete=ended and self.whole and not self.serious,
            diagnostics=self._diagnostics(text, places) if self.notes else [],
            regions=[] if not (regions and self.runs) else made if over else made(),
            text=text,
        )

    def _written(self, ids: Any) -> tuple[str, Text]:
        """All that was fed, as the model writes it, and the way to positions in it."""
        places = self.text = self.text or Text(self.origin)
        return places.whole(joined(self.pieces), ids), places

    def call_text(self, call: Call, ids: Any) -> str:
        """The text of a call, as far as it was read."""
        text, places = self._written(ids)
        end = self.length if call.end < 0 else call.end
        return text[places.position(call.start) : places.position(end)]

    def since(self, at: int, fed: int) -> list[tuple[int, int, str]]:
        """What was read from the position ``at`` on, of all that was ``fed``: of each run its beginning, its region and
        the text, as the model writes it."""
        begin = fed
        place = len(self.pieces)
        if at <= self.origin:
            begin, place = self.origin, 0
        while place and begin > at:
            place -= 1
            begin -= len(self.pieces[place])
        text = "".join(self.pieces[place:])
        found: list[tuple[int, int, str]] = []
        end = self.length
        for start, kind in reversed(self.runs):
            if end <= at:
                break
            piece = text[max(start, at) - begin : end - begin]
            found.append((start, kind, piece if self.spelling is None else self.spelling.full(piece)))
            end = start
        return found[::-1]

    def line_after(self, fed: int, items: Sequence[m.Item] = ()) -> m.Line:
        """Where in a line of content the text ends, of all that was ``fed``, after ``items``, which come next."""
        new = [(kind, text, None) for _, kind, text in self.since(self.looked, fed)]
        self.line, self.looked = after(self.line, new), self.length
        return after(self.line, items)

    def place(self, at: int, ids: Any) -> int:
        """Where the position ``at`` is in the model's text."""
        return self._written(ids)[1].position(at)

    def named_calls(self, ids: Any) -> list[tuple[int, str]]:
        """Where each call begins whose name is known, and its name."""
        _, places = self._written(ids)
        calls = self.calls if self.call is None else [*self.calls, self.call]
        return [(places.position(call.start), call.name) for call in calls if call.name is not None]

    def _record(self, call: Call) -> ToolCall:
        return made_call(call.index, self._id(call), call.name or "", call.text(), call.complete)

    def _diagnostics(self, text: str, places: Text) -> list[Diagnostic]:
        """One diagnostic for each note, in the order of the text. One that no further text changes is made once."""
        kept = found = self.diagnostics
        nameless = self.call.index if self.call is not None and self.call.sink is None else -1
        for code, at, expected, call in self.notes[len(kept) :]:
            place = places.position(at)
            if kept is found and (
                place + _SNIPPET > len(text) or at >= self.length or (call is not None and call == nameless)
            ):
                found = kept[:]
            if code == "unknown-token":
                call = self._call_at(at)
            made = Diagnostic(code, place, expected, text[place : place + _SNIPPET], call)
            insort_right(found, made, key=_place)
        return kept[:] if kept is found else found

    def _call_at(self, at: int) -> int | None:
        """The call that the position ``at`` is in. A token comes before the machine has read it, and before other ids
        of its piece, so the call that is open then says nothing."""
        run = bisect_right(self.runs, at, key=_start) - 1
        if run < 0 or self.runs[run][1] != CALL:
            return None
        calls = self.calls if self.call is None else [*self.calls, self.call]
        call = bisect_right(calls, at, key=attrgetter("start")) - 1
        return calls[call].index if call >= 0 else None

    def _regions(self, ids: Any, count: int, length: int) -> list[Region]:
        """One region for each of the first ``count`` runs, the last of which ends at ``length``. A region that is over
        is made once."""
        kept = self.regions
        first = min(len(kept), count - 1)
        runs = self.runs[first:count]
        text: Text = self.text or Text(self.origin)
        bounds = [*map(_start, runs), length]
        places = [text.position(bound) for bound in bounds]
        if ids is None:
            made = [
                made_region(KINDS[kind], start, end, None, None)
                for (_, kind), start, end in zip(runs, places, places[1:], strict=False)
            ]
        else:
            offsets = ids.offsets
            tokens = [bisect_left(offsets, bound) for bound in bounds]
            made = [
                made_region(KINDS[kind], start, end, holding(offsets, token, at), last)
                for (at, kind), start, end, token, last in zip(
                    runs, places, places[1:], tokens, tokens[1:], strict=False
                )
            ]
        kept += made[len(kept) - first : -1]
        return [*kept[:first], *made]

    def token_regions(self, starts: Sequence[int], first: int, fed: int, over: bool) -> list[RegionKind]:
        """As `Stream.token_regions`. ``starts``: where the tokens begin. The text was fed up to ``fed``. ``over``: no
        more comes."""
        found: list[RegionKind] = []
        runs = self.runs
        for place in range(first, len(starts)):
            start = starts[place]
            after = bisect_right(starts, start, place)  # a token may hold only a part of a character
            stop = starts[after] if after < len(starts) else fed
            if not over and not start < stop <= self.length:
                break
            run = max(bisect_right(runs, start, key=_start) - 1, 0)
            kind = runs[run][1] if runs else MARKUP
            while kind == MARKUP and run + 1 < len(runs) and runs[run + 1][0] < stop:
                run += 1
                kind = runs[run][1]
            found.append(KINDS[kind])
        return found


_place = attrgetter("position")
_start = itemgetter(0)
