"""Where a JSON text that is cut off can be closed."""

from __future__ import annotations

import re
from typing import NamedTuple

from .json import half_escape, inside_string

_between = re.compile(r'[^"{}\[\],]*').match


class Cut(NamedTuple):
    """A JSON text up to ``whole`` and then ``closers`` is JSON again: it ends after the last value that is whole.
    ``inside``: where the text ends that is open in the end, without the half of an escape; -1 if none is open."""

    whole: int
    closers: str
    inside: int

    @property
    def open(self) -> bool:
        """Whether the value is not whole."""
        return not self.whole or self.inside >= 0 or bool(self.closers)


def cut_json(text: str) -> Cut:
    """Where ``text``, the beginning of a JSON text, can be closed."""
    # Every bracket outside strings moves ``whole``, so the brackets that are open there are those open at the end.
    stack: list[str] = []
    whole = at = 0
    inside = -1
    before = ""
    """The last bracket, comma or quotation mark."""
    while at < len(text):
        char, at = text[at], at + 1
        if char == '"':
            key = before in ("{", ",") and stack[-1:] == ["}"]
            found = inside_string(text, at)
            at = found.end() if found else at
            if at >= len(text) or text[at] != '"':
                inside = -1 if key else _without_half(text)
                break
            at += 1
            whole = whole if key else at
        elif char in "{[":
            stack.append("}" if char == "{" else "]")
            whole = at
        elif char in "}]":
            if stack:
                stack.pop()
            whole = at
        elif char == ",":
            whole = at - 1
        before = char
        found = _between(text, at)
        at = found.end() if found else at
    return Cut(whole, "".join(reversed(stack)), inside)


def _without_half(text: str) -> int:
    half = half_escape(text)
    return len(text) if half is None else half.start(1)
