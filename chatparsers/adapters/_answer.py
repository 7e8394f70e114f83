"""One answer while an engine samples it: ids go in, events come out, and it says when to stop.

A stop that is one token ends the turn by its id. Any other stop is text: the format's, or the user's. It may begin in
the middle of a token, so ids are held while their text may become a stop. When it does, the ids before it are fed, and
the text between them and the stop is encoded anew. So nothing before a stop is lost, and nothing of it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..answers.format import Turn
from ..errors import RequestError
from ..streams.events import Event
from ..streams.message import FinishReason, Message
from ..tokens import Detokenizer, Vocabulary

__all__ = ["Answer", "end_ids"]


def end_ids(turn: Turn) -> tuple[int, ...]:
    """The ids that end the turn. Raises `RequestError` if the turn has no tokenizer, or if no id ends it."""
    if turn.tokenizer is None:
        raise RequestError(
            "turn: expected one with a tokenizer, because hosts give ids, found none: load the model's folder or "
            ".gguf file, or give load(…, tokenizer=…)"
        )
    if not turn.stop_ids:
        raise RequestError(
            "turn: expected a token that ends it, found none in the tokenizer: name it with load(…, eos_token=…)"
        )
    return turn.stop_ids


class Answer:
    """The answer to a turn with a tokenizer. ``stops``: more texts that end it. ``stream``: options of `Turn.stream`.

    ``ended``: the model ended its turn, or a stop was found. ``count``: how many ids were fed.
    """

    def __init__(self, turn: Turn, stops: Iterable[str] = (), **stream: Any) -> None:
        self.turn = turn
        self.ended = False
        self.count = 0
        self._end_ids = frozenset(end_ids(turn))
        self._stream = turn.stream(**stream)
        ids = turn.marker_ids
        self._stops = [stop for stop in dict.fromkeys((*turn.stops, *stops)) if stop and stop not in ids]
        self._text = Detokenizer(Vocabulary.of(turn.tokenizer))
        self._held: list[tuple[int, int]] = []
        """The held ids, each with the end of its text in ``_tail``."""
        self._tail = ""

    @property
    def message(self) -> Message:
        """The message so far; whole after `finish`."""
        return self._stream.message

    def feed(self, id: int) -> list[Event]:
        """Reads an id and returns its events; nothing after the end of the turn."""
        if self.ended:
            return []
        self.count += 1
        if id in self._end_ids:
            events = self._feed([held for held, _ in self._held]) + self._stream.feed(id)
            self._held, self._tail, self.ended = [], "", True
            return events
        if not self._stops:
            return self._stream.feed(id)
        self._tail += self._text.decode(id)
        self._held.append((id, len(self._tail)))
        found = [place for stop in self._stops if (place := self._tail.find(stop)) >= 0]
        if found:
            return self._cut(min(found))
        return self._release(len(self._tail) - max(_begun(self._tail, stop) for stop in self._stops))

    def finish(self, reason: FinishReason | str | None = None) -> list[Event]:
        """Ends the answer. ``reason``: as in `Stream.finish`; None is an end if the turn ended, else ``"length"``."""
        held, self._held = [id for id, _ in self._held], []
        return self._feed(held) + self._stream.finish(reason or self.reason)

    @property
    def reason(self) -> FinishReason:
        """Why it is over: ``"stop"`` if the turn ended, else ``"length"``."""
        return "stop" if self.ended else "length"

    def _cut(self, place: int) -> list[Event]:
        """Ends the answer at a stop that begins at ``place``."""
        text, start = self._tail[:place], 0
        ids = []
        for id, end in self._held:
            if end > place:
                break
            ids.append(id)
            start = end
        if start < place:
            ids += Vocabulary.of(self.turn.tokenizer).encode(text[start:])
        self._held, self.ended = [], True
        return self._feed(ids)

    def _release(self, place: int) -> list[Event]:
        """Feeds the held ids whose text ends before ``place``: no stop can begin in them."""
        ready = [(id, end) for id, end in self._held if end <= place]
        if not ready:
            return []
        del self._held[: len(ready)]
        cut = ready[-1][1]
        self._held = [(id, end - cut) for id, end in self._held]
        self._tail = self._tail[cut:]
        return self._feed([id for id, _ in ready])

    def _feed(self, ids: list[int]) -> list[Event]:
        return self._stream.feed(ids) if ids else []


def _begun(text: str, stop: str) -> int:
    """How many characters at the end of ``text`` may be the beginning of ``stop``."""
    return next(
        (size for size in range(min(len(stop) - 1, len(text)), 0, -1) if text.endswith(stop[:size])), 0
    )
