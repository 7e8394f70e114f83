"""What tells a closing tag from a text that spells it: what may follow the tag.

A value that is about markup may hold its own closing tag. So the tag closes the value only if what may follow it does,
after any white space: the next argument, the end of the call, or the end of the turn. answers/follows.py reads
these texts off the definition. White space in them does not count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple, Protocol

NAME = "\0"
"""Stands for the argument's name in a closing tag that has it."""
_WINDOW = 256
"""How far after a closing tag its reader looks: after so much white space, the tag closes."""
_NO_SPACE = dict.fromkeys(map(ord, " \t\r\n"))
_WS = r"[ \t\r\n]*"


def squeezed(text: str) -> str:
    """``text`` without white space."""
    return text.translate(_NO_SPACE)


class AfterTag(NamedTuple):
    """The texts after a closing tag, without white space, as far as they are known: all up to the end of the calls
    (``over``), and all up to the name of the next call's tool (``calls``)."""

    over: tuple[str, ...]
    calls: tuple[str, ...]


class Look(Protocol):
    """Finds what may follow a closing tag (answers/follows.py)."""

    def near(self, closer: str) -> tuple[str, ...]:
        """The texts, without white space, as far as they tell what follows; none if any text may."""

    def reaches(self, closer: str) -> bool:
        """Whether the tag may come next at all."""

    def far(self, closer: str) -> AfterTag:
        """What is between the tag and the end of the calls."""


class Follow:
    """What may follow the closing tag ``stop``. ``begun``: all beginnings of its ``texts``; ``open``: those that do not
    tell yet; ``least``: those that just do. ``match`` matches the tag with one of these, as the format writes it.
    ``loose``: it closes only the values of careless models. ``look`` finds the ends when they are first asked for, if
    ``found`` has them not."""

    __slots__ = ("begun", "found", "least", "look", "loose", "match", "open", "stop", "texts")

    def __init__(
        self, stop: str, texts: tuple[str, ...], loose: bool, look: Look, found: AfterTag | None = None
    ) -> None:
        self.stop = stop
        self.texts = texts
        self.begun = frozenset(text[:end] for text in texts for end in range(len(text) + 1))
        self.loose = loose
        self.look = look
        self.found = found
        # Of texts that begin alike the shortest tells.
        self.least = tuple(
            [text for text in texts if not any(text != one and text.startswith(one) for one in texts)]
        )
        self.open = frozenset(text for text in self.begun if not text.startswith(self.least))
        self.match = re.compile(f"{re.escape(stop)}{_WS}(?:{'|'.join(map(re.escape, self.least))})").match

    def __reduce__(self) -> tuple[object, ...]:
        return Follow, (self.stop, self.texts, self.loose, NOTHING, self.ends)

    @property
    def ends(self) -> AfterTag:
        """What is between the tag and the end of the calls."""
        if self.found is None:
            self.found = self.look.far(self.stop)
        return self.found

    def stands(self, text: str, at: int) -> int:
        """1 if what may follow the tag is at ``at``, where the tag ends, 0 if not; -1 if more text must tell."""
        rest = text[at : at + _WINDOW].lstrip(" \t\r\n")
        if rest not in self.open:
            if rest.startswith(self.least):
                return 1
            known = squeezed(rest)  # nearly all texts are as the format writes them, so they are tried first
            if known.startswith(self.least):
                return 1
            if known not in self.begun:
                return 0
        return 1 if len(text) - at >= _WINDOW else -1

    def ended(self, text: str, at: int, final: bool, tools: Iterable[str]) -> int:
        """The same for the end of the call, and after it the end of the turn or the next call of one of ``tools``.
        ``final``: the turn ends with the text."""
        rest = squeezed(text[at : at + _WINDOW])
        begun = False
        for call in self.ends.calls:
            if rest.startswith(call):
                name = rest[len(call) :]
                if any(name.startswith(squeezed(tool)) for tool in tools):
                    return 1
                begun = begun or any(squeezed(tool).startswith(name) for tool in tools)
            begun = begun or call.startswith(rest)
        if any(end.startswith(rest) for end in self.ends.over):
            return 1 if final else -1
        return -1 if begun and len(text) - at < _WINDOW else 0


class Closers:
    """The closing tags of a value, ``stops``, each with what may follow it.

    ``look`` finds that when a tag is first met: most programs never read a value. ``loose``: those tags that close only
    the values of careless models. ``known`` are the tags that were met; None for one that closes whatever follows.
    ``sure`` finds the tag that closed a value before, with what may follow it: nearly all values end so.
    """

    __slots__ = ("known", "look", "loose", "stops", "sure")

    def __init__(self, look: Look, stops: Iterable[str], loose: Iterable[str] = ()) -> None:
        self.look = look
        self.stops = tuple(stops)
        self.loose = frozenset(loose)
        self.known: dict[str, Follow | None] = {}
        self.sure = _never

    def __reduce__(self) -> tuple[object, ...]:
        return _known, ({stop: self.get(stop) for stop in self.stops},)

    def get(self, stop: str) -> Follow | None:
        """What may follow ``stop``; None if anything may, or if no text spells it, as it holds a special token."""
        if stop not in self.known:
            texts = () if _special(stop) else self.look.near(stop)
            self.known[stop] = Follow(stop, texts, stop in self.loose, self.look) if texts else None
        return self.known.get(stop)

    def closed(self, follow: Follow) -> None:
        """A tag has closed a value of which nothing else was in question."""
        if (
            sum(map(follow.stop.startswith, self.stops))
            + sum(one.startswith(follow.stop) for one in self.stops)
            == 2
        ):
            self.sure = follow.match


def _known(found: dict[str, Follow | None]) -> Closers:
    """The closing tags of which all is known."""
    closers = Closers(NOTHING, found)
    closers.known = found
    return closers


def of_texts(found: dict[str, tuple[str, ...]]) -> Closers:
    """Closing tags, each with the texts that may follow it; none: any text."""
    return _known(
        {stop: Follow(stop, texts, False, NOTHING) if texts else None for stop, texts in found.items()}
    )


class _Nothing(Look):
    """Any text may follow."""

    def near(self, closer: str) -> tuple[str, ...]:
        return ()

    def reaches(self, closer: str) -> bool:
        return False

    def far(self, closer: str) -> AfterTag:
        return AfterTag((), ())


NOTHING = _Nothing()
_special = re.compile("[\ud800-\udbff]").search
_never = re.compile("(?!)").match

NO_CLOSERS = Closers(NOTHING, ())
