"""The texts that end a raw value: found in a text, or their beginning at its end.

Searching for a class of first characters is many times faster than searching for the alternatives, so all patterns of
texts are built by `by_first`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache, partial
from typing import Any, Union

from .value import Search

WHITE = " \t\r\n"
is_token = re.compile("[\ud800-\udbff]").fullmatch
"""Whether a text is the one character of a special token."""


def by_first(texts: Iterable[str]) -> str:
    """A pattern for the rest of one of ``texts`` after its first character, the longest first."""
    rests: dict[str, list[str]] = {}
    for text in sorted(texts, key=len, reverse=True):
        rests.setdefault(text[0], []).append(text[1:])
    return "|".join(f"(?<={re.escape(first)})(?:{_either(found, _DEEP)})" for first, found in rests.items())


_DEEP = 32
"""How many groups of a pattern may be in each other."""
_SPLIT = 4
"""How long a text is at least of which the beginning is split off."""


def _either(texts: list[str], deep: int) -> str:
    """A pattern for one of ``texts``, the longest first. What many of them begin with is looked at once, ``deep`` times
    in each other. Groups are most of what a pattern costs, so that the shortest texts are not split."""
    if len(texts) == 1 or not deep:
        return "|".join(map(re.escape, texts))
    begun: dict[str, list[str]] = {}
    for text in texts:
        begun.setdefault(text[:1], []).append(text)
    found: list[str] = []
    for alike in begun.values():
        shared = _begin([text for text in alike if len(text) >= _SPLIT])
        rests = [text[len(shared) :] for text in alike if text.startswith(shared)] if shared else []
        if len(rests) > 1:
            found.append(f"{re.escape(shared)}(?:{_either(rests, deep - 1)})")
            alike = [text for text in alike if not text.startswith(shared)]
        found += map(re.escape, alike)
    return "|".join(found)


def _begin(texts: list[str]) -> str:
    """What all of ``texts`` begin with."""
    first, last = min(texts, default=""), max(texts, default="")
    return first[: next((at for at, char in enumerate(first) if last[at] != char), len(first))]


def longest_first(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(texts), key=lambda text: (-len(text), text)))


Find = Callable[[str, int], Union["re.Match[str]", None]]


@lru_cache(maxsize=1024)
def _patterns(stops: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What `StopFinder` searches for: a stop or its beginning; the first characters of stops or JSON's escapes.

    Many values of a program have the same stops, and to compile these patterns is most of what a program costs.
    """
    if not stops:
        never = re.compile(r"(?!)")
        return never, re.compile(r'["\\\x00-\x1f]')
    begun = {stop[:end] for stop in stops for end in range(1, len(stop))}
    firsts = "".join(sorted({re.escape(stop[0]) for stop in stops}))
    starts = f"[{firsts}]"
    whole = by_first(stops)
    return (
        re.compile(rf"{starts}(?:{whole}|()(?:{by_first(begun) or '(?!)'})\Z)"),
        re.compile(rf'["\\\x00-\x1f{firsts}]'),
    )


