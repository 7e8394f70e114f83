"""Nodes that read characters of the text, and where it ends."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..wrong import check_characters, check_regex, check_texts, matches_any, wrong
from .node import ALWAYS, NEVER, SOMETIMES, Leaf, Needed, Node, Reader, Rules, Silent


def check_bounds(node: Node, least: int, most: int | None) -> None:
    """Raises `DefinitionError` if nothing can come ``least`` to ``most`` times."""
    if least < 0 or (most is not None and (most < least or not most)):
        what = f"it cannot come {least} to {most} times"
        wrong(node, what, "give a least that is 0 or more, and a larger most")
    if max(least, most or 0) > _MOST:
        what = f"it comes up to {max(least, most or 0)} times, and {_MOST} is the most that is counted"
        wrong(node, what, "leave the most out: None is no bound")


_MOST = 1000
"""The most repetitions that are counted: each is code of its own."""


@dataclass(frozen=True, slots=True)
class Chars(Leaf, tokens=(), commits=False):
    """Parses and generates ``least`` to ``most`` (None: any number of) characters of a class such as ``"a-z0-9_"`` or
    ``"^<"``."""

    ranges: str
    least: int = 1
    most: int | None = None

    def empty(self, rules: Rules) -> int:
        return NEVER if self.least else ALWAYS

    def shown(self) -> str:
        return f"p.chars({self.ranges!r})"

    def check(self, reader: Reader) -> None:
        ranges = self.ranges
        if ranges.startswith("[") and ranges.endswith("]"):
            wrong(self, "the brackets are part of the class", f"leave them out: p.chars({ranges[1:-1]!r})")
        if not re.fullmatch(r"\^?(?:[^\]\\]|\\.)+", ranges, re.DOTALL):
            what = "expected the inside of a class, such as 'a-z0-9_'"
            wrong(self, what, "write ] and \\ with a backslash")
        if not matches_any(check_regex(self, f"[{ranges}]")):
            wrong(self, "no character is of this class", "give the class of those that are read")
        check_bounds(self, self.least, self.most)


@dataclass(frozen=True, slots=True)
class AnyChar(Needed, shown="p.any()", check=None):
    """Parses and generates one character."""


@dataclass(frozen=True, slots=True)
class End(Silent, empty=SOMETIMES, commits=False, shown="p.end()", check=None):
    """Parses the end of the turn, which a turn that was cut off does not have; generates nothing."""


@dataclass(frozen=True, slots=True)
class LineStart(Silent, empty=SOMETIMES, commits=False, shown="p.line_start()", check=None):
    """Parses the start of a line of running text, or of running text itself; generates nothing."""


@dataclass(frozen=True, slots=True)
class Until(Leaf, tokens=(), empty=ALWAYS, commits=False):
    """Parses text up to the first of ``stops`` or the end, streamed; generates text without any of ``stops``.

    Without stops, this is the rest of the text.
    """

    stops: tuple[str, ...]

    def shown(self) -> str:
        return f"p.until({', '.join(map(repr, self.stops))})"

    def check(self, reader: Reader) -> None:
        check_texts("p.until", self.stops)
        check_characters(self, *self.stops)
