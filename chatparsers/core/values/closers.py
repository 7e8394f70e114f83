"""What tells a closing tag from a text that spells it: what may follow the tag.

A value that is about markup may hold its own closing tag. So the tag closes the value only if what may follow it does,
after any white space: the next argument, the end of the call, or the end of the turn. core/definition/follows.py reads
these texts off the definition. White space in them does not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

__all__ = ["NO_CLOSERS", "Behind", "Closers", "Follow", "Look", "closer_of", "follow", "squeezed"]

_WINDOW = 256
"""How far behind a closing tag its reader looks: after so much white space, the tag closes."""
_NO_SPACE = dict.fromkeys(map(ord, " \t\r\n"))
_WS = r"[ \t\r\n]*"


def squeezed(text: str) -> str:
    """``text`` without white space."""
    return text.translate(_NO_SPACE)


class Behind(NamedTuple):
    """What may follow a closing tag, without white space.

    ``texts``: as far as they tell it apart. ``ends``: all up to the end of the calls; ``calls``: all up to the name of
    the next call's tool. Both are there as far as they are known.
    """

    texts: tuple[str, ...]
    ends: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


class Follow:
    """Finds what may follow a closing tag. ``loose``: it closes only the values of careless models."""

    __slots__ = ("behind", "loose", "match")

    def __init__(self, behind: Behind, loose: bool = False) -> None:
        self.behind = behind
        self.loose = loose
        ways = (_WS.join(map(re.escape, text)) for text in behind.texts)
        self.match = re.compile(f"{_WS}(?:{'|'.join(ways)})").match

    def __reduce__(self) -> tuple[object, ...]:
        return follow, (self.behind, self.loose)

    def stands(self, text: str, at: int) -> int:
        """1 if what may follow the tag stands at ``at``, where the tag ends, 0 if not; -1 if more text must tell."""
        if self.match(text, at, at + _WINDOW):
            return 1
        rest = squeezed(text[at : at + _WINDOW])
        if rest and not any(one.startswith(rest) for one in self.behind.texts):
            return 0
        return 1 if len(text) - at >= _WINDOW else -1

    def ended(self, text: str, at: int, final: bool, tools: Iterable[str]) -> int:
        """The same for the end of the call, and behind it the end of the turn or the next call of one of ``tools``.
        ``final``: the turn ends with the text."""
        rest = squeezed(text[at : at + _WINDOW])
        begun = False
        for call in self.behind.calls:
            if rest.startswith(call):
                name = rest[len(call) :]
                if any(name.startswith(squeezed(tool)) for tool in tools):
                    return 1
                begun = begun or any(squeezed(tool).startswith(name) for tool in tools)
            begun = begun or call.startswith(rest)
        if any(end.startswith(rest) for end in self.behind.ends):
            return 1 if final else -1
        return -1 if begun and len(text) - at < _WINDOW else 0


@lru_cache(maxsize=1024)
def follow(behind: Behind, loose: bool = False) -> Follow:
    """Many values of a program have the same closing tags; their patterns are made once."""
    return Follow(behind, loose)


Look = Callable[[str], "Behind | None"]
"""Finds what may follow a closing tag; None if any text may (core/definition/follows.py)."""

_special = re.compile("[\ud800-\udbff]").search


def closer_of(stop: str, look: Look, loose: bool = False) -> Follow | None:
    """What may follow the closing tag ``stop``; None if anything may, or if no text spells the tag, as it holds a
    special token."""
    behind = None if _special(stop) else look(stop)
    return None if behind is None else follow(behind, loose)


Closers = Mapping[str, Follow]
"""The closing tags that close a value only if what may follow them does."""
NO_CLOSERS: Closers = {}
