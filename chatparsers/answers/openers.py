"""What a call has to begin with: the openers of calls, from the tree as it is generated, and `Counts` before each call
that may be read without them (mends/missing_opener.py)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..core import flow as f
from ..core.nodes.first import Beginnings
from ..core.tree import once, tokens
from . import nodes as n
from .nodes import Node


def openers(calls: Node, generated: bool = True) -> tuple[str, ...] | None:
    """The texts with which ``calls`` are written, and the special tokens with which they are read; None if they are
    written without an opener. ``generated``: they are not for parsing only."""
    written, all_written = _begun(_Written(), calls) if generated else (set(), True)
    special = tokens(calls)
    read = {text for text in _begun(Beginnings(), calls)[0] if text.startswith(special)}
    return tuple(sorted(written | read)) if all_written else None


def counted(node: Node, answer: bool = False, generated: bool = True) -> Node:
    """``node`` with `Counts` before each call, if it holds calls that may lack their opener."""
    if isinstance(node, n.Sequence) and isinstance(node.items[0], n.Calls):
        return n.Sequence((counted(node.items[0], answer), *node.items[1:]))
    if isinstance(node, n.Calls):
        return replace(node, item=counted(node.item, answer))
    known = openers(node, generated)
    if known is None or not any(isinstance(one, n.Tagged) and one.tag is n.Tag.CALL for one in once(node)):
        return node
    read, all_read = _begun(Beginnings(), node)
    always = all_read and read.issubset(known) and not any("｜" in text for text in read)
    return node if always else n.Sequence((f.Counts(known, answer), node))


def counts_in(calls: Node) -> Iterator[f.Counts]:
    """The `Counts` in ``calls``."""
    return (node for node in once(calls) if isinstance(node, f.Counts))


def _begun(found: Beginnings, node: Node) -> tuple[set[str], bool]:
    """The texts with which ``node`` begins, and whether they are all: it may also begin with any text."""
    found.after(node, [""])
    return {text.lstrip() for text in found.done}, not found.unknown


class _Written(Beginnings):
    """The texts with which a node is written, also where the prompt has written its beginning (`p.expected`)."""

    generated = True

    def inner(self, node: n.Inner, paths: list[str]) -> list[str]:
        found = super().inner(node, paths)
        written = isinstance(node, n.Lenient) and node.lenient == n.Many(node.strict, 0, 1)
        return [*found, *paths] if written else found
