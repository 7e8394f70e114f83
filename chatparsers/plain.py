"""Strangers' words in lines for people: a template's error, a client's tool, a model's output.

Whatever shows such words in a terminal or a log writes them through here, so that they end no line and move no cursor.
"""

from __future__ import annotations


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