class StopFinder:
    """Finds the first stop in a text, or the beginning of a stop at the end of the text.

    ``find(text, i)`` returns a match or None. The match has group 1 None for a whole stop, "" for the beginning of
    a stop that runs to the end of the text. ``plain`` finds the characters with which a stop may begin; ``plain_json``
    finds these and the characters that a JSON string escapes.

    ``end``: the end of the text is a stop too. ``shown``: the stops as a diagnostic shows them, because a special token
    is one character in the machine's text. ``markers``: what else is found, as no value holds it; ``token`` searches
    for those of them that are special tokens, and is None where none is. ``named``: pairs of texts that end a value
    where a name of its tool's arguments is between them, or where a tag goes on, if the second is empty; the first
    is found. ``seams``: such pairs around the name of a tool. ``openers`` are the first texts of all pairs,
    ``known`` the stops and these, ``texts`` all that is found, the longest first; ``heads`` are these by their first
    character, once `at` was asked. ``tags`` are those of ``named`` that are as the format writes them. ``quiet`` is the
    finder without the markers that are text, and None where none is.
    """

    __slots__ = (
        "end", "find", "heads", "known", "markers", "named", "openers", "plain", "plain_json", "quiet", "seams",
        "shown", "stops", "tags", "texts", "token",
    )  # fmt: skip

    def __init__(
        self,
        stops: Iterable[str],
        end: bool = False,
        shown: Iterable[str] | None = None,
        markers: Iterable[str] = (),
        named: Iterable[tuple[str, str]] = (),
        seams: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.end = end
        self.shown = None if shown is None else longest_first(shown)
        self.stops = longest_first(stops)
        self.markers = longest_first(set(markers) - set(self.stops))
        # What decides is the longest text after the name.
        self.named = tuple(sorted(named, key=lambda pair: -len(pair[1])))
        self.seams = tuple(seams)
        tags = [pair for pair in self.named if pair[1] and not pair[0].lstrip().startswith("</")]
        self.tags = tuple([pair for pair in tags if pair[1][-1] in WHITE] or tags)
        self.openers = longest_first(before for before, _ in (*self.named, *self.seams))
        self.known = (*self.stops, *self.openers)
        self.texts = longest_first((*self.known, *self.markers))
        self.heads: dict[str, list[str]] | None = None
        tokens = [marker for marker in self.markers if is_token(marker)]
        self.token = re.compile(f"[{''.join(tokens)}]").search if tokens else None
        self.quiet: StopFinder | None = None
        if len(tokens) < len(self.markers):
            self.quiet = StopFinder(self.stops, end, shown, tokens, self.named, self.seams)
        # The patterns are compiled at the first search: a program has many, and reads most turns with a few of them.
        self.find: Find = partial(self._first, "find")
        self.plain: Search = partial(self._first, "plain")
        self.plain_json: Search = partial(self._first, "plain_json")

    def _first(self, name: str, *where: Any) -> re.Match[str] | None:
        """The first search: ``name`` is that of the attribute which was called."""
        pattern, escaped = _patterns(self.texts)
        self.find, self.plain, self.plain_json = pattern.search, pattern.search, escaped.search
        found: re.Match[str] | None = getattr(self, name)(*where)
        return found

    def at(self, text: str, i: int) -> int:
        """The length of the stop that begins at ``i``; 0 if none does, -1 if the text ends within it."""
        if self.heads is None:
            heads: dict[str, list[str]] = {}
            for stop in self.texts:
                heads.setdefault(stop[0], []).append(stop)
            self.heads = heads  # whole: another thread may ask at the same time
        stops = self.heads.get(text[i : i + 1])
        if stops is None:
            return 0
        for stop in stops:
            if text.startswith(stop, i):
                return len(stop)
        if len(text) - i < len(stops[0]):
            begun = text[i:]
            for stop in stops:
                if stop.startswith(begun):
                    return -1
        return 0

    def whole(self, text: str, i: int) -> re.Match[str] | None:
        """As ``find``, at the end of the whole text: no stop that only begins there counts."""
        match = self.find(text, i)
        while match is not None and match[1] is not None:
            match = self.find(text, match.start() + 1)
        return match

    def text(self, text: str, start: int, final: bool) -> tuple[int, bool]:
        """Returns where the text before a stop ends, and whether a whole stop follows."""
        match = self.whole(text, start) if final else self.find(text, start)
        return (len(text), final and self.end) if match is None else (match.start(), match[1] is None)

    @property
    def expected(self) -> str:
        """The stops, for a diagnostic."""
        return " or ".join(map(repr, self.shown or self.stops)) or "the end of a value"

    def __reduce__(self) -> tuple[object, ...]:
        return StopFinder, (self.stops, self.end, self.shown, self.markers, self.named, self.seams)
