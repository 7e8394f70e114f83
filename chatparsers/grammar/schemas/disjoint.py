"""Tells whether alternatives exclude each other, so that ``oneOf`` is as good as ``anyOf``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...schema.document import type_of
from .bags import Bag, crossed, narrow
from .listed import identities

_MOST_COMPARED = 4_096
"""The most pairs of alternatives that are compared."""


def disjoint(groups: list[list[Bag]]) -> bool:
    """Whether types, listed values and bounds show that no value can be in the bags of two groups."""
    seen: set[Any] = set()
    listed: list[tuple[int, Bag]] = []
    others: list[tuple[int, Bag]] = []
    for number, group in enumerate(groups):
        own = {key for bag in group for key in bag.values or ()}
        if not seen.isdisjoint(own):
            return False
        seen |= own
        for bag in group:
            (others if bag.values is None else listed).append((number, bag))
    if len(others) * (len(others) + len(listed)) > _MOST_COMPARED:
        return False
    return all(
        i == j or _apart(left, right)
        for place, (i, left) in enumerate(others)
        for j, right in (*others[:place], *listed)
    )


def _apart(left: Bag, right: Bag) -> bool:
    kinds = [
        frozenset(map(type_of, bag.values.values())) if bag.values is not None else bag.types
        for bag in (left, right)
    ]
    both = narrow(kinds[0], kinds[1])
    if not both:
        return True
    if both <= {"number", "integer"}:
        return crossed(left.low, right.high) or crossed(right.low, left.high)
    return both == {"object"} and _told_apart(left, right)


def _told_apart(left: Bag, right: Bag) -> bool:
    """Whether two objects must differ, by the listed values of a required member or by closed members."""
    for bag, other in ((left, right), (right, left)):
        names = _closed(other)
        if names is not None and any(name not in names for name in bag.required):
            return True
    for name in left.required:
        if name in right.required:
            a, b = _listed(left, name), _listed(right, name)
            if a is not None and b is not None and a.isdisjoint(b):
                return True
    return False


def _closed(bag: Bag) -> set[str] | None:
    """The members of an object that admits no others; None if it admits others."""
    if any(shape.extra is False and not shape.patterns for shape in bag.shapes):
        return {name for shape in bag.shapes for name in shape.properties}
    return None


def _listed(bag: Bag, name: str) -> frozenset[Any] | None:
    """The listed values of a member; None if its values are not listed."""
    for shape in bag.shapes:
        schema = shape.properties.get(name)
        if isinstance(schema, Mapping):
            if "const" in schema:
                return identities([schema["const"]], shape.path, "const")
            if isinstance(schema.get("enum"), (list, tuple)):
                return identities(schema["enum"], shape.path, "enum")
    return None
