"""Declared names that hold what no name of their place holds, such as the ``page[size]`` of JSON:API.

A name in a header is read as a run of a class of characters, whatever the request declares. A declared name outside
that class is read whole, if what the definition writes after a name follows it. Such names are rare: they are looked
for once for each request and place, and a request without them pays one look-up for a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from ...kept import kept
from ..definition.nodes import Tag
from .code import WHITE

if TYPE_CHECKING:
    from .instructions import Item
    from .machine import Machine

Run = Callable[..., "re.Match[str] | None"]
"""Matches the longest run of a class of characters."""
JSON_INSIDE = r'(?:[^"\\\x00-\x1f]|\\.|\\\Z)'
"""One character of the inside of a JSON string, or an escape; the text may end after the escape's backslash."""

Parts = Callable[[str], "list[Item] | None"]
"""The trail items of a run; None if it is no header."""
Spelt = tuple[tuple[str, str], ...]
"""How names are spelt, the longest first, and the names."""


class Names:
    """The place of a name in a program.

    ``tag``: whose names are there (``of_tool``: a tool's arguments); ``item`` is its trail item. ``run`` matches the
    ordinary ones. ``spell`` gives the ways to write a name.
    ``follows``: the texts that may follow a name, white space aside; empty: any text may. ``header``: the run holds
    more than the name. ``alone``: the run is the name, and white space around it is not of it, unless a declared name
    has it. ``key``: equal where ``tag``, ``run`` and ``spell`` are. ``odd`` remembers what `_odd` found.
    """

    __slots__ = ("alone", "follow", "follows", "header", "item", "key", "odd", "of_tool", "run", "spell")

    def __init__(
        self,
        tag: Tag,
        item: int,
        run: Run,
        spell: Callable[[str], Iterable[str]],
        follows: Iterable[str],
        header: bool,
        alone: bool,
        key: Hashable,
    ) -> None:
        self.of_tool = tag is Tag.ARG_NAME
        self.item = item
        self.run = run
        self.spell = spell
        self.follows = tuple(follows)
        self.follow = re.compile(rf"[ \t\r\n]*?(?:{'|'.join(map(re.escape, self.follows))})").match
        self.header = header
        self.alone = alone
        self.key = key
        self.odd = kept(64, 100)(self._odd)

    def declared(self, machine: Machine) -> Spelt:
        """The declared names that the run does not hold; they are kept with the request's tools."""
        tools = machine.tools
        key = (self.key, machine.tool) if self.of_tool else self.key
        known: Spelt | None = tools.kept.get(key)
        if known is None:
            names: Iterable[str] = tools.names()
            if self.of_tool:
                tool = tools.get(machine.tool)
                names = () if tool is None else tool.arguments
            known = tools.kept[key] = self.odd(tuple(names))
        return known

    def _odd(self, names: tuple[str, ...]) -> Spelt:
        """Those of the names that the run does not hold."""
        if self._plain(*names):
            return ()
        found = {
            (spelt, name) for name in names for spelt in self.spell(name) if spelt and not self._plain(spelt)
        }
        return tuple(sorted(found, key=lambda pair: (-len(pair[0]), pair)))

    def _plain(self, *names: str) -> bool:
        """Whether the run holds each of the names, and is it."""
        if self.alone and any(name != name.strip(WHITE) for name in names):
            return False
        run = "".join(names)
        match = self.run(run)
        return (
            all(spelt == run for spelt in self.spell(run)) and match is not None and match.end() == len(run)
        )

    def read(
        self, declared: Spelt, parts: Parts, text: str, i: int, final: bool, most: int
    ) -> tuple[int, list[Item] | None]:
        """Where the header at ``i`` ends, and its items, None if there is no header. The end is -1 if more text must
        tell; if there is none, no name is read that it could have changed. ``most``: the most characters of a header.
        """
        if not self.header:
            for spelt, name in declared:
                end = i + len(spelt)
                if text.startswith(spelt, i):
                    if not self.follows or self.follow(text, end):
                        return end, [(self.item, spelt, name)]
                    undecided = self._undecided(text[end : end + most], most)
                else:
                    undecided = len(text) < end and spelt.startswith(text[i:])
                if undecided:
                    return (i, None) if final else (-1, None)
        match = self.run(text, i, i + most + 1)
        end = match.end() if match else i
        if self.header:
            end = self._further(declared, text, i, end, final)
        if end < 0 or (end == len(text) and not final and end - i <= most):
            return -1, None
        if self.alone:
            end = i + len(text[i:end].rstrip(WHITE))
        return end, parts(text[i:end]) if i < end <= i + most else None

    def _undecided(self, rest: str, most: int) -> bool:
        """Whether more text may still make ``rest``, which comes after a name, one of the texts that follow it."""
        blank = len(rest) - len(rest.lstrip(" \t\r\n"))
        begun = any(one.startswith(rest[start:]) for start in range(blank + 1) for one in self.follows)
        return begun and len(rest) < most

    def _further(self, declared: Spelt, text: str, i: int, end: int, final: bool) -> int:
        """``end``, the end of a run from ``i``, or what is after it if a declared name goes on there; -1 if more text
        must tell."""
        found = end
        for spelt, _ in declared:
            for start in range(max(i, end - len(spelt) + 1), end + 1):
                if text.startswith(spelt, start):
                    match = self.run(text, start + len(spelt))
                    found = max(found, match.end() if match else 0)
                elif not final and len(text) - start < len(spelt) and spelt.startswith(text[start:]):
                    return -1
        return found if found == end else self._further(declared, text, i, found, final)
