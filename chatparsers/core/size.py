"""Checks how large a definition is when each node counts once for each place in which it is.

The readers go down into a node at each of its places, and write out each repetition that has a bound. So a short
definition may mean a program that no memory holds, and a deep one more function calls than Python allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .nodes import Chars, Many, Node, Rule
from .wrong import wrong

_LARGE = 100_000
"""The most nodes and characters. The largest format of the package has 38,000."""
_MANY = 1_000
"""The most nodes directly below one."""
_DEEP = 100
"""The most nodes inside each other. The deepest format of the package has 31."""


def checked_nodes(tree: Node, parts: Callable[[Node], Iterable[Node]]) -> list[Node]:
    """``tree`` and all below it, each once, parents first. Raises `DefinitionError` if it is too large or too deep.
    ``parts``: the nodes directly below a node."""
    nodes: list[Node] = []
    known: dict[int, tuple[int, int]] = {}
    rules: dict[str, int] = {}

    def measured(node: Node, level: int) -> tuple[int, int]:
        _check_depth(level)
        nodes.append(node)
        size = deep = number = 0
        for part in parts(node):
            more, below = known.get(id(part)) or measured(part, level + 1)
            size, deep, number = size + more, max(deep, below), number + 1
        if number > _MANY:
            what = f"it has more than {_MANY:,} parts"
            wrong(f"p.{type(node).__name__.lower()}", what, _MEND)
        found = known[id(node)] = _written_out(node, size), deep + 1
        if isinstance(node, Rule):
            rules[node.name] = deep + 1
        return found

    _, deep = measured(tree, 1)
    _check_depth(deep + sum(rules.values()))
    return nodes


def _written_out(node: Node, parts: int) -> int:
    size = parts or len(node.shown())
    if isinstance(node, (Many, Chars)):
        size *= max(node.least, node.most or 1)
    if size > _LARGE:
        wrong(node, f"written out, it has more than {_LARGE:,} nodes and characters", _MEND)
    return size + 1


_MEND = "repeat it without a bound, or write p.chars() or p.until() in the place of many texts"


def _check_depth(deep: int) -> None:
    if deep > _DEEP:
        what = f"its nodes stand inside each other more than {_DEEP} deep, counting those of each rule"
        wrong("build", what, "write p.many() or p.choice() instead")
