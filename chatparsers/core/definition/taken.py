"""Finds texts that are taken for a part of what comes beside them, and alternatives that another one takes away.

Beside the closer ``</z>``, the opener ``"<" + p.arg_name(arg) + ">"`` reads ``/z`` as an argument's name. The check
compares each way to begin an argument, up to its name and the text after it, with the texts that may follow the last
argument. ``p.name(tool) + ":"`` reads the colon as the end of the name, if the name's characters hold one. And in
``p.choice("<a", "<ab")``, the second is never tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias

from .nodes import Calls, Choice, EachArg, EachTool, Inner, Literal, Many, Name, Node, Sequence, Space, Token
from .nodes.first import Paths, begins, opens
from .tree import through
from .wrong import described, wrong

_Way: TypeAlias = tuple[Node, ...]
_Spelling: TypeAlias = "tuple[Node | str, ...]"


def check_taken(node: Node) -> None:
    """Raises `DefinitionError` if, in the parser's reading, an alternative of a choice is never tried, or if, in a
    sequence, what follows the arguments begins an argument, or a name takes what follows it into itself."""
    if isinstance(node, Choice):
        _check_choice(node)
    elif isinstance(node, Sequence):
        _check_openers(node)
        _check_names(node)


def _check_choice(node: Choice) -> None:
    before: dict[_Spelling, Node] = {}
    for option in node.options:
        ways = _Spellings().after(option, [()])
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


def _check_openers(node: Sequence) -> None:
    for index, item in enumerate(node.items):
        for arguments in _last(item):
            for closer in begins(*node.items[index + 1 :]):
                taken = _taken(arguments.any, closer)
                if taken:
                    what = f"its opener also reads {closer!r}, which ends the arguments: {taken!r} would be a name"
                    mend = (
                        "leave those signs out of p.arg_name(arg, chars=…), or begin arguments in another way"
                    )
                    wrong(arguments, what, mend)


def _check_names(node: Sequence) -> None:
    for index, name in enumerate(node.items):
        if not isinstance(name, Name):
            continue
        after = Sequence(node.items[index + 1 :])
        texts = [_text(opening) for opening, _ in opens(after)]  # what is written, then what is read
        for text in (*texts, *map(_text, _ways(after))):
            run = re.match(f"(?:{name.chars})*", text)
            if run and (taken := run[0].strip()):
                what = f"it takes {taken!r}, which is written after it, for a part of the name"
                wrong(name, what, "leave those signs out of its chars=…, or write another text after it")


def _text(nodes: Iterable[Node]) -> str:
    """The text of the literals in front."""
    found = ""
    for node in nodes:
        if not isinstance(node, Literal):
            break
        found += node.text
    return found


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


def _taken(argument: Node, closer: str) -> str:
    """What of ``closer`` would be read as an argument's name; "" if it is not read as an argument."""
    for way in _ways(argument):
        text = ""
        for index, node in enumerate(way):
            if isinstance(node, Literal):
                text += node.text
            elif isinstance(node, Name) and closer.startswith(text):
                run = re.match(f"(?:{node.chars})+", closer[len(text) :])
                if run and _goes_on(way[index + 1 :], closer[len(text) + run.end() :], bool(text)):
                    return run[0]
                break
            elif not (isinstance(node, Space) and not text):
                break
    return ""


def _goes_on(after: _Way, left: str, begun: bool) -> bool:
    """Whether the parser reads ``after``, which comes after a name, in ``left``, the rest of a closer.

    ``begun``: a text comes before the name; without one, any word looks like a name, so only the text after it tells.
    """
    mark = next((node for node in after if not isinstance(node, Space)), None)
    left = left if isinstance(mark, Literal) and mark.text[:1].isspace() else left.lstrip()
    if not isinstance(mark, Literal) or not left:
        return begun
    return mark.text.startswith(left) or left.startswith(mark.text)


class _Ways(Paths[_Way]):
    """The ways to read a node, each the leaves one after the other."""

    most = 64

    def repeat(self, node: Many, paths: list[_Way]) -> list[_Way]:
        return super().repeat(node, paths) if node.most == 1 else self.leaf(node, paths)

    def leaf(self, node: Node, paths: list[_Way]) -> list[_Way]:
        texts = map(Literal, node.names) if isinstance(node, Token) else (node,)
        return [(*path, text) for text in texts for path in paths]


def _ways(node: Node) -> list[_Way]:
    return _Ways().after(node, [()])


class _Spellings(Paths[_Spelling]):
    """The ways to read a node, each one character or node after the other."""

    most = 16

    def choice(self, node: Choice, paths: list[_Spelling]) -> list[_Spelling]:
        ways = [way for option in node.options for way in self.after(option, [()])]
        # If one began another, the machine would not read the other: it never goes back into a choice.
        texts = sorted("".join(map(str, way)) for way in ways if all(isinstance(part, str) for part in way))
        apart = len(texts) == len(ways) <= self.most and not any(b.startswith(a) for a, b in pairwise(texts))
        return [(*path, *way) for path in paths for way in ways] if apart else self.leaf(node, paths)

    def repeat(self, node: Many, paths: list[_Spelling]) -> list[_Spelling]:
        return self.leaf(node, paths)

    def inner(self, node: Inner, paths: list[_Spelling]) -> list[_Spelling]:
        one = isinstance(node, (EachTool, Calls))
        return self.leaf(node, paths) if one else super().inner(node, paths)

    def leaf(self, node: Node, paths: list[_Spelling]) -> list[_Spelling]:
        return [(*path, *(node.text if isinstance(node, Literal) else (node,))) for path in paths]
