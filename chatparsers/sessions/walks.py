"""The ways of requests along the tree of paths, found in about the same time however long they are.

A client sends the whole history with each request, and nearly always spells it as before. So the last requests of a
session are remembered. A message that is spelt as it was is only compared: its key is known, and what was found for the
messages before it still holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

from .paths import Key, Keys, Message, Place

T = TypeVar("T")
_MOST = 8
"""How many requests are remembered: one for each line that is played at the same time."""


class Walk(Generic[T]):
    """The way of a request. ``keys``: of its messages. ``places``: those that are known; the first is before all.
    ``answer``: the one that it goes on from, if any, after ``used`` messages. ``before``: a request that is remembered;
    the first ``same`` messages of both have the same keys. ``told``: the place of the first answer spelt otherwise.
    """

    __slots__ = ("answer", "before", "keys", "places", "same", "spelt", "told", "used")

    def __init__(
        self, root: Place[T], keys: Keys, messages: Sequence[Message], before: Walk[T] | None = None
    ) -> None:
        self.answer: T | None = None
        self.used, self.before = 0, before
        known, spelt = ([], []) if before is None else (before.keys, before.spelt)
        other = [at for at, both in enumerate(zip(messages, spelt, strict=False)) if both[0] != both[1]]
        other += range(len(spelt), len(messages))
        self.spelt: list[Message | None] = [*spelt, *messages[len(spelt) :]]
        """The messages; None for those that may be equal and still other, as 1 and true are."""
        self.keys: list[Key] = [*known, *(() for _ in messages[len(known) :])]
        self.same = self.told = len(messages)
        for at in other:
            message = messages[at]
            self.spelt[at] = message if _texts(message) else None
            answers = message.get("role") == "assistant"
            if answers:
                self.told = min(self.told, at)
            answered = at < len(known) and known[at][0] == "assistant"
            for place in (at, *_results(messages, at)) if answers or answered else (at,):
                (key,) = keys.of([messages[place]], _answer_before(messages, place))
                if place >= len(known) or key != known[place]:
                    self.same = min(self.same, place)
                self.keys[place] = key
        self.places: list[Place[T]] = [root] if before is None else before.places[: self.same + 1]
        end = len(self.places) - 1
        self.places[end:] = self.places[end].walk(self.keys[end:])

    @property
    def known(self) -> int:
        """How many of the messages the tree knows."""
        return len(self.places) - 1


class Walks(Generic[T]):
    """The ways of the last requests along a tree."""

    def __init__(self, root: Place[T], keys: Keys) -> None:
        self._root, self._keys = root, keys
        self._last: list[Walk[T]] = []

    def of(self, messages: Sequence[Message]) -> Walk[T]:
        """The way of a request."""
        return Walk(self._root, self._keys, messages, self._before(messages))

    def _before(self, messages: Sequence[Message]) -> Walk[T] | None:
        """The last request whose end stands at the same place here."""
        for walk in reversed(self._last):
            end = len(walk.spelt)
            if 0 < end <= len(messages) and walk.spelt[-1] == messages[end - 1]:
                return walk
        return None

    def remember(self, walk: Walk[T]) -> None:
        """Takes a request for those that come; it is instead of the one that it goes on from."""
        before, walk.before = walk.before, None
        kept = [one for one in self._last if one is not before or walk.same < len(one.keys)]
        self._last = [*kept[1 - _MOST :], walk]


def _results(messages: Sequence[Message], at: int) -> Iterator[int]:
    """The places of the results up to the next answer, whose keys depend on the answer before them."""
    for place in range(at + 1, len(messages)):
        role = messages[place].get("role")
        if role == "assistant":
            return
        if role == "tool":
            yield place


def _answer_before(messages: Sequence[Message], place: int) -> Message | None:
    """The last answer before a message."""
    before = (messages[at] for at in range(place - 1, -1, -1))
    return next((one for one in before if one.get("role") == "assistant"), None)


def _texts(value: Any) -> bool:
    """Whether a value has nothing but texts, so that what is equal to it is the same."""
    if isinstance(value, Mapping):
        return all(map(_texts, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_texts, value))
    return value is None or isinstance(value, str)
