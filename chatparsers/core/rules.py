"""The rules of a tree: each name has one, and each reads a character before it calls itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from ..errors import did_you_mean
from .nodes import Node, Ref, Rule
from .tree import children, nullable
from .wrong import wrong


def rules_of(nodes: Iterable[Node]) -> dict[str, Node]:
    """The rules by their names. Refuses a name with two rules, and one with none."""
    named = [node for node in nodes if isinstance(node, (Ref, Rule))]
    rules: dict[str, Node] = {}
    for node in named:
        if isinstance(node, Rule) and rules.setdefault(node.name, node.node) != node.node:
            wrong(node, f"the rule {node.name!r} is defined twice", "give one of them another name")
    for node in named:
        if node.name not in rules:
            wrong(node, "there is no such rule", did_you_mean(node.name, rules))
    return rules


def least(rules: Mapping[str, Node], holds: Callable[[Node, set[str]], bool] = nullable) -> set[str]:
    """The rules whose node ``holds``, given those of which that is known."""
    found: set[str] = set()
    while more := {name for name in rules.keys() - found if holds(rules[name], found)}:
        found |= more
    return found


def check_left(
    rules: Mapping[str, Node],
    empty: Callable[[Node], bool],
    parts: Callable[[Node], tuple[Node, ...]] = children,
) -> None:
    """Refuses a rule that calls itself before it reads a character. ``empty``: whether a node may read none."""

    def entered(node: Node) -> Iterator[str]:
        if isinstance(node, Ref):
            yield node.name
        for part in parts(node):
            yield from entered(part)
            if node.in_order and not empty(part):
                return

    try:
        TopologicalSorter({name: [*entered(node)] for name, node in rules.items()}).prepare()
    except CycleError as error:
        name, *_ = way = error.args[1][::-1]
        what = f"it calls itself before it reads a character ({' → '.join(way)})"
        wrong(f"p.rule({name!r})", what, "put what it always begins with first, or use p.many()")
