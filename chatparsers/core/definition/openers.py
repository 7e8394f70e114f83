"""Finds texts that are taken for a part of what comes beside them: a closer by an opener, a separator by a name.

Beside the closer ``</z>``, the opener ``"<" + p.arg_name(arg) + ">"`` reads ``/z`` as an argument's name. The check
compares each way to begin an argument, up to its name and the text after it, with the texts that may follow the last
argument. And ``p.name(tool) + ":"`` reads the colon as the end of the name, if the name's characters hold one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .nodes import Choice, EachArg, Literal, Many, Name, Node, Sequence, Space, Token
from .tree import begins
from .wrong import wrong

_WAYS = 64
"""The most ways to begin an argument that are compared."""


def check_openers(node: Node) -> None:
    """Raises `DefinitionError` if, in the parser's reading of a sequence, what follows the arguments begins an
    argument."""
    if not isinstance(node, Sequence):
        return
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


def check_names(node: Node) -> None:
    """Raises `DefinitionError` if, in the parser's reading of a sequence, a name takes what follows it into itself."""
    if not isinstance(node, Sequence):
        return
    for index, name in enumerate(node.items):
        if not isinstance(name, Name):
            continue
        after = Sequence(node.items[index + 1 :])
        texts = [_text(opening) for opening, _ in after.opens()]  # what is written, then what is read
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
    elif (inner := node.stands_for(False)) is not None:
        yield from _last(inner)


def _taken(argument: Node, closer: str) -> str:
    """What of ``closer`` would be read as an argument's name; "" if it is not read as an argument."""
    for way in _ways(argument)[:_WAYS]:
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


def _goes_on(after: list[Node], left: str, begun: bool) -> bool:
    """Whether the parser reads ``after``, which comes after a name, in ``left``, the rest of a closer.

    ``begun``: a text comes before the name; without one, any word looks like a name, so only the text after it tells.
    """
    mark = next((node for node in after if not isinstance(node, Space)), None)
    left = left if isinstance(mark, Literal) and mark.text[:1].isspace() else left.lstrip()
    if not isinstance(mark, Literal) or not left:
        return begun
    return mark.text.startswith(left) or left.startswith(mark.text)


def _ways(node: Node) -> list[list[Node]]:
    """The ways to read ``node``, each as a list of nodes that are no sequences and no choices."""
    if isinstance(node, Sequence):
        ways: list[list[Node]] = [[]]
        for item in node.items:
            ways = [way + then for way in ways for then in _ways(item)][:_WAYS]
        return ways
    if isinstance(node, Choice):
        return [way for option in node.options for way in _ways(option)]
    if isinstance(node, Many) and node.most == 1:
        return [*_ways(node.node), *([] if node.least else [[]])]
    if isinstance(node, Token):
        return [[Literal(name)] for name in node.names]
    inner = node.stands_for(False)
    return [[node]] if inner is None else _ways(inner)
