"""What a stream of ids keeps so that its last ids can be taken back.

Strategy: ids that only added to running text are taken off its end again. Before any other id the reading is copied, if
the last copy is `_EVERY` ids old, and going back over such an id is reading the ids after a copy once more. Who goes
back does so often: from then on there is a copy before each such id.

Invariants: the first copy stands at or before ``first``, if a later id did more than add to running text. Forks may
have the same copies, which nobody changes then.
"""

from __future__ import annotations

from typing import Any

_EVERY = 128


class Back:
    """The ``ids`` after the first ``since``, and copies of the reading. ``most`` ids can be taken back, none
    of the ``first``."""

    __slots__ = ("copies", "due", "every", "first", "ids", "last", "most", "shared", "since")

    def __init__(self, most: int, fed: int = 0) -> None:
        self.most = most
        self.first = self.since = fed
        self.ids: list[int] = []
        self.copies: list[tuple[int, Any]] = []
        """Readings, each with the number of ids that it has read."""
        self.every, self.due = _EVERY, 0
        """How many ids are between two copies at least, and before which id the next one is due."""
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
        other.first, other.since, other.last, other.due = self.first, self.since, self.last, self.due
        other.ids, other.copies, other.every = self.ids[:], self.copies.copy(), self.every
        other.shared = self.shared = self.fed
        return other

    def keep(self, reading: Any) -> None:
        """Keeps a copy before an id that may do more than add to running text, if there must be one, and no copies to
        which nobody can go back."""
        fed = self.since + len(self.ids)
        if fed >= self.due:
            self._forget()
            self.due, copies = fed + self.every, self.copies
            self.first = max(self.first, fed - self.most)
            copies.append((fed, reading.copy()))
            while len(copies) > 1 and copies[1][0] <= self.first:
                del copies[0]
            self._drop(copies[0][0])
        self.last = fed

    def without(self, last: int, reading: Any) -> Any:
        """Takes the ``last`` ids back, and returns what was read of those before; ``reading``: what was read of all.
        None if so many cannot be taken back."""
        ids, since = self.ids, self.since
        fed = since + len(ids)
        count = fed - last
        if not self.first <= count <= fed or last > self.most:
            return None
        copies, found, at = self.copies, None, count
        if copies and self.last >= count:
            while len(copies) > 1 and copies[-1][0] > count:
                copies.pop()
            at, found = copies.pop()
            self.every, self.due, self.last = 1, at, at if copies else self.first - 1
        again = ids[at - since : count - since] if at < count else ()
        if count < since:
            self.since = since = count
        del ids[(at if at < count else count) - since :]
        if not copies and self.due > count:
            self.due = count  # the next id that does more than add to running text needs one
        if found is not None:
            reading = found.copy() if at <= self.shared else found
            reading.back = self
            if again:
                reading.read_ids(again, [])
        if reading.ids.fed > count:
            reading.shorten(count)
        return reading

    def _forget(self) -> None:
        """Keeps nothing if all ids that can be taken back only added to running text."""
        if self.last < self.fed - self.most:
            self.copies.clear()
            self.due = 0
            self._drop(self.fed)

    def _drop(self, count: int) -> None:
        """Forgets the ids up to the first ``count``."""
        del self.ids[: count - self.since]
        self.since = count
