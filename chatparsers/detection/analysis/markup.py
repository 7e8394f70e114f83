"""Writes markup by the builder: whole markers become tokens, and white space is read leniently."""

from __future__ import annotations

import re

from ...answers import Builder, Node
from ...templates.probe.differences import is_marker, units


class Markup:
    """Makes nodes of markup. ``marks``: texts that are one token each, though they are not spelt like a marker."""

    def __init__(self, p: Builder, marks: tuple[str, ...] = ()) -> None:
        self.p = p
        self._marks = re.compile("(" + "|".join(map(re.escape, marks)) + ")") if marks else None
        self._whole = frozenset(marks)
        self._made: dict[str, Node] = {}

    def literal(self, text: str) -> Node:
        """Markup unchanged: whole markers are tokens."""
        pieces: list[str | Node] = [""]
        for part in [text] if self._marks is None else self._marks.split(text):
            for unit in [part] if part in self._whole else units(part):
                if unit in self._whole or is_marker(unit):
                    pieces += [self.p.token(unit), ""]
                else:
                    pieces[-1] = str(pieces[-1]) + unit
        return self.p.sequence(*(piece for piece in pieces if not isinstance(piece, str) or piece))

    def lenient(self, text: str) -> Node:
        """As `literal`; but any white space is read wherever some is written."""
        if text in self._made:
            return self._made[text]
        pieces: list[str | Node] = []
        for part in re.findall(r"\s+|\S+", text):
            pieces.append(self.p.space(part) if part.isspace() else self.literal(part))
        self._made[text] = found = self.p.sequence(*pieces)
        return found

    def marker(self, text: str) -> Node:
        """A marker with the white space that the template writes around it. Any part of that space may be missing."""
        core = text.strip()
        before, _, after = text.partition(core)
        return self.p.trim(before) + self.literal(core) + self.p.trim(after)
