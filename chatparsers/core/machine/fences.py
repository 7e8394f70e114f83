"""Markdown fences. A line in which the marks come again is inline code. Indented ones are not looked for."""

from __future__ import annotations

import re

_line = re.compile(r"^(`{3,}|~{3,})(.*)", re.MULTILINE)
_name = re.compile(r"[^`<\ud800-\udfff]{0,64}").fullmatch


class Fences:
    """The fences in the content, which are looked for where a call that lacks its opener asks, and nowhere else.

    ``before``: the content in the prompt. ``open``: the marks of the fence that is open after the first ``looked``
    characters, which are whole lines; ``ended``: how many fences ended in them. ``noted``: how many had ended when an
    opener was last read as text. ``asked``: something depended on the content.
    """

    __slots__ = ("asked", "before", "ended", "looked", "noted", "open")

    def __init__(self, before: str = "") -> None:
        self.before, self.open, self.asked = before, "", False
        self.looked = self.ended = self.noted = 0

    def copy(self) -> Fences:
        other = Fences(self.before)
        other.open, other.looked, other.ended = self.open, self.looked, self.ended
        other.noted, other.asked = self.noted, self.asked
        return other

    def again(self) -> None:
        """Looks again from the start, as the content has become shorter."""
        self.open, self.looked, self.ended = "", 0, 0

    def at(self, content: list[str], more: str, note: bool) -> tuple[str, bool]:
        """The marks of the fence that is open after ``content`` and ``more``, and whether one ended since the last
        ``note``. Joins the content in its list."""
        self.asked = True
        if len(content) > 1:
            content[:] = ["".join(content)]
        text = self.before + content[0] if content else self.before
        whole = text.rfind("\n") + 1
        if whole > self.looked:
            self.open, ended = _after(text[self.looked : whole], self.open)
            self.looked, self.ended = whole, self.ended + ended
        open, ended = _after(text[self.looked :] + more, self.open)
        if note:
            self.noted = self.ended + ended
        return open, self.ended + ended > self.noted


def _after(text: str, open: str) -> tuple[str, int]:
    """The marks of the fence that is open after whole lines, and how many ended in them. ``open``: as before them."""
    ended = 0
    for line in _line.finditer(text):
        marks, rest = line.groups()
        if open:
            if marks.startswith(open) and not rest.strip(" \t\r"):
                open, ended = "", ended + 1
        elif _name(rest):
            open = marks
    return open, ended
