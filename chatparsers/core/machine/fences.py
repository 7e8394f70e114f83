"""Markdown fences. A line in which the marks come again is inline code. Indented ones are not looked for."""

from __future__ import annotations

import re
from typing import Any

MARKS = ("```", "~~~")
_MOST = 64  # the name of a language is shorter
_open = re.compile(rf"(`{{3,}}|~{{3,}}|)[^`<\n\ud800-\udfff]{{0,{_MOST}}}").match
_close = re.compile(rf"(`{{3,}}|~{{3,}}|)[ \t\r]{{0,{_MOST}}}").match


def fence_at(text: str, i: int, final: bool, open: str, starts: bool) -> tuple[int, str]:
    """Where the marks at ``i`` end (-1 if more text must tell), and those of the fence that is open after them, if one
    is. ``open``: the marks of the fence that is open before them. ``starts``: they are at the start of a line."""
    found: Any = (_close if open else _open)(text, i)
    if not starts:
        return found.end(1), open
    end = found.end()
    if end == len(text) and not final and end - found.end(1) < _MOST:
        return -1, open
    line = end == len(text) or text[end] == "\n"
    if open:
        return found.end(1), "" if line and found[1].startswith(open) else open
    return found.end(1), found[1] if line else ""
