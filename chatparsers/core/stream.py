"""A stream: pieces in, events out, the message at any time.

Strategy: the machine hands out trail items that are final; `_apply` turns them into events and the message's
parts. Where the machine waits in the middle of text of which the next piece may be more, `_settle` leaves a
shortcut: a search for the first character that may need the machine. A piece without one is passed on as it is;
that is most of them.

Invariants: ``_fed`` is the position of the end of what was fed, in the machine's characters (where a special token is
one); positions become characters of the model's text when the message is asked for. The order of the items is the order
of the text, so regions are runs.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from . import machine as m
from .errors import OutputError, RequestError
from .events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
from .message import Diagnostic, Message, Region, ToolCall
from .values import Transcoder

if TYPE_CHECKING:
    from .turn import Turn

__all__ = ["Start", "Stream", "StreamOptions"]

_KINDS = ("markup", "content", "reasoning", "call")
_SERIOUS = frozenset({"malformed", "truncated"})
_SNIPPET = 40


def _no_shortcut(piece: str) -> object:
    return piece


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """What `Turn.stream` was asked for."""

    strict: bool = False
    inline: bool = False
    skip_special_tokens: bool = True
    token_text_fallback: bool = False


Start = tuple[m.Machine, int, int, tuple[m.Item, ...]]
"""How a stream begins: the machine behind the prefix, the length of that, how much of it is decided without the call
that it leaves open, and what was read of that call."""


class _Call:
    """A call being read; ``members``: how many arguments have begun, -1 where they come as one object. ``broken``: that
    object is no JSON, so the text that follows is kept as it stands."""

    __slots__ = ("arguments", "broken", "complete", "id", "index", "members", "name", "start", "started")

    def __init__(self, index: int, start: int) -> None:
        self.index = index
        self.start = start
        self.id: str | None = None
        self.name: str | None = None
        self.arguments: list[str] = []
        self.members = -1
        self.started = False
        self.broken = False
        self.complete = False

    def copy(self) -> _Call:
        other = _Call(self.index, self.start)
        for name in _Call.__slots__:
            setattr(other, name, getattr(self, name))
        other.arguments = self.arguments[:]
        return other


class Stream:
    """Reads one turn of the model as it is written. Made by `Turn.stream`."""

    __slots__ = (
        "_call",
        "_calls",
        "_content",
        "_early",
        "_ended",
        "_ending",
        "_fed",
        "_finished",
        "_ids",
        "_kind",
        "_length",
        "_machine",
        "_make",
        "_notes",
        "_options",
        "_origin",
        "_parts",
        "_plain",
        "_reasoning",
        "_runs",
        "_strict",
        "_texts",
        "_turn",
        "_value",
    )

    def __init__(
        self,
        turn: Turn,
        options: StreamOptions,
        machine: m.Machine,
        origin: int,
        read: int,
        call: tuple[m.Item, ...] = (),
    ) -> None:
        self._turn = turn
        self._options = options
        self._machine = machine
        self._strict = options.strict
        self._ids: Any = None
        self._origin = origin
        self._fed = origin
        self._length = read
        self._texts: list[str] = []
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_Call] = []
        self._call: _Call | None = None
        self._runs: list[tuple[int, int]] = []
        self._kind = -1
        self._notes: list[tuple[str, int, str, int | None]] = []
        self._plain: Callable[[str], object] = _no_shortcut
        self._value: Transcoder | None = None
        self._make: Callable[[str], Event] = Content
        self._parts: list[str] = self._content
        self._finished = ""
        self._ended = False
        self._ending = False
        self._early: list[Event] = []
        self._apply(call, self._early)
        self._settle()

    # what a user calls

    def feed(self, piece: str | int | list[int]) -> list[Event]:
        """The events that ``piece`` brings: more text, a token id, or a list of ids.

        Never raises for what the model wrote, unless the stream is strict (`OutputError`). Raises `RequestError` where
        text and ids are mixed, where ids come without a tokenizer, and after `finish`.
        """
        if type(piece) is str and piece and self._ids is None:
            if self._plain(piece) is None:
                self._texts.append(piece)
                self._parts.append(piece)
                self._fed += len(piece)
                return [self._make(piece)]
            if self._value is not None:
                return self._feed_value(self._value, piece)
        return self._feed(piece)

    def finish(self, reason: str | None = None) -> list[Event]:
        """The events of what was still held; no more text will come. Finishing again does nothing.

        ``reason``: ``"stop"`` where the model ended its turn, ``"length"`` where it was cut off: the message is
        then not complete. None: it ended, as far as one can see.
        """
        if reason not in (None, "stop", "length"):
            raise RequestError(f"finish: expected the reason 'stop' or 'length', found {reason!r}")
        events: list[Event] = []
        if not self._finished:
            self._finished = reason or "stop"
            self._catch_up()
            if self._ids is not None:
                self._run(self._ids.flush(), events)
            if not self._ended:
                self._end(events, reason == "length")
            if reason == "length" and not any(note[0] == "truncated" for note in self._notes):
                self._notes.append(("truncated", self._fed, "the rest of the turn", None))
            self._check()
        return events

    @property
    def region(self) -> str:
        """Where the stream is: ``reasoning``, ``content``, ``call`` or ``markup``."""
        machine = self._machine
        if self._ended:
            return "markup"
        ins = machine.program.code[machine.ip]
        if machine.calling or machine.value is not None:
            return "call"
        return _KINDS[ins[1] if ins[0] == m.TEXT else machine.place]

    def fork(self) -> Stream:
        """An independent copy at this point: for beams, and for tokens that may yet be rejected."""
        other = Stream.__new__(Stream)
        for name in Stream.__slots__:
            if name not in ("_make", "_parts", "_plain", "_value"):
                setattr(other, name, getattr(self, name))
        other._machine = self._machine.copy()
        other._ids = self._ids.copy() if self._ids is not None else None
        other._texts, other._content, other._reasoning = self._texts[:], self._content[:], self._reasoning[:]
        other._calls = [call.copy() for call in self._calls]
        other._call = other._calls[-1] if self._call is not None else None
        other._runs, other._notes = self._runs[:], self._notes[:]
        other._early = list(map(copy, self._early))
        other._settle()
        return other

    @property
    def message(self) -> Message:
        """What has been read so far; whole after `finish`."""
        spelling = self._ids.spelling if self._ids is not None else None
        places = _Places("".join(self._texts), spelling, self._origin)
        text = places.text
        diagnostics = [
            Diagnostic(code, at, expected, text[at : at + _SNIPPET], call)
            for code, at, expected, call in (
                (code, places.position(at), expected, call)
                for code, at, expected, call in sorted(self._notes, key=_place)
            )
        ]
        calls = [
            ToolCall(call.index, self._id(call), call.name, "".join(call.arguments), call.complete)
            for call in self._calls
            if call.started and call.name is not None
        ]
        return Message(
            content="".join(self._content),
            reasoning="".join(self._reasoning),
            tool_calls=calls,
            complete=self._finished == "stop" and all(call.complete for call in calls) and not self._broken(),
            diagnostics=diagnostics,
            regions=self._regions(places),
            text=text,
        )

    # feeding

    def _feed(self, piece: str | int | list[int]) -> list[Event]:
        if self._finished:
            raise RequestError("feed: the stream is finished; make a new one with turn.stream()")
        events: list[Event] = []
        if isinstance(piece, str):
            if self._ids is not None and self._ids.offsets:
                raise RequestError(
                    "feed: ids were fed before, and text cannot be mixed with them: feed ids alone"
                )
            self._run(piece, events)
        elif self._ids is None:
            if self._turn.tokenizer is not None and not self._texts:
                self._start_ids()
                return self._feed(piece)
            if self._texts:
                raise RequestError(
                    "feed: text was fed before, and ids cannot be mixed with it: feed text alone"
                )
            raise RequestError(
                "feed: ids need the model's tokenizer: bind(tokenizer=…) or load(…, tokenizer=…)"
            )
        elif isinstance(piece, int):
            self._feed_id(piece, events)
        else:
            self._feed_ids(piece, events)
        self._check()
        return events

    def _feed_value(self, value: Transcoder, piece: str) -> list[Event]:
        """The second shortcut: a piece inside arguments goes straight to the value's transcoder, and to the
        machine only where something happens that is more than text."""
        end = value.scan(piece, 0, False)
        if end == len(piece) and not (value.done or value.error or value.notes):
            self._texts.append(piece)
            self._fed += end
            self._plain = value.plain or _no_shortcut
            if not value.out:
                return []
            self._parts.append(value.out)
            return [self._make(value.out)]
        events: list[Event] = []
        self._run(piece, events, end)
        self._check()
        return events

    def _feed_id(self, id: int, events: list[Event]) -> None:
        text = self._ids.text(id, self._fed)
        if text is None:
            self._feed_ids((id,), events)
        elif text and self._plain(text) is None:
            self._texts.append(text)
            self._parts.append(text)
            self._fed += len(text)
            events.append(self._make(text))
        elif text and self._value is not None:
            events += self._feed_value(self._value, text)
        else:
            self._run(text, events)

    def _feed_ids(self, ids: Iterable[int], events: list[Event]) -> None:
        for end, text in self._ids.decode(ids, self._fed):
            if not end or self._ended:
                self._run(text, events)
                continue
            known = self._ids.is_marker(text)
            if known and self._machine.value is None:
                self._run(text, events)
            else:
                self._catch_up()
                self._texts.append(text)
                self._fed += 1
            if not self._ended and (end == 1 or self._length < self._fed):
                self._end(events)

    def _start_ids(self) -> None:
        """Ids are fed: begins anew with a program in which markers are single tokens."""
        (self._machine, self._origin, self._length, call), self._ids = self._turn.start_ids(self._options)
        self._fed = self._origin
        self._calls, self._call, self._notes, self._early = [], None, [], []
        self._apply(call, self._early)
        self._settle()

    def _run(self, text: str, events: list[Event], scanned: int = -1) -> None:
        """The machine reads ``text``, of which the value that is being read has already scanned so many characters."""
        if not text:
            return
        self._texts.append(text)
        self._catch_up()
        self._begin(events)
        self._fed += len(text)
        if self._ended:
            self._advance(m.MARKUP, len(text))
            return
        machine = self._machine
        machine.feed(text, scanned)
        self._apply(machine.take(), events)
        self._settle()

    def _end(self, events: list[Event], cut_off: bool = False) -> None:
        """The turn is over: what is held is decided. ``cut_off``: the model had more to say."""
        self._catch_up()
        self._begin(events)
        machine = self._machine
        if self._call is not None:
            self._call.broken = False
        self._ending = True
        machine.finish(cut_off)
        self._apply(machine.take(), events)
        if self._call is not None:
            self._close(self._call, events)
        if self._length < self._fed:
            self._advance(m.MARKUP, self._fed - self._length)
        self._ended = True
        self._plain = _no_shortcut

    def _begin(self, events: list[Event]) -> None:
        """The call that the prefix leaves open comes with the first event."""
        if self._early:
            events += self._early
            self._early = []

    def _catch_up(self) -> None:
        """Tells the machine of the pieces that took the shortcut: nothing of them is left to read."""
        if self._plain is not _no_shortcut or self._value is not None:
            machine = self._machine
            machine.base, machine.text, machine.i = self._fed, "", 0
            self._length = self._fed
            self._plain = _no_shortcut
            self._value = None

    def _settle(self) -> None:
        """Finds the shortcut for the next piece, if there is one."""
        self._plain = _no_shortcut
        self._value = None
        machine = self._machine
        if machine.live or machine.i < len(machine.text) or self._ended or self._early:
            return
        ins = machine.program.code[machine.ip]
        if ins[0] == m.TEXT and self._kind == ins[1]:
            if ins[1] == m.CONTENT:
                self._plain, self._make, self._parts = ins[4], Content, self._content
            elif ins[1] == m.REASONING:
                self._plain, self._make, self._parts = ins[4], Reasoning, self._reasoning
        elif machine.value is not None and ins[1] == m.ARGUMENT:
            call = self._call
            if call is not None and call.started and self._kind == m.CALL:
                self._value = machine.value
                self._plain = machine.value.plain or _no_shortcut
                self._make = partial(CallArguments, call.index)
                self._parts = call.arguments

    # from trail items to events

    def _advance(self, kind: int, length: int) -> None:
        if kind != self._kind and length:
            self._runs.append((self._length, kind))
            self._kind = kind
        self._length += length

    def _apply(self, items: Sequence[m.Item], events: list[Event]) -> None:
        spelling = self._ids.spelling if self._ids is not None else None
        for op, raw, value in items:
            if raw:
                if self._length < self._origin:
                    clipped = min(len(raw), self._origin - self._length)
                    self._length += clipped
                    raw = raw[clipped:]
                if spelling is not None and m.CONTENT <= op <= m.REASONING:
                    self._split(op, raw)
                    raw = spelling.text(raw)
                else:
                    self._advance(op if op < m.CALL else m.CALL, len(raw))
            if op == m.MARKUP:
                continue
            if op == m.CONTENT:
                text = raw if value is None else value if spelling is None else spelling.text(value)
                if text:
                    self._content.append(text)
                    _say(events, Content, text)
            elif op == m.REASONING:
                if raw:
                    self._reasoning.append(raw)
                    _say(events, Reasoning, raw)
            elif op == m.NOTE:
                code, at, expected = value
                self._notes.append((code, at, expected, self._call.index if self._call is not None else None))
            elif op == m.CALL_BEGIN:
                self._call = _Call(len(self._calls), self._length)
                self._calls.append(self._call)
            elif self._call is not None:
                self._in_call(self._call, op, raw, value, events)
        if events:
            _join(events)

    def _in_call(self, call: _Call, op: int, raw: str, value: Any, events: list[Event]) -> None:
        if op == m.ARGUMENT:
            if self._ids is not None:
                value = self._ids.spelling.json(value)
            self._argue(call, value, events)
        elif op == m.NAME:
            call.name = value
        elif op == m.ID:
            if not call.id:  # the first stands, where a model writes several
                call.id = value or None
        elif op == m.ARGS_BEGIN:
            call.members = 0
            self._start(call, events)
        elif op == m.ARG_NAME:
            name = json.dumps(value, ensure_ascii=False)
            self._argue(call, (", " if call.members else "{") + name + ": ", events)
            call.members += 1
        elif op == m.BROKEN_BEGIN:
            self._start(call, events)
        elif op == m.BROKEN_VALUE:
            call.broken = call.members < 0 and not self._ending
        elif op == m.CALL:
            if call.broken and raw:
                self._argue(call, raw if self._ids is None else self._ids.spelling.full(raw), events)
        elif op == m.CALL_END:
            if call.members > 0:
                self._argue(call, "}", events)
            elif not call.arguments:
                self._argue(call, "{}", events)
            call.complete = True
            self._close(call, events)
        elif op == m.BROKEN_END:
            self._close(call, events)

    def _argue(self, call: _Call, text: str, events: list[Event]) -> None:
        if not text:
            return
        call.arguments.append(text)
        if call.started:
            _say(events, CallArguments, text, call.index)
        else:
            self._start(call, events)

    def _start(self, call: _Call, events: list[Event]) -> None:
        """The call's name is known: it is emitted, with the arguments that came before."""
        if call.started or call.name is None:
            return
        call.started = True
        turn = self._turn
        if turn.tools and call.name not in turn.tools:
            self._notes.append(
                ("unknown-tool", call.start, f"one of {', '.join(turn.tools.names()[:6])}", call.index)
            )
        written = call.id is None and turn.format.late_ids
        events.append(CallStart(call.index, call.name, None if written else self._id(call)))
        if call.arguments:
            _say(events, CallArguments, "".join(call.arguments), call.index)

    def _close(self, call: _Call, events: list[Event]) -> None:
        self._start(call, events)
        self._call = None
        if call.started:
            events.append(CallEnd(call.index, self._id(call), call.complete))

    def _split(self, op: int, raw: str) -> None:
        """Regions of text in which there are special tokens that belong to no marker: they are markup."""
        for dropped, text in self._ids.spelling.runs(raw):
            self._advance(m.MARKUP if dropped else op, len(text))

    def _id(self, call: _Call) -> str:
        return call.id or self._turn.call_id(call.index)

    # what was wrong, and where

    def _broken(self) -> bool:
        return any(note[0] in _SERIOUS for note in self._notes)

    def _check(self) -> None:
        """In strict mode: raises for the first thing that is wrong."""
        if self._strict and self._broken():
            self._strict = False
            message = self.message
            wrong = next(d for d in message.diagnostics if d.code in _SERIOUS)
            raise OutputError(wrong.code, wrong.position, wrong.expected, wrong.found, message)

    def _regions(self, places: _Places) -> list[Region]:
        self._catch_up()
        offsets = self._ids.offsets if self._ids is not None else None
        ends = [start for start, _ in self._runs] + [self._length]
        found = []
        for (start, kind), end in zip(self._runs, ends[1:], strict=True):
            tokens = (None, None) if offsets is None else _token_span(offsets, start, end)
            found.append(Region(_KINDS[kind], places.position(start), places.position(end), *tokens))
        return found


