"""Where in a line of content a text ends, and in which Markdown fence: asked only where it matters.

Whatever else is between two runs of content stands on a line of its own. A line in which the marks come again is inline
code. Indented marks are not looked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .instructions import CONTENT, MARKUP, REASONING, Item, Line

_MOST = 64  # the name of a language is shorter
_marks = re.compile(rf"^(`{{3,}}|~{{3,}})([^`<\n\ud800-\udfff]{{0,{_MOST}}})$", re.MULTILINE).finditer


def after(line: Line | None, items: Sequence[Item]) -> Line:
    """Where a text ends that goes on from ``line``, or begins, with ``items``."""
    if line and not items:
        return line
    open, rest = line or ("", "")
    whole, _, rest = (rest + "".join([_content(kind, raw) for kind, raw, _ in items])).rpartition("\n")
    for found in _marks(whole) if "```" in whole or "~~~" in whole else ():
        marks, name = found.groups()
        if not open:
            open = marks
        elif marks.startswith(open) and not name.strip():
            open = ""
    return open, rest[: 2 * _MOST] if rest[:1] in "`~" else "."


def _content(kind: int, text: str) -> str:
    if kind == CONTENT or not text:
        return text
    if kind == REASONING:
        return "\n" if text.endswith("\n") else "."
    return "\n" if kind != MARKUP or text.strip(" \t\r") else ""
