"""A stream takes pieces, gives events, and has the message at any time.

A stream begins at its first piece, because only that tells whether text or ids come. Until then it holds only what was
asked of it (``_asked``), and there is no ``_reading``. Whatever looks at it before lets it begin with text. How a piece
is read, says reading.py; how ids are taken back, back.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NoReturn

from ..errors import OutputError, RequestError, lacks_tokenizers, read_reason
from ..lazy import load_reference
from ..public import made_by, public
from ..schema.tools import Toolset
from .back import Back
from .call import Call
from .events import Event
from .ids import Piece, read_ids
from .message import FinishReason, Loop, Message, RegionKind
from .reading import Reading
from .start import Asked, Start, start
from .state import StreamState
from .transcript import KINDS, STRICT


@public
class Stream:
    """Reads one turn of the model as it is written. Made by `Turn.stream`."""

    __slots__ = ("_asked", "_finished", "_loops", "_reading", "_rollback", "_strict", "_text")

    _asked: Asked | None
    _strict: bool
    _rollback: int
    """How many ids can be taken back."""
    _finished: str
    _reading: Reading | None
    _text: Reading | None
    """The same, while it takes text, is not finished, and nothing is asked after each piece."""
    _loops: Any
    """Who looks for loops (`chatparsers.watch.loops.Loops`), once somebody asked."""

    def __init__(self) -> None:
        made_by("a stream", "Turn.stream()")

    # how it begins

    def _begun(self) -> Reading:
        """What was read. A stream that has not begun begins with text."""
        return self._begin() if self._reading is None else self._reading

    def _begin_with_ids(self) -> Reading:
        """Begins to read ids, with a program in which markers are single tokens."""
        reading = self._reading
        if reading is not None and (reading.passed or reading.fed > reading.transcript.origin):
            raise RequestError("feed: text was fed before, and ids cannot be mixed with it: feed text alone")
        if self._asked is None or self._asked[0].tokenizer is None:
            raise RequestError(
                "feed: ids need the model's tokenizer: bind(tokenizer=…) or load(…, tokenizer=…)"
                + lacks_tokenizers()
            )
        return self._begin(with_ids=True)

    def _begin(self, with_ids: bool = False) -> Reading:
        """If a turn with a tokenizer begins with text, ids may still come in its place."""
        assert self._asked is not None
        turn, inline, _, _, seed, check = self._asked
        ids = None
        if with_ids:
            begin, ids = _loaded(_ID_START)(*self._asked[:4])
        else:
            begin = start(turn.format, turn.options, turn.prefix, turn.tools, inline)
        back = Back(self._rollback) if self._rollback and with_ids else None
        checks = load_reference(_CHECKS)(turn) if check else None
        self._reading = reading = Reading(
            begin, turn.tools, ids, back, turn if seed is None else seed, checks
        )
        self._text = None if with_ids or self._strict else reading
        if with_ids or turn.tokenizer is None:
            self._asked = None
        return reading

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
        reading = self._text
        if reading is not None:
            if type(piece) is str and piece:
                if reading.plain(piece) is None:  # as in `Reading.read`, without its call
                    reading.passed.append(piece)
                    return [reading.make(piece)]
                events: list[Event] = []
                if reading.value is None:
                    reading.read_on(piece, events)
                else:
                    reading.read_value(reading.value, piece, events)
                return events
        elif (
            type(piece) is int and (reading := self._reading) and reading.ids and (text := reading.ran(piece))
        ):
            return [reading.make(text)]
        return self._feed(piece)

    def _feed(self, piece: Piece) -> list[Event]:
        """As `feed`, by no shortcut."""
        if self._finished:
            raise RequestError("feed: the stream is finished; make a new one with turn.stream()")
        events: list[Event] = []
        reading = self._reading
        if type(piece) is int and reading is not None and reading.ids is not None:
            reading.read_id(piece, events)
        elif isinstance(piece, str):
            reading = self._begun()
            if reading.ids is not None and (reading.passed or reading.ids.fed):
                raise RequestError(
                    "feed: ids were fed before, and text cannot be mixed with them: feed ids alone"
                )
            if piece:
                reading.read(str.__str__(piece), events)  # a type of its own, such as an enum's, is its text
        else:
            ids = read_ids(piece)
            if reading is None or reading.ids is None:
                reading = self._begin_with_ids()
            reading.read_ids(ids, events)
        if self._strict and reading.transcript.wrong:
            self._refuse()
        return events

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
            reading = self._begun()
            self._finished, self._text = reason or "stop", None
            if reading.ids is not None:
                reading.run(reading.ids.flush(), events)
            if not reading.ended:
                reading.end(events, reason == "length")
            record = reading.transcript
            if reason == "length" and not any(note[0] == "truncated" for note in record.notes):
                record.note("truncated", reading.fed, "the rest of the turn")
            if self._strict and record.wrong:
                self._refuse()
        return events

    @property
    def ended(self) -> bool:
        """Whether the turn is over: an id ended it, or it was finished."""
        return self._reading is not None and self._reading.ended

    @property
    def region(self) -> RegionKind:
        """The region that the stream is in: ``reasoning``, ``content``, ``call`` or ``markup``."""
        reading = self._begun()
        reading.record()
        return "markup" if reading.ended else KINDS[reading.at_place().region]

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
        reading = self._begun()
        record, (kind, tool) = reading.record(), reading.stands()
        call = record.call
        if kind != "call":
            return StreamState(kind)
        if call is not None and call.name is not None:
            return StreamState(kind, call.index, call.name, call.read().path)
        return StreamState(kind, record.count - (call is not None), tool)

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
        reading = self._begun()
        record = reading.record()
        if self._loops is None:
            self._loops = load_reference(_LOOPS)()
        if reading.fed >= self._loops.due or self._finished:
            self._loops.look(record, reading.fed, reading.ids)
        found: Loop | None = self._loops.open
        return found

    def _message(self, regions: bool) -> Message:
        """The message so far, with or without its regions."""
        reading, finished = self._begun(), self._finished
        return reading.record().message(finished == "stop", reading.ids, regions, bool(finished))

    def _named_calls(self) -> list[tuple[int, str]]:
        """Where each call begins whose name is known, and its name."""
        reading = self._begun()
        return reading.record().named_calls(reading.ids)

    def call_text(self, index: int) -> str:
        """What the model wrote of the call at ``index``, as far as it is decided, after the marker that opens it.

        Raises `RequestError` if there is no such call.

        >>> stream = chatparsers.get_format("qwen3").bind(tools=tools).stream()
        >>> events = stream.feed('<tool_call>\\n{"name": "get_weather", "arguments": {"city": "Os')
        >>> stream.call_text(0)
        '{"name": "get_weather", "arguments": {"city": "Os'
        """
        call, reading = self._call(index, "call_text"), self._begun()
        return reading.transcript.call_text(call, reading.ids)

    def _call(self, index: int, asked: str) -> Call:
        """The call at ``index``; ``asked``: the method that wants it."""
        record = self._begun().record()
        if type(index) is not int or not 0 <= index < record.count:
            raise RequestError(
                f"{asked}: expected the index of a call, found {index!r} of {record.count} calls"
            )
        return record.called(index)

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
        reading = self._begun()
        record = reading.record()
        fed_ids = reading.ids is not None and reading.ids.fed
        if (starts is None) != (bool(fed_ids) or reading.fed == record.origin):
            expected = "no starts, as ids were fed" if fed_ids else "starts, as text was fed"
            raise RequestError(f"token_regions: expected {expected}")
        if starts is not None:
            starts = [record.origin + start for start in starts]
        elif fed_ids:
            starts = reading.ids.offsets
        return record.token_regions(starts or (), first, reading.fed, bool(self._finished))

    def fork(self) -> Stream:
        """An independent copy at this point: for beams, and for tokens that may yet be rejected.

        >>> stream = chatparsers.get_format("qwen3").bind().stream()
        >>> events = stream.feed("He")
        >>> fork = stream.fork()
        >>> events = fork.feed("llo") + fork.finish()
        >>> fork.message.content, stream.message.content
        ('Hello', 'He')
        """
        reading = self._begun()
        other = opened(self._asked, self._strict, self._rollback)
        other._finished, other._reading = self._finished, reading.copy()
        other._text = None if self._text is None else other._reading
        other._reading.back = None if reading.back is None else reading.back.fork()
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
        reading = self._begun()
        back, passed = reading.back, reading.passed
        if back is not None and type(n) is int and 0 <= n <= min(back.most, len(passed)):
            del passed[len(passed) - n :]
            return
        if passed:
            reading.gather()
        found = None
        if type(n) is int and (back is not None or n == 0):
            found = reading if back is None else back.without(n, reading)
        if found is None:
            kept = 0 if back is None else back.possible
            more = "" if self._rollback else ": make the stream with turn.stream(rollback=…)"
            raise RequestError(f"rollback: expected a number of ids from 0 to {kept}, found {n!r}{more}")
        self._reading = found
        if self._loops is not None and self._loops.seen > found.fed:
            self._loops = None

    def __repr__(self) -> str:
        reading = self._begun()
        record = reading.record()
        state = "finished" if self._finished else f"in {self.region}"
        return f"<Stream: {state}, {reading.fed - record.origin} characters read, {record.count} calls>"

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        self._begun()
        return None, {name: getattr(self, name) for name in Stream.__slots__}

    def _refuse(self) -> NoReturn:
        """Raises `OutputError` for the first serious diagnostic, once."""
        self._strict = False
        message = self.message
        wrong = next(d for d in message.diagnostics if d.code in STRICT)
        raise OutputError(wrong.code, wrong.position, wrong.expected, wrong.found, message)


_loaded = lru_cache(load_reference)  # for what each stream needs
_ID_START = "chatparsers.tokens.feed:id_start"
_LOOPS = "chatparsers.watch.loops:Loops"
_CHECKS = "chatparsers.grammar.schemas.checked:Checks"
"""Who judges the arguments of a turn's calls, and its answer."""


def opened(asked: Asked | None, strict: bool, rollback: int = 0) -> Stream:
    """A stream that has not begun. ``strict`` and ``rollback`` are as in `Turn.stream`. ``asked``: None if the caller
    begins it."""
    stream = Stream.__new__(Stream)
    stream._asked, stream._strict, stream._rollback = asked, strict, rollback
    stream._finished, stream._reading, stream._text, stream._loops = "", None, None, None
    return stream


def begun(start: Start, tools: Toolset) -> Stream:
    """A stream that reads text without a turn."""
    stream = opened(None, False)
    stream._reading = stream._text = Reading(start, tools)
    return stream
