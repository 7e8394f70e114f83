"""A reader of a value: what the machine asks of it.

The machine makes one when a value begins, and calls `scan` whenever more text has arrived. The slots hold immutable
values, lists of them, and inner transcoders. `copy` copies the lists and the inner transcoders, so a transcoder can be
copied and pickled at any time.

Invariants:
- `scan` never goes back before a character that it has consumed.
- The text that it leaves unconsumed at the end of a piece is shorter than a fixed bound.
- The joined `out` of all scans, the end of the value, `error` and its position are the same for every chunking.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, TypeVar

_T = TypeVar("_T", bound="Transcoder")

Search = Callable[[str], object]
"""Finds the first character of a piece that is not plain; None if every character is plain."""


class Transcoder:
    """Reads one value."""

    __slots__ = ("done", "error", "length", "marked", "notes", "out", "plain")

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        """Sets what every transcoder has."""
        self.out = ""
        """What the last scan put out; it may be empty."""
        self.done = False
        """True once the value has ended. The text after the value is not consumed."""
        self.error = ""
        """What the scan expected at the place where it failed; "" if it has not failed. All text before that
        place is consumed. With ``done``: the value is whole, but not what is wanted here."""
        self.length = 0
        """Of such a value: how long it is."""
        self.notes: list[tuple[int, str, str]] = []
        """The mends of the last scan: (index in its text, expected, found)."""
        self.marked = -1
        """The index of a call's marker that the last scan found in the value as text; -1: it found none."""
        self.plain: Search | None = None
        """Fast path: a search for the first character that needs `scan`. If it finds none in the next piece, the
        piece may be emitted verbatim. None if there is no fast path here, and where the last scan left text."""

    def scan(self, text: str, start: int, final: bool) -> int:
        """Reads ``text`` from ``start``; returns the index of the first character not consumed.

        ``final``: no more text will come, so an unfinished value is an error.
        """
        raise NotImplementedError

    def holds(self, text: str) -> bool:
        """Whether a scan would leave all of ``text``, which begins with what the last scan left. False if only a scan
        can tell."""
        return False

    def cut_off(self) -> None:
        """The text was cut off: its end does not end this value."""

    def copy(self: _T) -> _T:
        """An independent copy at this point."""
        kind: Any = type(self)
        other: _T = kind.__new__(kind)
        names = _slots(kind)
        for name, value in zip(names, attrgetter(*names)(self), strict=True):
            if type(value) is list:
                value = value[:]
            elif isinstance(value, Transcoder):
                value = value.copy()
            setattr(other, name, value)
        return other

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        kind: Any = type(self)
        return None, {name: getattr(self, name) for name in _slots(kind)}


@cache
def _slots(kind: Any) -> tuple[str, ...]:
    """The names of all slots of a class."""
    return tuple(name for base in kind.__mro__ for name in getattr(base, "__slots__", ()))
