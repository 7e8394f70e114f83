"""A list that grows at its end, of which copies share what they have in common: a copy takes the same time at any
length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

_Past: TypeAlias = "tuple[_Past | None, Any, int]"


class Log:
    """Items in their order.

    ``new``: the last of them, a list or an array, to which whoever writes appends. ``past``: those before, which never
    change again: what is before them, the items, and how many all of these are.
    """

    __slots__ = ("new", "past")

    def __init__(self, new: Any) -> None:
        self.new = new
        self.past: _Past | None = None

    def __len__(self) -> int:
        return len(self.new) + (0 if self.past is None else self.past[2])

    def __reversed__(self) -> Iterator[Any]:
        yield from reversed(self.new)
        past = self.past
        while past is not None:
            yield from reversed(past[1])
            past = past[0]

    def __reduce__(self) -> tuple[Any, ...]:
        return Log, (self.all(),)  # what copies share is too deep for pickle

    def copy(self) -> Log:
        """An independent log with the same items."""
        if self.new:
            self.past = self.past, self.new[:], len(self)
            del self.new[:]
        other = Log(self.new[:])
        other.past = self.past
        return other

    def all(self) -> Any:
        """All items, as the list or array that ``new`` is from now on."""
        if self.past is not None:
            self.new[:], self.past = self.since(0), None
        return self.new

    def since(self, count: int) -> Any:
        """The items after the first ``count``."""
        parts, past = [self.new], self.past
        while past is not None and past[2] > count:
            parts.append(past[1])
            past = past[0]
        found = parts.pop()[count - (0 if past is None else past[2]) :]
        while parts:
            found += parts.pop()
        return found

    def joined(self) -> str:
        """The items, which are texts, as one text, which takes their place."""
        if self.past is not None:
            self.all()
        texts: list[str] = self.new
        if len(texts) > 1:
            texts[:] = ["".join(texts)]
        return texts[0] if texts else ""
