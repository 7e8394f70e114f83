"""The calls of one format in the turn of another, for models that think in markers of their own but were taught no
calls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ..answers.format import Format
from ..answers.idioms import Builder
from ..answers.nodes import Body, Node, Sequence
from ..core.tree import walk


def with_calls(own: Format, other: Format) -> Format:
    """``own``, which has no calls, with those of ``other``; just ``other`` where ``own`` has no reasoning to keep."""
    joined = replace(own, build=_WithCalls(own.build, other.build))
    return joined if own.features.reasoning and joined.features.tools else other


@dataclass(frozen=True, slots=True)
class _WithCalls:
    """A ``build`` as data, so that its programs are compiled once and its streams can be pickled."""

    own: Callable[[Builder], Node]
    other: Callable[[Builder], Node]

    def __call__(self, p: Builder) -> Node:
        calling = next(node for node in walk(self.other(p)) if isinstance(node, Body))
        return _filled(self.own(p), calling)


def _filled(tree: Node, calling: Body) -> Node:
    """The tree whose body has the calls of ``calling``."""
    if isinstance(tree, Body):
        return replace(tree, calls=calling.calls, start=calling.start, lead=calling.lead)
    if isinstance(tree, Sequence):
        return Sequence.of(*(_filled(node, calling) for node in tree.items))
    return tree
