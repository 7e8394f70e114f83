"""What copies share of a list that grows at its end: a copy takes the same time at any length.

Strategy: a copy seals the items so far (`sealed`) as a part of the past, which never changes again, and both go on with
a list that is empty. Whoever wants all items gathers them (`gathered`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, TypeVar

_T = TypeVar("_T")

Past: TypeAlias = "tuple[Past | None, Any, int] | None"
"""The items before those of a list: what is before these, the items, and how many all of them are. If that number says
less than there are, the last of the items do not count."""


def size(past: Past) -> int:
    """How many items there are."""
    return 0 if past is None else past[2]


def sealed(past: Past, new: Any) -> Past:
    """The past with the ``new`` items, a list or an array, which is empty after that."""
    if not new:
        return past
    items = new[:]
    del new[:]
    return past, items, len(items) + size(past)


def gathered(past: Past, new: Any) -> Any:
    """All items, in one new list or array."""
    parts = [new]
    while past is not None:
        parts.append(_items(past))
        past = past[0]
    whole = parts.pop()[:]
    while parts:
        whole += parts.pop()
    return whole


def backwards(past: Past, new: list[_T]) -> Iterator[_T]:
    """The items from the last one on."""
    yield from reversed(new)
    while past is not None:
        yield from reversed(_items(past))
        past = past[0]


def since(past: Past, new: Any, count: int) -> Any:
    """The items after the first ``count``."""
    if past is None:
        return new[count:] if count else new
    parts = [new]
    while past is not None and past[2] > count:
        parts.append(_items(past))
        past = past[0]
    parts[-1] = parts[-1][count - size(past) :]
    return parts[0] if len(parts) == 1 else [item for part in reversed(parts) for item in part]


def beginning(past: Past, count: int) -> Past:
    """The first ``count`` items."""
    while past is not None and count <= size(past[0]):
        past = past[0]
    return None if past is None else (past[0], past[1], count)


def shortened(past: Past, new: list[str], length: int) -> Past:
    """Takes the last ``length`` characters off the texts; returns their past."""
    while length and (new or past is not None):
        if not new:
            new.append(next(backwards(past, new)))
            past = beginning(past, size(past) - 1)
        last = new.pop()
        if len(last) > length:
            new.append(last[:-length])
        length -= min(length, len(last))
    return past


def _items(past: Past) -> Any:
    """The last items of the past, those that one list had."""
    assert past is not None
    before, items, end = past
    used = end - size(before)
    return items if used == len(items) else items[:used]
