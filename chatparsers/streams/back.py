"""What a stream of ids keeps so that its last ids can be taken back.

Strategy: ids that only added to running text are taken off its end again. Before any other id the stream is copied, if
the last copy is `_EVERY` ids old, and going back over such an id is reading the ids after a copy once more. Who goes
back does so often: from then on there is a copy before each such id.

Invariants: the first copy stands at or before ``first``, if a later id did more than add to running text. Forks may
have the same copies, which nobody changes then.
"""

from __future__ import annotations

from collections import deque
from typing import Any

_EVERY = 64


class Back:
    """The ``ids`` after the first ``since``, and copies of the stream. ``most`` ids can be taken back, none
    of the ``first``."""

    __slots__ = ("copies", "every", "first", "ids", "last", "most", "shared", "since")

    def __init__(self, most: int, fed: int = 0) -> None:
        self.most = most
        self.first = self.since = fed
        self.ids: list[int] = []
        self.copies: deque[tuple[int, Any]] = deque()
        """Streams, each with the number of ids that it has read."""
        self.every = _EVERY
        """How many ids are between two copies at least."""
        self.last = fed - 1
        """How many ids were before the last one that did more than add to running text."""
        self.shared = -1
        """After how many ids the last copy is that a fork may have, too."""

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled stream goes back to where it was pickled."""
        return Back, (self.most, self.fed)

    @property
    def fed(self) -> int:
        """How many ids were fed."""
        return self.since + len(self.ids)

    @property
    def possible(self) -> int:
        """How many ids can be taken back now."""
        return min(self.most, self.fed - self.first)

    def fork(self) -> Back:
        """What a fork of the stream keeps."""
        self._forget()
        other = Back(self.most)
        other.first, other.since, other.last = self.first, self.since, self.last
        other.ids, other.copies, other.every = self.ids[:], self.copies.copy(), self.every
        other.shared = self.shared = self.fed
        return other

    def due(self) -> bool:
        """Notes that the next id may do more than add to running text, and returns whether to `keep` a copy first."""
        fed = self.since + len(self.ids)
        if self.last < fed - self.most:
            self._forget()
        self.last = fed
        return not self.copies or fed - self.copies[-1][0] >= self.every

    def keep(self, copy: Any) -> None:
        """Keeps a copy of the stream, and no more that nobody can go back to."""
        copies = self.copies
        self.first = max(self.first, self.fed - self.most)
        copies.append((self.fed, copy))
        while len(copies) > 1 and copies[1][0] <= self.first:
            copies.popleft()
        self._drop(copies[0][0])

    def to(self, count: int) -> tuple[Any, bool, list[int]]:
        """Keeps the first ``count`` ids. Returns the copy to go on from, whether a fork may have it, and the ids after
        it; no copy if all that is taken back only added to running text."""
        copies, found, at = self.copies, None, count
        if copies and self.last >= count:
            while len(copies) > 1 and copies[-1][0] > count:
                copies.pop()
            at, found = copies.pop()
            self.every, self.last = 1, at if copies else self.first - 1
        again = self.ids[max(at - self.since, 0) : max(count - self.since, 0)]
        del self.ids[max(min(at, count) - self.since, 0) :]
        self.since = min(self.since, count)
        return found, at <= self.shared, again

    def _forget(self) -> None:
        """Keeps nothing if all ids that can be taken back only added to running text."""
        if self.last < self.fed - self.most:
            self.copies.clear()
            self._drop(self.fed)

    def _drop(self, count: int) -> None:
        """Forgets the ids up to the first ``count``."""
        del self.ids[: count - self.since]
        self.since = count
