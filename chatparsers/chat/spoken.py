"""An answer as it was sampled: its ids as they are, read up to the first stop.

Strategy. One stream reads all ids of an answer, also if they come in several goes (partial rollouts). Ids after the
first stop are not taken. The message is read by a fork of the stream, so that the answer can go on.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import nan
from operator import index
from os import urandom
from typing import Any

from ..answers.format import Turn
from ..errors import RequestError
from ..streams.message import Message
from ..streams.stream import Stream
from ..tokens.detokenizer import Detokenizer
from ..tokens.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Chunk:
    """Ids that were sampled in one go. ``serial`` is its own: copies of a rollout share it, so that it counts once."""

    serial: str
    ids: Sequence[int]
    counted: bytes
    logprobs: Sequence[float] | None
    version: int

    @classmethod
    def of(cls, ids: Iterable[int], logprobs: Any, counted: Any, version: int | None) -> Chunk:
        """Raises `RequestError` if a column has another length than the ids, or if an id is no integer."""
        try:
            own = array("q", map(index, _listed("ids", ids)))
        except (TypeError, OverflowError) as error:
            raise RequestError(f"ids: expected token ids, which are integers ({error})") from None
        probs = (
            None
            if logprobs is None
            else array("d", [nan if x is None else float(x) for x in _listed("logprobs", logprobs)])
        )
        if counted is None or isinstance(counted, bool):
            marks = bytes([counted is not False]) * len(own)
        else:
            marks = bytes(bool(mark) for mark in _listed("counted", counted))
        for name, column in (("logprobs", probs), ("counted", marks)):
            if column is not None and len(column) != len(own):
                raise RequestError(
                    f"{name}: expected {len(own)} values, one for each id, found {len(column)}"
                )
        return cls(urandom(8).hex(), own, marks, probs, -1 if version is None else int(version))

    def first(self, number: int) -> Chunk:
        """The first ids alone."""
        if number == len(self.ids):
            return self
        probs = None if self.logprobs is None else self.logprobs[:number]
        return Chunk(self.serial, self.ids[:number], self.counted[:number], probs, self.version)


def _listed(name: str, values: Any) -> list[Any]:
    found = values.tolist() if hasattr(values, "tolist") else values
    if isinstance(found, (str, bytes)) or not isinstance(found, Iterable):
        raise RequestError(f"{name}: expected a list or an array, found {type(values).__name__}")
    return list(found)


@dataclass(frozen=True, slots=True, eq=False)
class Spoken:
    """One answer. ``stop``: the ids of the stop that was sampled, ``()`` if none was. ``cut``: it was cut off by
    length. ``dropped``: how many ids after the stop were not taken."""

    turn: Turn
    chunks: tuple[Chunk, ...] = ()
    stop: tuple[int, ...] = ()
    cut: bool = False
    dropped: int = 0
    region: str = "content"
    message: Message = field(default_factory=Message)
    _stream: Stream | None = None  # until ids come

    @property
    def ids(self) -> list[int]:
        """All its ids, the stop included."""
        return [id for chunk in self.chunks for id in chunk.ids]

    def heard(self, chunk: Chunk, reason: str | None) -> Spoken:
        """The answer with more ids."""
        stream = self.turn.stream() if self._stream is None else self._stream.fork()
        taken, stop = (0, self.stop) if self.stop else _taken(self.turn, stream, chunk.ids)
        cut = reason == "length" and not stop
        whole = stream.fork()
        whole.finish("length" if cut else "stop")
        chunks = (*self.chunks, chunk.first(taken)) if taken else self.chunks
        dropped = self.dropped + len(chunk.ids) - taken
        return Spoken(
            self.turn,
            chunks=chunks,
            stop=stop,
            cut=cut,
            dropped=dropped,
            region=str(stream.region),
            message=whole.message,
            _stream=stream,
        )

    def text(self, tokenizer: Any) -> str:
        """What it spells before its stop."""
        return spelt(tokenizer, self.ids).removesuffix(self.stop_text(tokenizer))

    def stop_text(self, tokenizer: Any) -> str:
        """What its stop spells; its first token may hold the answer's last characters too."""
        text = spelt(tokenizer, self.stop)
        return next((stop for stop in self.turn.stops if stop.strip() and text.endswith(stop)), text)


def spelt(tokenizer: Any, ids: Sequence[int]) -> str:
    """The text of ids inside a conversation, with all special tokens."""
    return "".join(pieces(tokenizer, ids))


def pieces(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """The text that each id adds; what is left of a cut character is the last one's."""
    vocabulary = Vocabulary.bare(tokenizer)
    detokenizer = Detokenizer(vocabulary)
    found: list[str] = []
    for id in ids:
        token = vocabulary.added.get(id)
        if token is not None and found:
            found[-1] += detokenizer.flush()
        found.append(detokenizer.decode(id) if token is None else token.text)
    if found:
        found[-1] += detokenizer.flush()
    return found


def _taken(turn: Turn, stream: Stream, ids: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """How many of ``ids`` belong to the answer, which ``stream`` has read then; and the ids of its stop."""
    ends, single = frozenset(turn.stop_ids), turn.marker_ids
    spelt_out = [stop for stop in turn.stops if stop.strip() and stop.strip() not in single]
    if spelt_out:  # in several ids, any of which may be the last
        probe = stream.fork()
        probe.feed(list(ids))
        if not probe.ended and not any(stop in probe.message.text for stop in spelt_out):
            spelt_out = []
    start = 0
    for end, id in enumerate(ids, 1):
        if id not in ends and not spelt_out:
            continue
        stream.feed(list(ids[start:end]))
        start = end
        if stream.ended:
            return end, (id,)
        message, first = stream.message, end - 1
        stop = next((stop for stop in spelt_out if message.text.endswith(stop)), None)
        if stop is not None and message.regions[-1].kind == "markup":
            while first and not spelt(turn.tokenizer, ids[first:end]).endswith(stop):
                first -= 1
            return end, tuple(ids[first:end])
    stream.feed(list(ids[start:]))
    return len(ids), ()
