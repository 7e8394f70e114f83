"""Caches that stay small whatever strangers send: bounded in bytes, or closed to what is long."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import lru_cache, wraps
from threading import Lock
from typing import Any, Generic, TypeVar

__all__ = ["Kept", "kept"]

_V = TypeVar("_V")
_A = TypeVar("_A", bound=str | tuple[Any, ...])


class Kept(Generic[_V]):
    """Values by key, together at most ``most`` bytes. The ones that were not asked for the longest go first.

    A value of more than an eighth of that is not kept. Threads may share it.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        self._values: OrderedDict[Hashable, tuple[_V, int]] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: Hashable) -> _V | None:
        """The value of ``key``; None if it is not kept."""
        with self._lock:
            found = self._values.get(key)
            if found is None:
                return None
            self._values.move_to_end(key)
            return found[0]

    def add(self, key: Hashable, value: _V, size: int) -> None:
        """Keeps a value of ``size`` bytes, its key included."""
        if size > self.most >> 3:
            return
        with self._lock:
            before = self._values.pop(key, None)
            self.size += size - (before[1] if before else 0)
            self._values[key] = value, size
            while self.size > self.most:
                self.size -= self._values.popitem(last=False)[1][1]

    def clear(self) -> None:
        """Forgets all values."""
        with self._lock:
            self._values.clear()
            self.size = 0


def kept(entries: int, longest: int) -> Callable[[Callable[[_A], _V]], Callable[[_A], _V]]:
    """`functools.lru_cache` for a function of one text or tuple, which does not keep those longer than ``longest``."""

    def around(function: Callable[[_A], _V]) -> Callable[[_A], _V]:
        known = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def call(given: _A) -> _V:
            return known(given) if len(given) <= longest else function(given)

        return call

    return around
