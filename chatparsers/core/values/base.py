"""What a value transcoder is: one value of a syntax, read as it arrives and passed on as JSON text.

A transcoder is made when its value begins and asked to `scan` whenever there is more text. Its slots hold what never
changes, and lists of that and transcoders of its own, which `copy` copies: so it can be copied and pickled at any time.

Invariants: `scan` never goes back behind what it has consumed; what it leaves unconsumed at the end of a piece
is shorter than a bound that does not depend on the text; the concatenation of `out` over all scans, the end,
`error` and its position are the same for every way the text is cut.
"""

from __future__ import annotations

import json.encoder
import re
from collections.abc import Callable
from typing import TypeVar

__all__ = ["WS", "Search", "Transcoder", "escape", "white"]

_T = TypeVar("_T", bound="Transcoder")

Search = Callable[[str], object]
"""Finds in a piece the first character that is not plain; None where all of it is."""

WS = r"[ \t\r\n]*"
white = re.compile(WS).match


class Transcoder:
    """One value, being read."""

    __slots__ = ("done", "error", "notes", "out", "plain")

    def __init__(self) -> None:
        self.out = ""
        """The JSON text that the last scan made (may be empty)."""
        self.done = False
        """The value is over; the text behind it is not consumed."""
        self.error = ""
        """What was expected where the scan stopped, "" while all is well. A scan that fails has consumed all
        before it."""
        self.notes: list[tuple[int, str, str]] = []
        """What the last scan mended: (index in its text, expected, found)."""
        self.plain: Search | None = None
        """Where every character of the next piece that it does not find would be passed on as it stands; else
        None."""

    def scan(self, text: str, start: int, final: bool) -> int:
        """Reads ``text`` from ``start``; returns the index of the first character not consumed.

        ``final``: no more text will come, so a value that is not over is an error.
        """
        raise NotImplementedError

    def copy(self: _T) -> _T:
        """An independent copy at this point."""
        kind = type(self)
        other = kind.__new__(kind)
        for base in kind.__mro__:
            for name in getattr(base, "__slots__", ()):
                value = getattr(self, name)
                if isinstance(value, list):
                    value = value[:]
                elif isinstance(value, Transcoder):
                    value = value.copy()
                setattr(other, name, value)
        return other


_basestring: Callable[[str], str] = (
    getattr(json.encoder, "c_encode_basestring", None) or json.encoder.py_encode_basestring
)


def escape(text: str) -> str:
    """``text`` as the inside of a JSON string; nothing but quotes, backslashes and control characters is escaped."""
    return _basestring(text)[1:-1]
