"""Arrays: the items at the beginning one by one, then the others."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import EMPTY, NOTHING, Ir, Rep, Shared, alt, never, seq
from ..steps import Steps
from ..syntaxes import Syntax
from .bags import Bag, Where, useful

Inner = Callable[[list[Where], int], Steps[Ir]]
"""The values inside of an object or array, under these schemas and below so many objects and arrays."""

_SHORT = 4
"""Up to so many items at the beginning, each is written in its place."""


def array(bag: Bag, syntax: Syntax, open_: bool, inner: Inner, depth: int) -> Steps[Ir]:
    """The arrays of a bag. ``open_``: further items of which no schema says anything are written."""
    least, most = bag.least_items, bag.most_items
    size = max((len(prefix) for prefix, _, _ in bag.prefix), default=0)
    heads: list[Ir] = []
    for index in range(size if most is None else min(size, most)):
        head = syntax.item((yield inner(useful(bag.of_item(index, open_)), depth + 1)))
        if never(head):
            most = index
            break
        heads.append(head)
    rest = syntax.item((yield inner(useful(bag.of_item(size, open_)), depth + 1)))
    if never(rest):
        most = len(heads) if most is None else min(most, len(heads))
    if most is not None and most < least:
        return NOTHING
    if most == 0:
        return seq(syntax.open_array, syntax.no_items)
    full = seq(_items(heads, rest, least, most, syntax.comma), syntax.close_array)
    return seq(syntax.open_array, full if least else alt(full, syntax.no_items))


def _items(heads: list[Ir], rest: Ir, least: int, most: int | None, comma: Ir) -> Ir:
    """One item or more: ``heads``, then ``rest``; ``least`` to ``most`` items together."""
    tail: Ir = EMPTY
    if most is None or len(heads) < most:
        heads = heads or [rest]
        over = None if most is None else most - len(heads)
        tail = Rep(seq(comma, rest), max(0, least - len(heads)), over)
    must = max(1, min(least, len(heads)))
    for index in range(len(heads) - 1, must - 1, -1):
        more = seq(comma, heads[index], tail)
        tail = alt(more if len(heads) <= _SHORT else Shared("items", more), EMPTY)
    found: list[Ir] = [heads[0]]
    for head in heads[1:must]:
        found += [comma, head]
    return seq(*found, tail)
