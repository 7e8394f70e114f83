"""A stream takes pieces, gives events, and has the message at any time.

Strategy: the machine hands out trail items that are final. The transcript turns them into events and the message's
parts. A piece takes the first of these ways that is open (`_read`). (1) When the machine waits in the middle of text,
there is a shortcut: a search for the first character that may need the machine. Most pieces have no such character;
they are passed on unchanged, and the message gets them all at once when another way is taken or somebody asks. (2)
Within arguments, a piece goes to the value's transcoder. (3) At a place that is known (known.py), what a machine did
there with the same text is done again. (4) The machine reads it. Without the third way, which can be switched off, all
is the same, and slower.

A stream begins at its first piece, because only that tells whether text or ids come. Until then it holds only what was
asked of it (``_asked``), and ``_ids`` is False. Whatever looks at it before lets it begin with text.

Invariants: ``_fed`` is the position of the end of the fed text, in the machine's characters (a special token is one
character), without the pieces that have just taken the shortcut (``_passed``). While a shortcut is set, the machine has
read everything but does not know how much that was; ``_held`` is the end of the text, which an open value has left.
`_catch_up` gives the machine both before it runs again. While ``_spot`` is set, the machine stands anywhere:
`_at_place` puts it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import lru_cache, partial
from typing import Any

from ..core.machine import instructions as m
from ..core.machine.machine import Machine
from ..core.machine.value import Search, Transcoder
from ..errors import OutputError, RequestError, lacks_tokenizers, read_reason
from ..lazy import load_reference
from ..public import made_by, public
from ..schema.tools import Toolset
from .back import Back
from .call import Call
from .events import Content, Event, joined_events
from .ids import Piece, read_ids
from .known import MOST_AT_ONCE, Spot, known
from .message import FinishReason, Loop, Message, RegionKind
from .start import Asked, Start, start
from .state import StateKind, StreamState, state_of
from .transcript import KINDS, STRICT, Transcript

_no_shortcut: Callable[[str], object] = len
"""In place of a search: it finds something in every piece."""


@public
class Stream:
    """Reads one turn of the model as it is written. Made by `Turn.stream`."""

    __slots__ = (
        "_asked", "_at", "_back", "_early", "_ended", "_fed", "_finished", "_held", "_ids", "_kind", "_known",
        "_loops", "_machine", "_make", "_parts", "_passed", "_pieces", "_plain", "_spot", "_strict", "_transcript",
        "_value",
    )  # fmt: skip

    _asked: Asked | None
    _strict: bool
    _ids: Any
    _finished: str
    _ended: bool
    _back: Back | None
    """What is kept so that ids can be taken back (`Back`); None: none can."""
    _loops: Any
    """Who looks for loops (`chatparsers.watch.loops.Loops`), once somebody asked."""

    def __init__(self) -> None:
        made_by("a stream", "Turn.stream()")

    # how it begins

    def _begin_with_text(self) -> None:
        """Begins to read text. If the turn has a tokenizer, ids may still come in its place."""
        assert self._asked is not None
        turn, inline, *_ = self._asked
        self._begin(start(turn.format, turn.options, turn.prefix, turn.tools, inline), None, turn.tools)
        if turn.tokenizer is None:
            self._asked = None

    def _begin_with_ids(self) -> None:
        """Begins to read ids, with a program in which markers are single tokens."""
        if self._ids is None and (self._passed or self._fed > self._transcript.origin):
            raise RequestError("feed: text was fed before, and ids cannot be mixed with it: feed text alone")
        if self._asked is None or self._asked[0].tokenizer is None:
            raise RequestError(
                "feed: ids need the model's tokenizer: bind(tokenizer=…) or load(…, tokenizer=…)"
                + lacks_tokenizers()
            )
        begin, ids = _loaded(_ID_START)(*self._asked[:4])
        self._begin(begin, ids, self._asked[0].tools)
        self._asked = None

    def _begin(self, begin: Start, ids: Any, tools: Toolset) -> None:
        """``ids``: the feed of ids, None if text is fed."""
        shared, origin, read, call, before, line = begin
        self._machine = machine = shared.copy()
        machine.tools = tools
        self._ids = ids
        self._fed = origin
        turn, _, _, _, seed, check = self._asked or _NOT_ASKED
        seed = turn if seed is None else seed
        spelling = ids.spelling if ids is not None else None
        self._transcript = Transcript(tools, machine.program, seed, origin, read, spelling, line)
        if before:
            earlier = Transcript(tools, machine.program, "", 0, 0, spelling)
            earlier.apply(before, [])
            self._transcript.earlier = earlier.whole_calls()
        if check:
            self._transcript.judge_by(load_reference(_CHECKS)(turn))
        self._pieces = self._transcript.pieces
        self._early: list[Event] = []
        """The events of the call that the prefix leaves open. They come with the first piece."""
        # The shortcut: a search for the first character that needs the machine, and what a piece without one becomes.
        self._plain: Callable[[str], object] = _no_shortcut
        self._make: Callable[[str], Event] = Content
        self._parts: list[str] = self._pieces
        self._passed: list[Any] = []
        self._kind = m.CONTENT
        self._value: Transcoder | None = None
        self._held = ""
        # Where the machine is, after ``_at`` characters, if that place is known (known.py), or where its value began.
        self._known = known(machine.program, tools)
        self._spot: Spot | None = None
        self._at = origin
        if call:
            self._transcript.apply(call, self._early)
        elif self._known is not None:
            self._spot = self._known.begin(shared)
        self._settle()

    # what a user calls

    def feed(self, piece: Piece) -> list[Event]:
        """Reads ``piece`` (more text, a token id, or several ids as a list or an array) and returns its events.

        Never raises for what the model wrote, unless the stream is strict (`OutputError`). Raises `RequestError` for a
        piece of another type, if text and ids are mixed, if ids come without a tokenizer, and after `finish`.

        >>> stream = chatparsers.get_format("qwen3").bind(tools=tools).stream()
        >>> stream.feed("Hi <tool_")
        [Content(text='Hi ')]
        >>> stream.feed("box>")
        [Content(text='<tool_box>')]
        """
        if type(piece) is str and piece and self._ids is None:
            if self._plain(piece) is None:  # as in `_read`, without its call
                self._passed.append(piece)
                return [self._make(piece)]
            if not (self._finished or self._strict):
                events: list[Event] = []
                if self._value is None:
                    self._read_on(piece, events)
                else:
                    self._read_value(self._value, piece, events)
                return events
        if type(piece) is int and self._ids:
            text = self._ran(piece)
            if text:
                return [self._make(text)]
        return self._feed(piece)

    def finish(self, reason: FinishReason | str | None = None) -> list[Event]:
        """Ends the text and returns the events of the held text. Finishing again does nothing.

        ``reason``: ``"stop"`` if the model ended its turn; ``"length"`` if it was cut off, so that the message is not
        complete; None if the engine gives no reason, which counts as an end. Other words of engines mean one of the
        two: ``eos``, ``stop_sequence``, ``tool_calls``; ``max_tokens``, ``abort``. Raises `RequestError` for others.

        >>> stream = chatparsers.get_format("qwen3").bind(tools=tools).stream()
        >>> stream.feed("Hi <tool_")
        [Content(text='Hi ')]
        >>> stream.finish("length")
        [Content(text='<tool_')]
        >>> stream.message.complete
        False
        """
        reason = read_reason(reason)
        events: list[Event] = []
        if not self._finished:
            if self._ids is False:
                self._begin_with_text()
            self._finished = reason or "stop"
            if self._ids is not None:
                self._run(self._ids.flush(), events)
            if not self._ended:
                self._end(events, reason == "length")
            if reason == "length" and not any(note[0] == "truncated" for note in self._transcript.notes):
                self._transcript.note("truncated", self._fed, "the rest of the turn")
            if self._strict:
                self._check()
        return events

    @property
    def ended(self) -> bool:
        """Whether the turn is over: an id ended it, or it was finished."""
        return self._ended

    @property
    def region(self) -> RegionKind:
        """The region that the stream is in: ``reasoning``, ``content``, ``call`` or ``markup``."""
        self._record()
        return "markup" if self._ended else KINDS[self._at_place().region]

    @property
    def state(self) -> StreamState:
        """What the model is writing now. It changes with the piece that closes a part, not with the text after it.

        >>> stream = chatparsers.get_format("qwen3").bind(tools=tools).stream()
        >>> events = stream.feed("<think>Hm</think>")
        >>> stream.state.kind
        'between'
        >>> events = stream.feed('<tool_call>\\n{"name": "get_weather", "arguments": {"city": "Os')
        >>> stream.state
        StreamState(kind='call', call=0, tool='get_weather', path=('city',))
        """
        record, (kind, tool) = self._record(), self._stands()
        call = record.call
        if kind != "call":
            return StreamState(kind)
        if call is not None and call.name is not None:
            return StreamState(kind, call.index, call.name, call.read().path)
        return StreamState(kind, record.count - (call is not None), tool)

    def _stands(self) -> tuple[StateKind, str]:
        """The kind of what the model is writing, and the tool of a call that is held."""
        if self._ended:
            return "ended", ""
        call = self._transcript.call
        if call is not None and call.name is not None:
            return "call", ""
        if self._plain is not _no_shortcut:
            return ("reasoning" if self._kind == m.REASONING else "content"), ""
        spot, content = self._spot, self._transcript.kind == m.CONTENT
        if spot is None or spot.value is not None:
            return state_of(self._at_place(), content)
        if content not in spot.stands:
            spot.stands[content] = state_of(self._at_place(), content)
        return spot.stands[content]

    def so_far(self, index: int) -> dict[str, Any]:
        """The arguments of the call at ``index`` as Python values, as far as they were read.

        A string has the text that has come, a list or an object the items, and a number or a word is left out until it
        is whole. At the end they are the call's `ToolCall.parsed_arguments`. The object is the stream's own, which
        grows with the next pieces, so asking takes the time of what is new: copy what you keep or change. Raises
        `RequestError` if there is no such call.

        >>> stream = chatparsers.get_format("qwen3").bind(tools=tools).stream()
        >>> events = stream.feed('<tool_call>\\n{"name": "get_weather", "arguments": {"city": "Os')
        >>> stream.so_far(0)
        {'city': 'Os'}
        """
        found: dict[str, Any] = self._call(index, "so_far").read().value
        return found

    @property
    def message(self) -> Message:
        """The message so far; whole after `finish`. It is cheap enough to ask for after each piece."""
        return self._message(True)

    @property
    def loop(self) -> Loop | None:
        """The loop that the model is in: one text four times in a row at least, 200 characters in all, in one region;
        None if it is in none. It looks after every 256 characters of a region.

        It is cheap enough to ask for after each piece, and costs nothing if nobody asks. What is found depends on the
        text alone, not on the pieces. `chatparsers.watch.loops` finds all of a whole message.

        >>> stream = chatparsers.get_format("qwen3").bind().stream()
        >>> events = stream.feed("<think>" + "Wait, let me look at it once more. " * 30)
        >>> stream.loop
        Loop(kind='reasoning', start=7, end=1031, period=35, stuck=True)
        >>> stream.loop.rounds
        29
        """
        record = self._record()
        if self._loops is None:
            self._loops = load_reference(_LOOPS)()
        if self._fed >= self._loops.due or self._finished:
            self._loops.look(record, self._fed, self._ids)
        found: Loop | None = self._loops.open
        return found

    def _message(self, regions: bool) -> Message:
        """The message so far, with or without its regions."""
        return self._record().message(self._finished == "stop", self._ids, regions, bool(self._finished))

    def _named_calls(self) -> list[tuple[int, str]]:
        """Where each call begins whose name is known, and its name."""
        return self._record().named_calls(self._ids)

    def call_text(self, index: int) -> str:
        """What the model wrote of the call at ``index``, as far as it is decided, after the marker that opens it.

        Raises `RequestError` if there is no such call.

        >>> stream = chatparsers.get_format("qwen3").bind(tools=tools).stream()
        >>> events = stream.feed('<tool_call>\\n{"name": "get_weather", "arguments": {"city": "Os')
        >>> stream.call_text(0)
        '{"name": "get_weather", "arguments": {"city": "Os'
        """
        return self._transcript.call_text(self._call(index, "call_text"), self._ids)

    def _call(self, index: int, asked: str) -> Call:
        """The call at ``index``; ``asked``: the method that wants it."""
        record = self._record()
        if type(index) is not int or not 0 <= index < record.count:
            raise RequestError(
                f"{asked}: expected the index of a call, found {index!r} of {record.count} calls"
            )
        return record.called(index)

    def _record(self) -> Transcript:
        """The transcript, which says of all that was read in which region it is."""
        if self._ids is False:
            self._begin_with_text()
        if self._plain is not _no_shortcut or self._value is not None:
            self._note()
        return self._transcript

    def token_regions(self, first: int = 0, *, starts: Sequence[int] | None = None) -> list[RegionKind]:
        """The regions of the tokens from the token ``first`` on, as far as they are decided; of all after `finish`.

        Each token has one region: the first of its characters' regions that is no markup, else ``markup``. So what an
        engine says of each token (its log probability) can be given to the part of the message that it belongs to,
        and nothing is lost or doubled.

            >>> from chatparsers import get_format
            >>> stream = get_format("qwen3").bind().stream()
            >>> events = stream.feed("<think>\\nHm")
            >>> stream.token_regions(starts=[0, 7, 8])
            ['markup', 'markup', 'reasoning']

        ``starts``: the character of the fed text at which each token begins; None if ids were fed. Raises
        `RequestError` if text was fed and ``starts`` is None, and the other way round.
        """
        record = self._record()
        fed_ids = self._ids is not None and self._ids.fed
        if (starts is None) != (bool(fed_ids) or self._fed == record.origin):
            expected = "no starts, as ids were fed" if fed_ids else "starts, as text was fed"
            raise RequestError(f"token_regions: expected {expected}")
        if starts is not None:
            starts = [record.origin + start for start in starts]
        elif fed_ids:
            starts = self._ids.offsets
        return record.token_regions(starts or (), first, self._fed, bool(self._finished))

    def fork(self) -> Stream:
        """An independent copy at this point: for beams, and for tokens that may yet be rejected.

        >>> stream = chatparsers.get_format("qwen3").bind().stream()
        >>> events = stream.feed("He")
        >>> fork = stream.fork()
        >>> events = fork.feed("llo") + fork.finish()
        >>> fork.message.content, stream.message.content
        ('Hello', 'He')
        """
        self._record()
        other = opened(self._asked, self._strict)
        self._copy_to(other)
        other._settle()
        other._back = None if self._back is None else self._back.fork()
        return other

    def rollback(self, n: int) -> None:
        """Takes the last ``n`` ids back: the stream is as if it had never read them. Its events went out before.

        Takes the time of ``n`` ids, whatever the length of the answer. ``turn.stream(rollback=…)`` says how many of the
        last ids can be taken back. Raises `RequestError` for more, for text that was fed as such, and after `finish`.

        >>> turn = chatparsers.get_format("qwen3").bind(tokenizer=tokenizer)
        >>> stream = turn.stream(rollback=8)
        >>> events = stream.feed(tokenizer.encode("Hello").ids)
        >>> events = stream.feed(tokenizer.encode(" Wor").ids)
        >>> stream.rollback(len(tokenizer.encode(" Wor").ids))
        >>> stream.message.content
        'Hello'
        """
        if self._finished:
            raise RequestError("rollback: the stream is finished; make a new one with turn.stream()")
        back, passed = self._back, self._passed if self._ids else []
        if back is not None and type(n) is int and 0 <= n <= min(back.most, len(passed)):
            del passed[len(passed) - n :]
            return
        self._record()
        kept = 0 if back is None else back.possible
        if type(n) is not int or not 0 <= n <= kept:
            more = "" if back is not None else ": make the stream with turn.stream(rollback=…)"
            raise RequestError(f"rollback: expected a number of ids from 0 to {kept}, found {n!r}{more}")
        if n and back is not None:
            self._go_back(back, back.fed - n)
            if self._loops is not None and self._loops.seen > self._fed:
                self._loops = None

    def _go_back(self, back: Back, count: int) -> None:
        """Keeps the first ``count`` ids. If only running text comes after them, it is taken off. Else the stream goes
        on from a copy before, with the ids between."""
        found, shared, again = back.to(count)
        if found is not None:
            if shared:
                found._copy_to(self)
            else:
                for name in _READ:
                    setattr(self, name, getattr(found, name))
                self._pieces, self._passed = self._transcript.pieces, []
            self._settle()
            for id in again:
                if not self._ran(id):
                    self._read_id(id, [])
            if self._ids.unknown:
                self._transcript.note_unknown(self._ids.take_unknown())
        if self._ids.fed > count:
            begin = self._ids.keep(count)
            self._transcript.shorten(begin, self._fed - begin, self._kind)
            self._fed = begin

    def _keep(self, back: Back) -> None:
        """Keeps a copy before an id that may do more than add to running text, if there must be one."""
        if back.due():
            if self._ids.unknown:
                self._transcript.note_unknown(self._ids.take_unknown())
            self._record()
            found = opened(None, self._strict)
            self._copy_to(found)
            back.keep(found)

    def _copy_to(self, other: Stream) -> None:
        """Gives another stream what this one has read, as the transcript knows it."""
        other._strict, other._finished, other._ended = self._strict, self._finished, self._ended
        other._fed, other._held, other._early = self._fed, self._held, self._early
        other._machine = machine = self._at_place().copy()
        other._value = machine.value
        other._known, other._spot, other._at = self._known, self._spot, self._at
        other._ids = self._ids.copy() if self._ids is not None else None
        other._transcript = transcript = self._transcript.copy()
        other._pieces, other._passed = transcript.pieces, []

    def __repr__(self) -> str:
        record = self._record()
        state = "finished" if self._finished else f"in {self.region}"
        return f"<Stream: {state}, {self._fed - record.origin} characters read, {record.count} calls>"

    def __getstate__(self) -> dict[str, Any]:
        """All but the shortcut, which `__setstate__` finds again, and what `rollback` needs."""
        record = self._record()
        record.settled_seed()  # in place of the turn
        self._at_place()
        return {name: getattr(self, name) for name in Stream.__slots__ if name not in _NOT_PICKLED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._pieces, self._passed, self._loops = self._transcript.pieces, [], None
        self._known, self._spot, self._at = known(self._machine.program, self._transcript.tools), None, 0
        self._settle()

    # feeding

    def _feed(self, piece: Piece) -> list[Event]:
        if self._finished:
            raise RequestError("feed: the stream is finished; make a new one with turn.stream()")
        events: list[Event] = []
        if type(piece) is int and self._ids:
            self._read_id(piece, events)
        elif isinstance(piece, str):
            if self._ids is False:
                self._begin_with_text()
            elif self._ids is not None and self._ids.fed:
                raise RequestError(
                    "feed: ids were fed before, and text cannot be mixed with them: feed ids alone"
                )
            if piece:
                self._read(str.__str__(piece), events)  # a type of its own, such as an enum's, is its text
        else:
            ids = read_ids(piece)
            if not self._ids:
                self._begin_with_ids()
            if len(ids) == 1:
                self._read_id(ids[0], events)
            elif self._back is not None:
                for id in ids:
                    if text := self._ran(id):
                        events.append(self._make(text))
                    else:
                        self._read_id(id, events)
                events[:] = joined_events(events)
            else:
                self._feed_ids(ids, events)
        if self._ids and self._ids.unknown:
            self._transcript.note_unknown(self._ids.take_unknown())
        if self._strict:
            self._check()
        return events

    def _ran(self, id: int) -> str:
        """Takes an id that only adds to running text, and returns its text; else ``""``, and nothing changes."""
        text: str = self._ids.texts[id]
        if not text or self._plain(text) is not None:
            return ""
        self._passed.append(id)
        return text

    def _read_id(self, id: int, events: list[Event]) -> None:
        """Reads an id that may do more than add to running text."""
        if self._passed:
            self._note()
        if self._back is not None:
            self._keep(self._back)
            self._back.ids.append(id)
        text = self._ids.text(id)
        if text is None:
            self._feed_ids((id,), events)
        elif text:
            self._read(text, events)

    def _feed_ids(self, ids: Sequence[int], events: list[Event]) -> None:
        if self._passed:
            self._note()
        for end, text in self._ids.decode(ids):
            if end < 0:
                if text:
                    self._read(text, events)
                continue
            in_value = self._value is not None or (self._spot is None and self._machine.value is not None)
            if not end or self._ended or (self._ids.is_marker(text) and not in_value):
                self._run(text, events)
                if not end or self._ended:
                    continue
            else:
                self._catch_up()
                self._pieces.append(text)
                self._fed += 1
            if not self._ended and (end == 1 or self._transcript.length < self._fed):
                self._end(events)

    def _read(self, text: str, events: list[Event]) -> None:
        """Reads a text by the shortest way there is."""
        if self._plain(text) is None:
            self._pieces.append(text)
            self._parts.append(text)
            self._fed += len(text)
            events.append(self._make(text))
        elif self._value is None:
            self._read_on(text, events)
        else:
            self._read_value(self._value, text, events)

    def _read_on(self, text: str, events: list[Event]) -> None:
        """Reads a text that is not of a value and does not take the shortcut."""
        spot = self._spot
        if spot is None and (self._early or not self._machine.hold(text)):
            self._run(text, events)
            return
        if spot is not None and self._plain is not _no_shortcut:
            spot = self._moved(spot)
        self._pieces.append(text)
        self._fed += len(text)
        if spot is None:
            return
        run = spot.runs.get(text)
        if run is None or not run.passes:
            self._follow(spot, text, 0, events)
            return
        spot.known.credits += 1
        if run.items:
            self._transcript.take(run, events)
        self._spot, self._at = run.here, self._fed

    def _read_value(self, value: Transcoder, piece: str, events: list[Event]) -> None:
        """Reads a piece inside arguments: it goes straight to the value's transcoder, after what the transcoder left of
        the last piece. The machine goes on only where it brings more than text of the value."""
        text = piece
        if self._passed:
            self._note()
        if self._held:
            text = self._held + piece
            if value.holds(text):
                self._pieces.append(piece)
                self._fed += len(piece)
                self._held = text
                return
        end = value.scan(text, 0, False)
        odd = value.error or value.notes or value.marked >= 0
        if not (odd or value.done):
            self._pieces.append(piece)
            self._fed += len(piece)
            self._held = text[end:]
            self._plain = value.plain or _no_shortcut
            out = value.out
            if out:
                self._parts.append(out)
                events.append(self._make(out))
            return
        spot, at = self._spot, self._fed - len(self._held) + end
        if spot is None or odd or at == self._at:
            self._run(piece, events, end)  # also an empty value
            return
        self._pieces.append(piece)
        self._fed += len(piece)
        self._value, self._held, self._plain = None, "", _no_shortcut
        self._transcript.argue(at - self._transcript.length, value.out)
        self._follow(spot.after, text, end, events)

    def _run(self, text: str, events: list[Event], scanned: int = -1) -> None:
        """Lets the machine read ``text``. ``scanned`` is as in `Machine.feed`."""
        if text:
            self._catch_up()
            self._pieces.append(text)
            self._fed += len(text)
            self._go(text, events, scanned)

    def _go(self, text: str, events: list[Event], scanned: int = -1) -> None:
        """As `_run`, of the last text that was fed, with a machine that is at its place."""
        if self._early:
            events += map(copy, self._early)
            self._early = []
        if self._ended:
            self._transcript.advance(m.MARKUP, len(text))
            return
        machine, known = self._machine, self._known
        items = machine.feed(text, scanned, False, partial(self._transcript.line_after, self._fed))
        self._transcript.apply(items, events)
        self._spot = None
        if known is not None and known.looks():
            self._spot, self._at = known.spot(machine), self._fed
        if not machine.text:
            self._settle()

    # at places that are known

    def _moved(self, spot: Spot) -> Spot:
        """The place of the machine, which was ``spot`` before the text that took the shortcut."""
        self._note()
        self._plain = _no_shortcut
        return spot if self._fed == self._at else spot.known.moved(spot, self._machine)

    def _follow(self, spot: Spot, text: str, i: int, events: list[Event]) -> None:
        """Reads ``text``, the last that was fed, from ``i`` on, from a known place to the next: as a machine did
        before, else with the machine, which leaves what it did to be found the next time."""
        known, machine, transcript = spot.known, self._machine, self._transcript
        if spot.open is not None:
            text, spot = spot.text + text, spot.open
        n = len(text)
        while True:
            if spot.running is not None:
                region, stops = spot.running
                match = stops.find(text, i)
                end = n if match is None else match.start()
                if i < end:
                    transcript.apply([(region, text[i:end], None)], events)
                    spot, i = known.moved(spot, machine), end
                    if i == n:
                        break
            run = spot.run(text, i, machine)
            if run is not None and (run.line is None or run.line == transcript.line_after(self._fed)):
                known.credits += 1
                if run.items:
                    transcript.take(run, events)
            else:
                begin = self._fed - n + i
                if known.credits <= 0:
                    spot.restore(machine, begin)
                    self._go(text[i:], events)
                    return
                items: list[m.Item] = []
                line = partial(transcript.line_after, self._fed, items)
                run = known.learn(spot, machine, text[i : i + MOST_AT_ONCE], begin, items, line)
                transcript.apply(items, events)
                if run is None:
                    self._go(text[i + MOST_AT_ONCE :], events)
                    return
            spot, i = run.here, i + run.end
            if spot.value is None:
                if i == n:
                    break
                continue
            value = spot.begin(machine)
            end = value.scan(text, i, False)
            if value.error or value.notes or value.marked >= 0 or (value.done and i == end):
                spot.restore(machine, self._fed - n + i)  # a position is that in the machine's window
                self._go(text[i:], events)
                return
            transcript.argue(end - i, value.out)
            if value.done:
                spot, i = spot.after, end
                continue
            transcript.tell(events)
            self._spot, self._at = spot, self._fed - n + i
            self._held = text[end:]
            self._wait(m.ARGUMENT, None if self._held else value.plain, value)
            return
        transcript.tell(events)
        self._spot, self._at = spot, self._fed
        if spot.waiting is not None:
            self._wait(spot.waiting[0], spot.waiting[1])

    def _end(self, events: list[Event], cut_off: bool = False) -> None:
        """Ends the turn and decides the held text. ``cut_off``: the model had more to say."""
        self._catch_up()
        events += map(copy, self._early)
        self._early = []
        machine, transcript = self._machine, self._transcript
        transcript.over()
        transcript.apply(machine.finish(cut_off, partial(transcript.line_after, self._fed)), events)
        transcript.close(events, transcript.length)
        if transcript.answer is not None and not cut_off:
            transcript.judge_whole()
        if transcript.length < self._fed:
            transcript.advance(m.MARKUP, self._fed - transcript.length)
        self._ended = True
        self._plain = _no_shortcut

    # the shortcut

    @property
    def _search(self) -> Search | None:
        """The search with which the shortcut begins; None if there is none."""
        return None if self._plain is _no_shortcut else self._plain

    def _settle(self) -> None:
        """Finds the shortcut for the next piece, if there is one."""
        spot, machine = self._spot, self._machine
        self._plain, self._value = _no_shortcut, None
        if not (self._ended or self._early):
            waiting = machine.waiting() if spot is None or spot.value is not None else spot.waiting
            if waiting is not None:
                region, plain = waiting
                self._wait(region, plain, machine.value)

    def _wait(self, region: int, plain: Search | None, value: Transcoder | None = None) -> None:
        """Sets the shortcut of a machine that waits so (`Machine.waiting`), in an argument's ``value`` or not."""
        self._kind, self._value = (m.CALL, value) if region == m.ARGUMENT else (region, None)
        sink = self._transcript.sink(region)
        if sink is None:
            self._catch_up()
        else:
            self._make, self._parts = sink
            self._plain = plain or _no_shortcut

    def _at_place(self) -> Machine:
        """The machine, at its place but for the text that took the shortcut."""
        if self._spot is not None:
            self._spot.restore(self._machine, self._at, self._value)
        return self._machine

    def _catch_up(self) -> None:
        """Moves the machine to the end of what was fed."""
        machine = self._at_place()
        self._spot = None
        if self._plain is not _no_shortcut or self._value is not None:
            machine.skip_to(self._note(), self._held)
            self._plain = _no_shortcut
            self._value = None
            self._held = ""

    def _note(self) -> int:
        """Gives the transcript the pieces that took the shortcut, and returns where what is not held ends."""
        if self._passed:
            if not self._ids:
                text = "".join(self._passed)
            else:
                text = self._ids.ran(self._passed)
                if self._back is not None:
                    self._back.ids += self._passed
            self._passed.clear()
            self._pieces.append(text)
            self._parts.append(text)
            self._fed += len(text)
        end = self._fed - len(self._held)
        self._transcript.advance(self._kind, end - self._transcript.length)
        return end

    # strict mode

    def _check(self) -> None:
        """Raises `OutputError` for the first serious diagnostic, once."""
        if self._transcript.wrong:
            self._strict = False
            message = self.message
            wrong = next(d for d in message.diagnostics if d.code in STRICT)
            raise OutputError(wrong.code, wrong.position, wrong.expected, wrong.found, message)


