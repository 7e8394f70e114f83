"""One answer, without I/O: batches of the engine go in, frames for the client come out."""

from __future__ import annotations

from typing import Any

from ..core.format import Turn
from ..core.message import FinishReason
from ..serving import ApiError, Request, Usage, Writer, sse
from .engine import Batch, End, EngineError
from .record import Record
from .stops import ContentStops

__all__ = ["Answer"]


class Answer:
    """Reads a turn and writes it in the form of an API.

    ``by_ids``: the stream is fed the ids of batches, else their text. ``framed``: whether the frames of a stream are
    made; without them only ``writer.answer`` is. ``done``: the turn is over, whatever the engine goes on to write.
    ``stopped``: one of the client's stops ended it.
    """

    def __init__(
        self,
        turn: Turn,
        writer: Writer[Any, Any],
        request: Request,
        *,
        by_ids: bool,
        framed: bool,
        prompt_tokens: int | None,
    ) -> None:
        self.turn = turn
        self.writer = writer
        self.done = False
        self._stream = turn.stream()
        self._by_ids = by_ids
        self._framed = framed
        self._prompt = prompt_tokens
        self._stops = ContentStops(request.stops) if request.stops else None
        self._ends = frozenset(turn.stop_ids)
        self._fed = 0

    def start(self) -> str:
        """The first frames."""
        return self._frames(self.writer.start(self._prompt or 0))

    def read(self, batch: Batch) -> str:
        """The frames of what the engine wrote."""
        if self.done:
            return ""
        piece: Any = batch.text
        if self._by_ids:
            if batch.ids is None and batch.text:
                raise EngineError("the engine sent text without the ids of its tokens, which it gave before")
            piece = batch.ids or []
            ended = next((place for place, id in enumerate(piece) if id in self._ends), None)
            if ended is not None:
                piece = piece[: ended + 1]
                self.done = True
            self._fed += len(piece)
        return self._written(self._stream.feed(piece)) if piece else ""

    def finish(self, end: End, record: Record) -> str:
        """The last frames."""
        reason: FinishReason = "stop" if self.done or end.reason is None else end.reason
        frames = self._written(self._stream.finish(reason), last=True)
        stopped = self._stops.found if self._stops is not None else None
        message = self._stream.message
        self.writer.unwanted = [one.found for one in message.diagnostics if one.code == "unwanted-call"]
        completion = end.completion if end.completion is not None else self._fed or None
        prompt = end.prompt if end.prompt is not None else self._prompt
        usage = Usage.of(message, prompt or 0, completion=completion, cached=min(end.cached, prompt or 0))
        frames += self._frames(self.writer.finish(reason, usage, stop_sequence=stopped))
        record.answered(self.turn.format.name, message, usage)
        return frames + self.writer.end if self._framed else ""

    @property
    def stopped(self) -> bool:
        return self._stops is not None and self._stops.found is not None

    def fail(self, error: ApiError, record: Record) -> str:
        """The last frames after an error: what was held, and the error."""
        held = self._written(self._stream.finish("length"), last=True)
        record.answered(self.turn.format.name, self._stream.message, Usage())
        return held + self._frames(self.writer.fail(error)) + self.writer.end

    def _written(self, events: Any, last: bool = False) -> str:
        if self._stops is not None:
            events = list(self._stops.take(events, last))
            self.done = self.done or self._stops.found is not None
        chunks = [chunk for event in events for chunk in self.writer.event(event)]
        return self._frames(chunks)

    def _frames(self, chunks: list[Any]) -> str:
        return sse(chunks, named=self.writer.named) if self._framed and chunks else ""
