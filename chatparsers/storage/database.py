"""What a store asks of its database: transactions, rows, and a clock that only runs forward."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, Literal, TypeAlias

from ..serving import ApiError
from .rows import sealed

Told: TypeAlias = Literal["damaged", "lost", "aged", "room"]
"""What is told of a store: rows that are left out, writes that are gone, entries that went by age or for others."""
Tell: TypeAlias = Callable[[Told, str, int], None]
"""Takes what is told, its words, and how many."""


class StoreFull(Exception):
    """The store cannot take it."""


class Clock:
    """The store's own clock: seconds that somebody who used the store saw pass. It is written with each write. Whoever
    reads it adds what passed since he last did, by a clock that nobody sets. So no clock that is set ages anything, nor
    does the time while nobody uses the store. ``tell``: takes what is to be told."""

    def __init__(self, tell: Tell) -> None:
        self.tell = tell
        self._seen: tuple[float, float] | None = None

    def now(self, written: float) -> float:
        """``written``: as the store has it."""
        at = time.monotonic()
        seen = self._seen
        now = written if seen is None else max(written, seen[0] + at - seen[1])
        self._seen = now, at
        return now


class Rows(ABC):
    """One transaction. A query has ``?`` for each value."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now: float | None = None
        self._writes = 0

    @abstractmethod
    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""

    @abstractmethod
    def run(self, query: str, *values: Any) -> int:
        """How many rows a query changed."""

    @abstractmethod
    def many(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """The same query, once for each of these."""

    @property
    def now(self) -> float:
        """The time of the store's own clock, when the transaction first asked. A damaged one would age what is young:
        then it is as late as the last use of an entry."""
        if self._now is None:
            ((writes, written, digest),) = self.all("SELECT writes, clock, digest FROM about")
            if sealed(writes, written) != digest:
                self._clock.tell("damaged", "the store's clock is damaged: it goes on from the last use", 1)
                ((written,),) = self.all("SELECT coalesce(max(used), 0) FROM entries")
            self._writes = writes if isinstance(writes, int) else 0
            self._now = self._clock.now(written)
        return self._now

    def count(self) -> None:
        """Counts a write, and writes the clock."""
        now, writes = self.now, self._writes + 1
        query = "UPDATE about SET writes = ?, clock = ?, digest = ?"
        self.run(query, writes, now, sealed(writes, now))


class Database(ABC):
    """``where``: as messages name it."""

    where: str

    @abstractmethod
    def writing(self) -> AbstractContextManager[Rows]:
        """A transaction in which nobody else writes. It raises `StoreFull` if it cannot be written, whatever of."""

    @abstractmethod
    def reading(self) -> AbstractContextManager[Rows]:
        """A transaction that only reads. It raises `ApiError` if it cannot be read."""

    @abstractmethod
    def close(self) -> None:
        """Lets it go."""


def unreadable(where: str) -> ApiError:
    """The error where nothing can be read now."""
    return ApiError(f"the store {where} cannot be read: try again later", status=503)


def damaged(where: str, what: str) -> ApiError:
    """The error for what is there, and is not what was written."""
    return ApiError(f"{what} is damaged in the store {where}", status=410, code="damaged")