_loaded = lru_cache(load_reference)  # for what each stream needs
_ID_START = "chatparsers.tokens.feed:id_start"
_LOOPS = "chatparsers.watch.loops:Loops"
_CHECKS = "chatparsers.grammar.schemas.checked:Checks"
"""Who judges the arguments of a turn's calls, and its answer."""
_NOT_ASKED: tuple[Any, ...] = None, False, True, False, "", False
"""What is asked of a stream without a turn."""


def opened(asked: Asked | None, strict: bool, rollback: int = 0) -> Stream:
    """A stream that has not begun. ``strict`` and ``rollback`` are as in `Turn.stream`. ``asked``: None if the caller
    begins it."""
    stream = Stream.__new__(Stream)
    stream._asked = asked
    stream._strict = strict
    stream._ids = False
    stream._finished = ""
    stream._ended = False
    stream._back = Back(rollback) if rollback else None
    stream._loops = None
    return stream


def begun(start: Start, tools: Toolset) -> Stream:
    """A stream that reads text without a turn."""
    stream = opened(None, False)
    stream._begin(start, None, tools)
    return stream


_READ = (
    "_strict", "_finished", "_ended", "_fed", "_held", "_early", "_machine", "_known", "_spot", "_at", "_ids",
    "_transcript",
)  # fmt: skip
"""What `Stream._copy_to` gives."""
_NOT_PICKLED = (
    "_at", "_kind", "_known", "_loops", "_make", "_parts", "_passed", "_pieces", "_plain", "_spot", "_value",
)  # fmt: skip
