"""Lines of running text that begin a call without its opener: a declared tool's name, then an inner marker.

The name is text until the marker comes, so a line is held as long as it may be a name of the request. Only names at the
beginning of a line are looked for, because a look at every word would cost as much as all of the reading.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from ...schema.tools import Toolset
from ...values.base import Search
from ...values.stops import by_first
from .code import WHITE, stop_finder
from .instructions import MAX_HEADER


class _Names(NamedTuple):
    """The names of a request, in order, and the characters with which they begin; what finds the characters after which
    the machine must see a later piece: where a stop may begin, or a line that may be a name."""

    ordered: list[str]
    firsts: str
    plain: Search


class Lines:
    """Finds where running text ends: before a stop, or after a line break and before the name of a call.

    ``stops`` may begin anywhere, ``marks`` follow a name.
    """

    __slots__ = ("marks", "stops")

    def __init__(self, stops: Iterable[str], marks: Iterable[str]) -> None:
        self.stops = stop_finder(*stops)
        self.marks = stop_finder(*marks)

    def _names(self, tools: Toolset) -> _Names:
        """The names of the tools; they are kept with them."""
        ordered = sorted(name for name in tools.names() if name == name.strip() and "\n" not in name)
        firsts = "".join(sorted({name[0] for name in ordered}))
        found = tools.kept[self] = _Names(ordered, firsts, _plain(self.stops.stops, firsts))
        return found

    def plain(self, tools: Toolset) -> Search:
        """Searches a later piece for what needs the machine."""
        return (tools.kept.get(self) or self._names(tools)).plain

    def find(self, text: str, i: int, start: int, tools: Toolset, final: bool) -> tuple[int, bool, bool]:
        """Where the text from ``i`` ends, whether a name begins there, and whether more text must tell. A stop counts
        from ``start`` on."""
        match = self.stops.whole(text, start) if final else self.stops.find(text, start)
        end = len(text) if match is None else match.start()
        whole = match is not None and match[1] is None
        if final and not whole:
            return end, False, False
        names = tools.kept.get(self) or self._names(tools)
        tail = text[i:end][-MAX_HEADER:]
        last = end - len(tail) + len(tail.rstrip(WHITE))
        line = text.rfind("\n", i, last) + 1
        if 0 < line < last and text[line] in names.firsts:
            name = text[line:last]
            at = bisect_left(names.ordered, name)
            next = names.ordered[at] if at < len(names.ordered) else ""
            if whole:
                if name == next and self.marks.at(text, end):
                    return line, True, False
            elif name == next or (last == end and next.startswith(name)):
                return line - 1, False, True
        if whole:
            return end, False, False
        broken = tail.endswith("\n")
        return end - broken, False, broken or match is not None


@lru_cache(maxsize=1024)
def _plain(stops: tuple[str, ...], firsts: str) -> Search:
    """Searches for the first two characters of a stop or of a line that begins as a name, also cut after the first.

    Two tell prose from markup well enough, and compile in a tenth of a millisecond."""
    begun = {*(stop[:2] for stop in stops), *("\n" + first for first in firsts)}
    starts = "".join(sorted({re.escape(text[0]) for text in (*begun, "\n")}))
    return re.compile(rf"[{starts}](?:{by_first(begun)}|\Z)").search
