"""An empty section of calls, as models write one that then call nothing: its opener, white space and its closer.

A heuristic: the tree says how a section with calls is written, and not how one without is. So the calls are taken out,
and what is left counts if text is on both sides of the hole.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.nodes.first import Paths, distinct
from ..core.tree import begins, nullable, once, through, tokens
from .nodes import Calls, Choice, EachTool, Many, Node, Not, Peek, Sequence, Space, Token


def without_calls(section: Node) -> Node | None:
    """An empty section of calls: its opener, white space and its closer. None if it lacks one of the two markers.

    The section holds no call, or a call that is empty between its own markers.
    """
    ways = _Emptied().after(section, [_Way()])
    kept = dict.fromkeys(Sequence.of(*way.items) for way in ways if way.opened and way.closed)
    return Choice.of(*kept) if kept else None


class _Way(NamedTuple):
    """A way to write a section, with white space in place of its calls. ``holed``: it has come to the calls.
    ``opened``: text must come before their place. ``closed``: text must come after it."""

    items: tuple[Node, ...] = ()
    holed: bool = False
    opened: bool = False
    closed: bool = False


_MOST = 100
"""The most ways that are followed."""


class _Emptied(Paths[_Way]):
    """Reads a section without its calls. What holds no call is kept as it is read."""

    def after(self, node: Node, paths: list[_Way]) -> list[_Way]:
        if isinstance(node, EachTool):
            return _holes(node, paths)
        called = any(isinstance(below, (Calls, EachTool)) for below in once(node))
        if not called or isinstance(node, Many):
            return self.leaf(node, paths)
        found = super().after(node, paths)
        if isinstance(node, Calls):
            found = distinct([*_holes(node, paths), *found])
        return found[:_MOST]

    def leaf(self, node: Node, paths: list[_Way]) -> list[_Way]:
        return [_followed(way, _inmost(node)) for way in paths]


def _holes(node: Calls | EachTool, paths: list[_Way]) -> list[_Way]:
    """The ways with white space in place of ``node``, and an end of a call that is an end of the section."""
    call = through(node.any) if isinstance(node, EachTool) else None
    items = call.items if isinstance(call, Sequence) else (Space(""),)
    # as they are written: a call's marker may be left out or read in other ways
    begin, end = _inmost(items[0], True), _inmost(items[-1], True)
    opens, closes = isinstance(begin, Token), isinstance(end, Token)
    hole: tuple[Node, ...] = (Space(""),)
    if opens is not closes:  # one end of the call is an end of the section
        hole = (begin, *hole) if opens else (*hole, end)
    opened, closed = opens and not closes, closes and not opens
    return [_Way(way.items + hole, True, way.opened or opened, closed) for way in paths]


def _inmost(node: Node, generated: bool = False) -> Node:
    """What ``node`` stands for in the end, as it is read or ``generated``."""
    while (inner := through(node, generated)) is not None:
        node = inner
    return node


def _items(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, Sequence) else (node,)


def _repeats(node: Node) -> bool:
    """Whether ``node``, after a call, reads more of its brackets: it repeats what is no marker."""
    return isinstance(node, Many) and not tokens(node)


def _followed(way: _Way, item: Node) -> _Way:
    """``way`` and ``item`` after it, which holds no call."""
    if not way.holed and any(isinstance(below, (Peek, Not)) for below in once(item)):
        return way  # it looks at the calls
    if way.holed and not way.closed and isinstance(item, Many) and item.most == 1 and not nullable(item.node):
        item = item.node  # models may leave out this closer; without a call it must be there
    if way.holed and _repeats(item):
        return way
    if way.holed and isinstance(item, Choice):
        item = Choice.of(*(option for option in item.options if not any(map(_repeats, _items(option)))))
    closed = way.closed or (way.holed and not nullable(item))
    opened = way.opened or not (way.holed or nullable(item) or not begins(item))
    return _Way((*way.items, item), way.holed, opened, closed)
