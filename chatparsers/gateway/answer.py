"""One answer, without I/O: batches of the engine go in, frames for the client come out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..answers.format import Turn
from ..plain import whole_characters
from ..serving import ApiError, ContentStops, OpenAIChat, Request, Usage, WholeCalls, Writer, sse
from ..streams.events import Content, Event, Reasoning
from ..streams.message import Diagnostic, FinishReason, Message
from ..templates import to_json
from ..watch import observe
from .engine import Batch, End, EngineError
from .loops import HEADER, Loops
from .probable import Probable
from .record import Record

_LATE_IDS = 64
_SLICE = 64
"""After so many ids or characters it is seen whether a loop stops the answer."""
_REGIONS: dict[type, str] = {Content: "content", Reasoning: "reasoning"}
"""The regions of events; the others are of calls."""


class Answer:
    """Reads a turn and writes it in the form of an API.

    ``by_ids``: the stream is fed the ids of batches, else their text. ``framed``: whether the frames of a stream are
    made; without them only ``writer.answer`` is. ``prompt``: how many tokens it has, None if that is not known.
    ``most``: how many tokens the engine was asked for, None if it was not said; far more of them are an error.
    ``holds``: whether its ids are kept in ``sampled``. ``taking(ids, batch)``: takes the ids of each batch, and may
    raise. ``loops``: what is done about loops. ``done``: the turn is over, whatever the engine goes on to
    write. ``stopped``: one of the client's stops ended it. ``finished``: its last frames were made.
    """

    def __init__(
        self,
        turn: Turn,
        writer: Writer[Any, Any],
        request: Request,
        *,
        by_ids: bool,
        framed: bool,
        prompt: int | None,
        most: int | None = None,
        holds: bool = False,
        taking: Callable[[Sequence[int], Batch], None] | None = None,
        loops: Loops | None = None,
    ) -> None:
        self.turn = turn
        self.writer = writer
        self.done = False
        self.finished = False
        self.usage = Usage()
        self.sampled: list[int] = []
        """The ids of the answer, if it ``holds`` them."""
        self._holds = holds and by_ids
        self._taking = taking
        self.reason: FinishReason | None = None
        """Why it ended, once it has."""
        self.versions: tuple[tuple[int, int], ...] = ()
        """How many of its ids in turn were sampled by which version of the weights, if the engine says so."""
        self.loop = "repeated-turn" if loops is not None and loops.stuck else ""
        """What stopped the answer, if a loop did."""
        self._loops = loops
        self._shown = request.regions
        self._stream = turn.stream()
        self._calls = WholeCalls(
            self._stream.call_text,
            early=framed and (writer.early_calls or request.early_arguments),
            cut=writer.cut_calls,
        )
        self._by_ids = by_ids
        self._framed = framed
        self._prompt = prompt
        # What llama-server leaves out is spelt anew, with up to four ids for one.
        asked = request.max_tokens
        self._limit = most if most is not None and asked is not None and most < asked else None
        self._most = None if most is None else 4 * most + _LATE_IDS
        self._stops = ContentStops(request.stops) if request.stops else None
        self._ends = frozenset(turn.stop_ids)
        self._fed = 0
        self._probable: Probable | None = None
        if request.logprobs is not None:
            self._probable = Probable(self._stream, request.logprobs, by_ids=by_ids)
        self._ids: list[int] | None = [] if request.token_ids else None
        """Ids that wait for the next chunk; None if the client wants none."""

    def start(self) -> str:
        """The first frames."""
        return self._frames(self.writer.start(self._prompt or 0))

    def read(self, batch: Batch) -> str:
        """The frames of what the engine wrote."""
        if self._loops is None or not self._loops.stops or batch.logprobs is not None:
            return self._read(batch)
        # Much may have come at once: the answer ends where the loop is seen.
        text, ids = batch.text, batch.ids or []
        return "".join(
            [
                self._read(
                    Batch(text[at : at + _SLICE], None if batch.ids is None else ids[at : at + _SLICE])
                )
                for at in range(0, max(len(text), len(ids)), _SLICE)
            ]
        )

    def _read(self, batch: Batch) -> str:
        if self.done:
            return ""
        piece: Any = batch.text
        if self._by_ids:
            if batch.ids is None and batch.text:
                raise EngineError("the engine sent text without the ids of its tokens, which it gave before")
            piece = batch.ids or []
            if not self._ends.isdisjoint(piece):
                ended = next(place for place, id in enumerate(piece) if id in self._ends)
                piece = piece[: ended + 1]
                self.done = True
            self._fed += len(piece)
            if self._holds:
                self.sampled += piece
            if self._taking is not None and piece:
                self._taking(piece, batch)
            if self._ids is not None:
                self._ids += piece
        if self._probable is not None:
            self._probable.take(batch, len(piece))
        if not piece:
            return ""
        alone = self._by_ids and len(piece) == 1  # which a stream reads faster
        frames = self._written(self._stream.feed(piece[0] if alone else piece))
        if self._loops is not None and self._loops.stops and not self.done:
            found = self._stream.loop
            if found is not None and found.stuck:
                self.loop, self.done = "repeated-text", True
        if self._most is not None and self._fed > self._most and not self.done:
            raise EngineError("the engine sent more tokens than it was asked for")
        return frames

    def finish(self, end: End, record: Record) -> str:
        """The last frames of the answer."""
        self.finished = True
        reason: FinishReason = "stop" if self.done or end.reason is None else end.reason
        if self.loop:
            reason, record.fields["loop"] = "length", self.loop
        self.reason, self.versions = reason, end.versions
        frames = self._written(self._stream.finish(reason), last=True, length=reason == "length")
        stopped = self._stops.found if self._stops is not None else None
        message = self._stream.message
        self.writer.unwanted = [
            whole_characters(one.found) for one in message.diagnostics if one.code == "unwanted-call"
        ]
        if self._shown:
            self.writer.regions = [
                {"kind": one.kind, "text": whole_characters(message.text[one.start : one.end])}
                for one in message.regions
            ]
        completion = end.completion if end.completion is not None else self._fed or None
        prompt = end.prompt if end.prompt is not None else self._prompt
        self.usage = Usage.of(
            message,
            prompt or 0,
            completion=completion,
            cached=min(end.cached or 0, prompt or 0),
            limit=self._limit,
        )
        chunks = self.writer.finish(reason, self.usage, stop_sequence=stopped)
        if self._ids:
            self.writer.ids(self._ids, chunks)
        record.answered(self.turn.format.name, message, self.usage, self._notes(message))
        return frames + self._frames(chunks)

    @property
    def taken(self) -> tuple[int, int]:
        """How many tokens its prompt has, as far as that is known, and how many of the answer it has read."""
        return self._prompt or 0, self._fed

    @property
    def stopped(self) -> bool:
        return bool(self.loop) or (self._stops is not None and self._stops.found is not None)

    def fail(self, record: Record) -> str:
        """The last frames before an error: what was held."""
        held = self._written(self._stream.finish("length"), last=True, length=True)
        message = self._stream.message
        record.answered(self.turn.format.name, message, Usage(), self._notes(message))
        return held

    def _notes(self, message: Message) -> list[Diagnostic]:
        """What observers tell of it."""
        if self._loops is None:
            return observe(self.turn, message, loops=False)
        return [*observe(self.turn, message), *self._loops.notes]

    def _written(self, events: list[Event], last: bool = False, length: bool = False) -> str:
        if events:
            events = self._calls.take(events, length)
        if self._stops is not None:
            events = list(self._stops.take(events, last))
            self.done = self.done or self._stops.found is not None
        if self._probable is None and self._ids is None:
            if self._framed:
                return self.writer.frames(events) if events else ""
            self.writer.take(events)
            return ""
        chunks = self._chunks(events, last)
        if self._ids and chunks:
            self.writer.ids(self._ids, chunks)
            self._ids = []
        return self._frames(chunks)

    def _chunks(self, events: Sequence[Event], last: bool) -> list[Any]:
        """The chunks of events, each with what the engine says of its tokens, in the order of the answer."""
        writer, probable = self.writer, self._probable
        chunks: list[Any] = []
        place = 0
        for kind, found in () if probable is None else probable.rest() if last else probable.decided():
            same = next(
                (at for at in range(place, len(events)) if _REGIONS.get(type(events[at]), "call") == kind),
                None,
            )
            if same is None:
                chunks += writer.tokens(kind, found, [])
                continue
            for event in events[place:same]:
                chunks += writer.event(event)
            chunks += writer.tokens(kind, found, writer.event(events[same]))
            place = same + 1
        for event in events[place:]:
            chunks += writer.event(event)
        return chunks

    def _frames(self, chunks: list[Any]) -> str:
        return sse(chunks, named=self.writer.named) if self._framed and chunks else ""


class Answers:
    """The answers to one request: one, or several choices that end in any order. ``usage``: whether a stream of chunks
    ends with the usage of all; the other APIs always say it."""

    def __init__(self, answers: Sequence[Answer], *, framed: bool, usage: bool) -> None:
        self.all = answers
        self._open = list(answers)
        self._framed = framed
        self._usage = usage

    def start(self) -> str:
        """The first frames."""
        return "".join([answer.start() for answer in self.all])

    def finish(self, answer: Answer, end: End, record: Record) -> str:
        """The last frames of an answer, and after the last answer those of the whole."""
        frames = answer.finish(end, record)
        self._open.remove(answer)
        if self._open or not self._framed:
            return frames
        writer = answer.writer
        if self._usage and isinstance(writer, OpenAIChat):
            frames += sse([writer.used(self._together())], named=writer.named)
        return frames + writer.end

    @property
    def over(self) -> bool:
        """Whether all answers are finished."""
        return not self._open

    @property
    def loop(self) -> list[tuple[bytes, bytes]]:
        """The header that says which loop stopped an answer, so far; none if none did."""
        found = next((answer.loop for answer in self.all if answer.loop), "")
        return [(HEADER, found.encode())] if found else []

    def fail(self, error: ApiError, record: Record) -> str:
        """The last frames after an error: what was held, and the error."""
        held = "".join([answer.fail(record) for answer in self._open])
        writer = self.all[0].writer
        return held + sse(writer.fail(error), named=writer.named) + writer.end

    def text(self) -> str:
        """The whole as JSON text."""
        writers = [answer.writer for answer in self.all]
        chat = [writer for writer in writers if isinstance(writer, OpenAIChat)]
        return to_json(OpenAIChat.together(chat, self._together())) if len(chat) > 1 else writers[0].text()

    def _together(self) -> Usage:
        return Usage.together([answer.usage for answer in self.all])
