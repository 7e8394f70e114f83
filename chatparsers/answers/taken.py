"""Finds texts that are taken for a part of what comes beside them, and alternatives that another one takes away.

Beside the closer ``</z>``, the opener ``"<" + p.arg_name(arg) + ">"`` reads ``/z`` as an argument's name. The check
reads each text that may follow the last argument as the opener does. ``p.name(tool) + ":"`` reads the colon as the end
of the name, if the name's characters hold one. And in ``p.choice("<a", "<ab")``, the second is never tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from ..core.nodes.first import Paths, begins, distinct
from ..core.nodes.node import Silent
from ..core.tree import through
from ..core.wrong import described, wrong
from .nodes import Calls, Choice, EachArg, EachTool, Inner, Literal, Many, Name, Node, Sequence, Space, Token


def check_taken(nodes: Iterable[Node]) -> None:
    """Raises `DefinitionError` if, in the parser's reading, an alternative of a choice is never tried, or if, in a
    sequence, what follows the arguments begins an argument, or a name takes what follows it into itself. ``nodes``: all
    of a tree."""
    spellings = _Spellings()
    for node in nodes:
        if isinstance(node, Choice):
            _check_choice(node, spellings)
        elif isinstance(node, Sequence):
            for index, item in enumerate(node.items):
                after = node.items[index + 1 :]
                for arguments in _last(item):
                    _check_opener(arguments, after)
                if isinstance(item, Name):
                    _check_name(item, Sequence(after))


def _check_choice(node: Choice, spellings: _Spellings) -> None:
    before: dict[str, Node] = {}
    for option in node.options:
        ways = spellings.after(option, [""])
        lengths = sorted({len(way) for way in before})
        shorter = [
            next((before[way[:at]] for at in lengths if at < len(way) and way[:at] in before), None)
            for way in ways
        ]
        if None not in shorter:
            first = " and ".join(dict.fromkeys(described(one) for one in shorter if one is not None))
            what = f"{described(option)} is never tried, as {first} before it is how it begins"
            wrong(node, what, "put the longer alternative first")
        for way in ways:
            before.setdefault(way, option)


def _check_opener(arguments: EachArg, after: tuple[Node, ...]) -> None:
    for closer in begins(*after):
        opener = _Opener(closer)
        for path in opener.after(arguments.any, [_Read(0, None)]):
            opener.read(path, "")
        if opener.name:
            what = (
                f"its opener also reads {closer!r}, which ends the arguments: {opener.name!r} would be a name"
            )
            mend = "leave those signs out of p.arg_name(arg, chars=…), or begin arguments in another way"
            wrong(arguments, what, mend)


def _check_name(name: Name, after: Node) -> None:
    for generated in (True, False):
        goes_on = _GoesOn(name, generated)
        goes_on.after(after, [""])
        if goes_on.taken:
            what = f"it takes {goes_on.taken!r}, which is written after it, for a part of the name"
            wrong(name, what, "leave those signs out of its chars=…, or write another text after it")


def _last(node: Node) -> Iterator[EachArg]:
    """The arguments that may be the last of ``node``; in a repeat there are none, as a call has its arguments once."""
    if isinstance(node, EachArg):
        yield node
    elif isinstance(node, Sequence):
        if node.items:
            yield from _last(node.items[-1])
    elif isinstance(node, Choice):
        for option in node.options:
            yield from _last(option)
    elif (inner := through(node)) is not None:
        yield from _last(inner)


class _GoesOn(Paths[str]):
    """Reads what comes after a name, after white space that is part of it too. ``taken``: what the name takes."""

    def __init__(self, name: Name, generated: bool) -> None:
        self.run = re.compile(f"(?:{name.chars})*")
        self.generated = generated
        self.taken = ""

    def leaf(self, node: Node, paths: list[str]) -> list[str]:
        if isinstance(node, Silent):
            return paths
        if isinstance(node, Space) and self.generated:
            node = Literal(node.text)
        texts = node.names if isinstance(node, (Literal, Token)) else ()
        runs = [run[0] for text in texts if (run := self.run.match(text))]
        self.taken = self.taken or next(filter(None, map(str.strip, runs)), "")
        return paths if set(texts) & set(runs) else []


class _Read(NamedTuple):
    """How far a closer was read. ``name``: where in it the argument's name begins."""

    at: int
    name: int | None


class _Opener(Paths[_Read]):
    """Reads ``closer`` as an argument. ``name``: what of it would be the argument's name; "" if it is no argument."""

    def __init__(self, closer: str) -> None:
        self.closer = closer
        self.name = ""

    def leaf(self, node: Node, paths: list[_Read]) -> list[_Read]:
        known = node.names if isinstance(node, (Literal, Token)) else ("",) if isinstance(node, Space) else ()
        found: list[_Read] = []
        for path in paths:
            if path.name is not None:
                found += [path] if "" in known else []
                self.read(path, *filter(None, known) if known else ("",))
            elif isinstance(node, Name):
                run = re.compile(f"(?:{node.chars})+").match(self.closer, path.at)
                found += [_Read(run.end(), path.at)] if run else []
            else:
                found += [
                    path._replace(at=path.at + len(text))
                    for text in known
                    if self.closer.startswith(text, path.at)
                ]
        return distinct(found)

    def read(self, path: _Read, *after: str) -> None:
        """Notes the name if one of the texts ``after`` it (empty: anything) is read in the rest of the closer.

        Without a text before the name, any word looks like a name, so only the text after it tells.
        """
        for text in after if path.name is not None else ():
            left = self.closer[path.at :]
            left = left if text[:1].isspace() else left.lstrip()
            if text.startswith(left) or left.startswith(text) if text and left else path.name:
                self.name = self.name or self.closer[path.name : path.at]


_MOST = 16
"""The most ways that are compared one by one: what has more is read as one node."""
_NUMBER = "\ud800"
"""What no text of a definition holds."""


class _Spellings(Paths[str]):
    """Finds the ways to read a node, each as a text in which a number stands for a node that is no text."""

    most = _MOST

    def __init__(self) -> None:
        self.numbers: dict[Node, str] = {}
        self.known: dict[int, tuple[Node, list[str]]] = {}

    def after(self, node: Node, paths: list[str]) -> list[str]:
        if id(node) not in self.known:  # a node may be in hundreds of places
            self.known[id(node)] = node, super().after(node, [""])
        return [path + way for path in paths for way in self.known[id(node)][1]]

    def choice(self, node: Choice, paths: list[str]) -> list[str]:
        ways = [way for option in node.options for way in self.after(option, paths)]
        texts = sorted(way for way in ways if _NUMBER not in way)
        # If one began another, the machine would not read the other: it never goes back into a choice.
        apart = len(texts) == len(ways) <= _MOST and not any(b.startswith(a) for a, b in pairwise(texts))
        return ways if apart else self.leaf(node, paths)

    def repeat(self, node: Many, paths: list[str]) -> list[str]:
        return self.leaf(node, paths)

    def inner(self, node: Inner, paths: list[str]) -> list[str]:
        return self.leaf(node, paths) if isinstance(node, (EachTool, Calls)) else super().inner(node, paths)

    def leaf(self, node: Node, paths: list[str]) -> list[str]:
        number = f"{_NUMBER}{len(self.numbers)};"
        text = node.text if isinstance(node, Literal) else self.numbers.setdefault(node, number)
        return [path + text for path in paths]