def _place(note: tuple[str, int, str, int | None]) -> int:
    return note[1]


def _say(events: list[Event], kind: Any, text: str, index: int | None = None) -> None:
    events.append(kind(text) if index is None else kind(index, text))


def _join(events: list[Event]) -> None:
    """Makes one event of neighbours of a kind."""
    if len(events) < 2:
        return
    joined: list[Event] = []
    for (kind, index), run in groupby(events, lambda event: (type(event), getattr(event, "index", None))):
        if kind is CallStart or kind is CallEnd:
            joined += run
        else:
            _say(
                joined,
                kind,
                "".join([event.text for event in run if not isinstance(event, CallStart | CallEnd)]),
                index,
            )
    events[:] = joined


def _token_span(offsets: list[int], start: int, end: int) -> tuple[int, int]:
    """The tokens that hold the characters from ``start`` to ``end``; ``offsets``: where each token begins."""
    first = bisect_left(offsets, start)
    if first == len(offsets) or offsets[first] > start:
        first = bisect_right(offsets, start) - 1
    return max(first, 0), bisect_left(offsets, end)


class _Places:
    """The model's text, and where in it a position of the machine is: there a special token is one character."""

    def __init__(self, encoded: str, spelling: Any, origin: int) -> None:
        self.origin = origin
        self.marks: list[int] = []
        self.grown: list[int] = [0]
        self.text = encoded
        if spelling is not None:
            for match in _special(encoded):
                self.marks.append(match.start())
                self.grown.append(self.grown[-1] + len(spelling.full(match.group())) - 1)
            self.text = spelling.full(encoded)

    def position(self, at: int) -> int:
        """``at`` as a character of the model's text."""
        at = max(at - self.origin, 0)
        return at + self.grown[bisect_left(self.marks, at)] if self.marks else at


_special = re.compile("[\ud800-\udfff]").finditer
