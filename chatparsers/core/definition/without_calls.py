"""An empty section of calls, as models write one that then call nothing: its opener, white space and its closer.

A heuristic: the tree says how a section with calls is written, and not how one without is. So the calls are taken out,
and what is left counts if text is on both sides of the hole.
"""

from __future__ import annotations

from typing import NamedTuple

from .nodes import Calls, Choice, EachTool, Many, Node, Not, Peek, Sequence, Space, Token
from .tree import begins, nullable, through, tokens, walk


def without_calls(section: Node) -> Node | None:
    """An empty section of calls: its opener, white space and its closer. None if it lacks one of the two markers.

    The section holds no call, or a call that is empty between its own markers.
    """
    kept = dict.fromkeys(
        found.node
        for kind in (Calls, EachTool)
        for found in _emptied(section, kind)
        if found.opened and found.closed
    )
    return Choice.of(*kept) if kept else None


class _Emptied(NamedTuple):
    """A node with white space in place of its calls. ``holed``: the node has calls. ``opened``: text must come before
    their place. ``closed``: text must come after it."""

    node: Node
    holed: bool = False
    opened: bool = False
    closed: bool = False


def _emptied(node: Node, kind: type[Node]) -> list[_Emptied]:
    """``node`` without its nodes of ``kind``: one for each way to write it."""
    if isinstance(node, EachTool):
        call = through(node.any)
        items = call.items if isinstance(call, Sequence) else (Space(""),)
        # as they are written: a call's marker may be left out or read in other ways
        begin, end = _inmost(items[0], True), _inmost(items[-1], True)
        opens, closes = isinstance(begin, Token), isinstance(end, Token)
        if opens is not closes:  # one end of the call is an end of the section
            ends = (begin, Space("")) if opens else (Space(""), end)
            return [_Emptied(Sequence(ends), True, opens, closes)]
    if isinstance(node, kind):
        return [_Emptied(Space(""), holed=True)]
    if isinstance(node, Choice):
        parts = [part for option in node.options for part in _emptied(option, kind) if part.holed]
        return parts or [_Emptied(node)]
    if isinstance(node, Sequence):
        return _emptied_sequence(node, kind)
    inner = through(node)
    return [_Emptied(node)] if inner is None else _emptied(inner, kind)


def _inmost(node: Node, generated: bool = False) -> Node:
    """What ``node`` stands for in the end, as it is read or ``generated``."""
    while (inner := through(node, generated)) is not None:
        node = inner
    return node


def _items(node: Node) -> tuple[Node, ...]:
    return node.items if isinstance(node, Sequence) else (node,)


def _repeats(node: Node) -> bool:
    """Whether ``node``, after a call, reads more calls or more of its brackets: it repeats what is no marker."""
    return isinstance(node, Many) and not tokens(node)


def _emptied_sequence(node: Sequence, kind: type[Node]) -> list[_Emptied]:
    ways = [_Emptied(Sequence(()))]
    for item in node.items:
        ways = [_followed(way, part, item) for way in ways for part in _emptied(item, kind)]
    return ways


def _followed(way: _Emptied, part: _Emptied, item: Node) -> _Emptied:
    """``way``, the beginning of a sequence without its calls, and its next ``item``, of which ``part`` is left."""
    if part.holed:
        return _Emptied(Sequence.of(way.node, part.node), True, way.opened or part.opened, part.closed)
    item = _inmost(item)
    if not way.holed and any(isinstance(below, (Peek, Not)) for below in walk(item)):
        return way  # it looks at the calls
    if way.holed and not way.closed and isinstance(item, Many) and item.most == 1 and not nullable(item.node):
        item = item.node  # models may leave out this closer; without a call it must be there
    if way.holed and _repeats(item):
        return way
    if way.holed and isinstance(item, Choice):
        item = Choice.of(*(option for option in item.options if not any(map(_repeats, _items(option)))))
    closed = way.closed or (way.holed and not nullable(item))
    opened = way.opened or not (way.holed or nullable(item) or not begins(item))
    return _Emptied(Sequence.of(way.node, item), way.holed, opened, closed)
