"""Walks over a format's tree, shared by the parser's compiler, the grammar and all code that asks what a format has.

They ask the facts of the nodes (core/nodes/node.py) and know no kind of node. Where the two readings of a
tree differ, ``generated`` is False for the parser's and True for the grammar's.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from operator import methodcaller

from ..errors import DefinitionError
from .nodes import Inner, Node
from .nodes.first import begins, first, head, opens

__all__ = ["begins", "children", "first", "head", "nullable", "once", "opens", "through", "tokens", "walk"]


def through(node: Node, generated: bool = False) -> Node | None:
    """The node that ``node`` stands for; None if it stands for itself."""
    return node.inner(generated) if isinstance(node, Inner) else None


def children(node: Node, generated: bool = False) -> tuple[Node, ...]:
    """The nodes directly below ``node``."""
    try:
        return node.parts(generated)
    except AttributeError:
        if isinstance(node, Node):
            raise
        raise DefinitionError(
            f"{type(node).__name__} is no kind of node: use what the builder makes"
        ) from None


def walk(node: Node, generated: bool = False) -> Iterator[Node]:
    """``node`` and all below it, parents first."""
    left = [node]
    while left:
        node = left.pop()
        yield node
        left += reversed(children(node, generated))


_parsed: Callable[[Node], tuple[Node, ...]] = methodcaller("parts", False)
"""As `children`, in the parser's reading, with one call less: programs ask for all nodes of a tree a dozen times."""


def once(node: Node, parts: Callable[[Node], tuple[Node, ...]] = _parsed) -> Iterator[Node]:
    """What `walk` gives, but a node that is in several places only at the first: a definition with many
    alternatives may hold a hundred nodes in two thousand places. ``parts``: the nodes directly below a node."""
    left = [node]
    seen: dict[int, Node] = {}
    while left:
        node = left.pop()
        key = id(node)
        if key not in seen:
            seen[key] = node  # held, so that no other node gets its id
            yield node
            if below := parts(node):
                left += below[::-1]


def tokens(node: Node) -> tuple[str, ...]:
    """The texts of the special tokens in the tree, also of those in values, each once, in order."""
    return tuple(dict.fromkeys(text for below in once(node) for text in below.tokens()))


def nullable(node: Node, rules: Container[str] = ()) -> bool:
    """Whether the parser can match ``node`` without reading a character. ``rules``: the rules of which it can too."""
    return node.empty(rules) > 0
