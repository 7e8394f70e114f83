"""A format's tree as one of its two readers sees it: the parser, or the grammar of a probe tool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..core.rules import least, rules_of
from ..core.size import checked_nodes
from ..core.tree import children, nullable, once
from ..schema.tools import ANY_ARGUMENT, ANY_TOOL, Tool
from . import nodes as n
from .nodes import Node

PARTS_OF_A_CALL = (
    n.Name,
    n.SameName,
    n.JsonName,
    n.Header,
    n.Implied,
    n.Declared,
    n.Args,
    n.EachArg,
    n.Value,
)
"""The nodes that read a part of a call."""

PROBE = Tool(
    "probe_tool", {"properties": {"probe_argument": {"type": "string"}}, "required": ["probe_argument"]}
)
"""The tool of the grammar's reading."""


class Reading:
    """One of the two readings of a tree: with `ANY_TOOL` the parser's, with another tool the grammar's. It has at most
    a hundred rules (core/size.py)."""

    def __init__(self, tree: Node, tool: Tool) -> None:
        self.tool = tool
        self.generated = tool is not ANY_TOOL
        self.argument = next(iter(tool.arguments.values())) if self.generated else ANY_ARGUMENT
        self._made: dict[int, tuple[Node, Node]] = {}
        self.nodes = checked_nodes(tree, self.parts)
        self.rules = rules_of(self.nodes)
        self._blank = least(self.rules)

    def parts(self, node: Node) -> tuple[Node, ...]:
        """The nodes directly below ``node`` in this reading."""
        if isinstance(node, n.EachTool):
            return (self.made(node, self.tool) if self.generated else node.any,)
        if isinstance(node, n.EachArg):
            return (self.each(node),) if node.separator is None else (self.each(node), node.separator)
        return children(node, self.generated)

    def each(self, node: n.EachArg) -> Node:
        """One argument of ``node``."""
        return self.made(node, self.argument) if self.generated else node.any

    def made(self, node: n.EachTool | n.EachArg, given: Any) -> Node:
        """The node that the author's ``make`` returns for the probe; it is called once."""
        if id(node) not in self._made:
            self._made[id(node)] = (node, node.make(given))
        return self._made[id(node)][1]

    def walk(self, node: Node) -> Iterator[Node]:
        """``node`` and all below it, each once."""
        return once(node, self.parts)

    def within(self, node: Node, kinds: tuple[type[Node], ...]) -> Node | None:
        """A node of these kinds in ``node`` or in the rules that it names, None if there is no such node."""
        return self.found(node, lambda below: isinstance(below, kinds))

    def commitment(self, node: Node) -> Node | None:
        """A node in ``node``, or in the rules that it names, that commits; None if there is none."""
        return self.found(node, lambda below: below.commits())

    def found(self, node: Node, wanted: Callable[[Node], bool]) -> Node | None:
        """The first ``wanted`` node in ``node`` or in the rules that it names."""

        def parts(below: Node) -> tuple[Node, ...]:
            return (self.rules[below.name],) if isinstance(below, n.Ref) else self.parts(below)

        return next(filter(wanted, once(node, parts)), None)

    def empty(self, node: Node) -> bool:
        """Whether ``node`` can be read without reading a character."""
        return nullable(node, self._blank)

    def endless(self) -> Iterator[str]:
        """The rules of which each way leads to themselves."""
        ending = least(self.rules, self._ends)
        return (name for name in self.rules if name not in ending)

    def _ends(self, node: Node, ending: set[str]) -> bool:
        """Whether a way through ``node`` calls no rules but ``ending``."""
        if isinstance(node, n.Ref):
            return node.name in ending
        if isinstance(node, n.Many) and not node.least:
            return True
        ends = (self._ends(part, ending) for part in self.parts(node))
        return any(ends) if isinstance(node, n.Choice) else all(ends)
