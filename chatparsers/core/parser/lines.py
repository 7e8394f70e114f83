"""Lines of running text that begin a call without its opener: a declared tool's name, then an inner marker.

The name is text until the marker comes, so a line is held as long as it may be a name of the request. Only names at the
beginning of a line are looked for, because a look at every word would cost as much as all of the reading.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from ..schema.tools import Toolset
from .code import stop_finder
from .instructions import MAX_HEADER

__all__ = ["Lines"]

_WHITE = " \t\r\n"


class _Names(NamedTuple):
    """The names of a request: in order, and the length of the longest."""

    ordered: list[str]
    longest: int


class Lines:
    """Finds where running text ends: before a stop, or behind a line break and before the name of a call.

    ``stops`` may begin anywhere, ``marks`` follow a name. ``plain`` searches a later piece for what needs the machine:
    the first character of a stop, or a last line without blanks.
    """

    __slots__ = ("marks", "plain", "stops")

    def __init__(self, stops: Iterable[str], marks: Iterable[str]) -> None:
        self.stops = stop_finder(*stops)
        self.marks = stop_finder(*marks).at
        self.plain = stop_finder(*self.stops.stops, "\n").find

    def find(self, text: str, i: int, start: int, tools: Toolset, final: bool) -> tuple[int, bool, bool]:
        """Where the text from ``i`` ends, whether a name begins there, and whether more text must tell. A stop counts
        from ``start`` on."""
        match = self.stops.whole(text, start) if final else self.stops.find(text, start)
        end = len(text) if match is None else match.start()
        whole = match is not None and match[1] is None
        if final and not whole:
            return end, False, False
        names = self._names(tools)
        last = end
        while last > i and end - last < MAX_HEADER and text[last - 1] in _WHITE:
            last -= 1
        line = text.rfind("\n", max(i, last - names.longest - 1), last) + 1
        name = text[line:last] if line else ""
        at = bisect_left(names.ordered, name)
        known = bool(name) and names.ordered[at : at + 1] == [name]
        if whole:
            named = known and self.marks(text, end) is not None
            return line if named else end, named, False
        begun = line > 0 and last == end and any(one.startswith(name) for one in names.ordered[at : at + 1])
        if known or begun:
            return line - 1, False, True
        line = text.rfind("\n", last, end)
        return (end, False, match is not None) if line < 0 else (line, False, True)

    def _names(self, tools: Toolset) -> _Names:
        known: _Names | None = tools.kept.get(Lines)
        if known is None:
            ordered = sorted(name for name in tools.names() if name == name.strip() and "\n" not in name)
            known = tools.kept[Lines] = _Names(ordered, max(map(len, ordered), default=0))
        return known
