"""Strangers' words where they can do no harm: a template's error, a client's tool, a model's output.

Whatever shows such words in a terminal or a log writes them through here, so that they end no line and move no cursor;
and whatever sends them on or stores them, so that UTF-8 can spell them.
"""

from __future__ import annotations

import os
import re
from typing import TextIO


def one_line(text: str, most: int | None = None) -> str:
    """``text`` in one line, with control characters escaped; at most ``most`` characters of it.

    >>> from chatparsers.plain import one_line
    >>> one_line("red\\x1b[31m\\nnext")
    'red\\\\x1b[31m next'
    """
    joined = " ".join(line.strip() for line in text[:most].splitlines() if line.strip())
    return _escaped(joined)


def plain_lines(text: str) -> str:
    """``text`` with its lines, and with control characters escaped."""
    return "\n".join(map(_escaped, text.split("\n")))


def _escaped(line: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in line)


def whole_characters(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair, which UTF-8 cannot spell."""
    if text.isascii() or _surrogate(text) is None:
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


_surrogate = re.compile("[\ud800-\udfff]").search


def wants_colour(stream: TextIO, choice: str = "auto") -> bool:
    """Whether to write colours: ``always``, ``never``, or on a terminal that shows them, without ``NO_COLOR``."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return False
    return os.name != "nt" or any(name in os.environ for name in ("WT_SESSION", "TERM", "ANSICON"))
