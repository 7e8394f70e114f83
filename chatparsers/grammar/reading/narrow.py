"""A grammar without one of its parts: what is left where a marked part is taken out."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from .. import ir
from ..ir import EMPTY, NOTHING, Ir, alt, never


def without(root: Ir, mark: str, rules: dict[str, Ir]) -> Ir | None:
    """``root`` without the parts that are `Shared` under the name ``mark``, and all that cannot be without them; None
    if there are none.

    ``rules`` are changed alike. A rule that is left empty may leave others empty, so it goes on until none does.
    """
    gone: set[str] = set()
    while True:
        cut = _Cut(mark, gone)
        made = {name: cut.node(rule) for name, rule in rules.items()}
        more = {name for name, rule in made.items() if never(rule)} - gone
        if not more:
            found = cut.node(root)
            same = found is root and all(rule is rules[name] for name, rule in made.items())
            rules.update(made)
            return None if same else found
        gone |= more


class _Cut:
    """Takes the marked parts out of nodes. ``gone``: the rules that match nothing."""

    def __init__(self, mark: str, gone: Collection[str]) -> None:
        self.mark = mark
        self.gone = gone
        self.made: dict[int, tuple[Ir, Ir]] = {}

    def node(self, node: Ir) -> Ir:
        """The node without them; itself if it has none."""
        known = self.made.get(id(node))
        if known is None:
            known = self.made[id(node)] = (node, self._cut(node))  # held, so that no other node gets its id
        return known[1]

    def _cut(self, node: Ir) -> Ir:
        if isinstance(node, ir.Shared):
            return NOTHING if node.hint == self.mark else node
        if isinstance(node, ir.Ref):
            return NOTHING if node.name in self.gone else node
        if isinstance(node, ir.Rep):
            inner = self.node(node.node)
            if never(inner):
                return NOTHING if node.least else EMPTY
            return node if inner is node.node else replace(node, node=inner)
        if not isinstance(node, (ir.Seq, ir.Alt)):
            return node
        parts = ir.children(node)
        left = [self.node(part) for part in parts]
        if all(one is other for one, other in zip(left, parts, strict=True)):
            return node
        if isinstance(node, ir.Alt):
            return alt(*left)
        return NOTHING if any(map(never, left)) else ir.Seq(tuple(left))
