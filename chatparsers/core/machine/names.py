"""How a call's header is read: its names, whatever the request declares, and its id.

A name in a header is read as a run of a class of characters. A declared name that holds other characters, such as the
``page[size]`` of JSON:API, is read whole, if what the definition writes after a name follows it. Such names are rare:
they are looked for once for each request and place, and a request without them pays one look-up for a name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from ...kept import kept
from ..nodes import Tag
from .code import WHITE
from .instructions import MAX_HEADER

if TYPE_CHECKING:
    from .instructions import Item
    from .machine import Machine

Run = Callable[..., "re.Match[str] | None"]
"""Matches the longest run of a class of characters."""
JSON_INSIDE = r'(?:[^"\\\x00-\x1f]|\\.|\\\Z)'
"""One character of the inside of a JSON string, or an escape; the text may end after the escape's backslash."""

Parts = Callable[[str], "list[Item] | None"]
"""The trail items of a run; None if it is no header."""
Written = tuple[tuple[str, str], ...]
"""How names are written, the longest first, and the names."""


class Names:
    """The place of a name or an id in a program.

    ``tag``: whose names are there (``of_tool``: a tool's arguments); ``item`` is its trail item. ``run`` matches the
    ordinary ones, of ``chars``, and ``parts`` makes their items. ``plain``: a run of letters and digits is the name as
    it stands. ``spell`` gives the ways to write a declared name; None: the run holds them all. ``follows``: the texts
    that may follow a name, white space aside; empty: any text may. ``header``: the run holds more than the name.
    ``alone``: the run is the name, and white space around it is not of it, unless a declared name has it. ``key``:
    equal where ``tag``, ``run`` and ``spell`` are. ``odd`` remembers what `_odd` found.
    """

    __slots__ = (
        "alone", "chars", "follows", "header", "item", "key", "odd", "of_tool", "parts", "plain", "run", "spell",
    )  # fmt: skip

    def __init__(
        self,
        tag: Tag,
        item: int,
        chars: str,
        no_token: str,
        parts: Parts,
        plain: bool,
        spell: Callable[[str], Iterable[str]] | None,
        follows: Iterable[str],
        header: bool,
        key: Hashable,
    ) -> None:
        self.of_tool = tag is Tag.ARG_NAME
        self.item = item
        self.chars = chars
        self.run: Run = re.compile(f"(?:{no_token}{chars})*", re.DOTALL).match
        self.parts = parts
        self.plain = plain
        self.spell = spell
        self.follows = tuple(follows)
        self.header = header
        self.alone = not header and chars != JSON_INSIDE
        self.key = key
        self.odd = kept(64, 100)(self._odd)

    def declared(self, machine: Machine) -> Written:
        """The declared names that the run does not hold; they are kept with the request's tools."""
        if self.spell is None:
            return ()
        tools = machine.tools
        key = (self.key, machine.tool) if self.of_tool else self.key
        known: Written | None = tools.kept.get(key)
        if known is None:
            names: Iterable[str] = tools.names()
            if self.of_tool:
                tool = tools.get(machine.tool)
                names = () if tool is None else tool.arguments
            known = tools.kept[key] = self.odd(tuple(names))
        return known

    def _odd(self, names: tuple[str, ...]) -> Written:
        """Those of the names that the run does not hold."""
        assert self.spell is not None
        if self._holds(*names):
            return ()
        found = {
            (written, name)
            for name in names
            for written in self.spell(name)
            if written and not self._holds(written)
        }
        return tuple(sorted(found, key=lambda pair: (-len(pair[0]), pair)))

    def _holds(self, *names: str) -> bool:
        """Whether the run holds each of the names, and is it."""
        if self.alone and any(name != name.strip(WHITE) for name in names):
            return False
        run = "".join(names)
        match = self.run(run)
        assert self.spell is not None
        return (
            all(written == run for written in self.spell(run))
            and match is not None
            and match.end() == len(run)
        )

    def read(self, machine: Machine, text: str, i: int, final: bool) -> tuple[int, list[Item] | None]:
        """Where the header at ``i`` ends, and its items, None if there is no header. The end is -1 if more text must
        tell; if there is none, no name is read that it could have changed."""
        declared = self.declared(machine)
        if not self.header:
            for written, name in declared:
                end = i + len(written)
                if text.startswith(written, i):
                    followed = self._followed(text[end : end + MAX_HEADER])
                    if followed > 0:
                        return end, [(self.item, written, name)]
                else:
                    followed = -1 if len(text) < end and written.startswith(text[i:]) else 0
                if followed < 0:
                    return (i, None) if final else (-1, None)
        match = self.run(text, i, i + MAX_HEADER + 1)
        end = match.end() if match else i
        if self.header:
            end = self._further(declared, text, i, end, final)
        if end < 0 or (end == len(text) and not final and end - i <= MAX_HEADER):
            return -1, None
        if self.alone:
            end = i + len(text[i:end].rstrip(WHITE))
        return end, self.parts(text[i:end]) if i < end <= i + MAX_HEADER else None

    def _followed(self, rest: str) -> int:
        """1 if ``rest`` begins as what may follow a name, after white space; 0 if not, -1 if more text must tell."""
        starts = range(len(rest) - len(rest.lstrip(WHITE)) + 1)
        if not self.follows or any(rest.startswith(self.follows, start) for start in starts):
            return 1
        begun = any(one.startswith(rest[start:]) for start in starts for one in self.follows)
        return -1 if begun and len(rest) < MAX_HEADER else 0

    def _further(self, declared: Written, text: str, i: int, end: int, final: bool) -> int:
        """``end``, the end of a run from ``i``, or what is after it if a declared name goes on there; -1 if more text
        must tell."""
        found = end
        for written, _ in declared:
            for start in range(max(i, end - len(written) + 1), end + 1):
                if text.startswith(written, start):
                    match = self.run(text, start + len(written))
                    found = max(found, match.end() if match else 0)
                elif not final and len(text) - start < len(written) and written.startswith(text[start:]):
                    return -1
        return found if found == end else self._further(declared, text, i, found, final)
