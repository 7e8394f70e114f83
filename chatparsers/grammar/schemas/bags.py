"""The records that hold the gathered keywords of one value's schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ...public import public
from ...schema.document import ANYTHING

Where = tuple[Any, str]
"""A schema and its JSON path."""

Bound = tuple[Decimal, bool]
"""A number, and whether it is excluded itself."""


@public
@dataclass(frozen=True, slots=True)
class Weakened:
    """A keyword that the grammar does not enforce: its path, its name, and the reason."""

    path: str
    keyword: str
    why: str


@dataclass(slots=True, eq=False)
class Shape:
    """The keywords of one schema object about members."""

    properties: Mapping[str, Any]
    named: bool
    """Whether it has ``properties``, which may be empty."""
    patterns: tuple[tuple[str, Any], ...]
    extra: Any
    """The schema of other members; None if the schema object is silent about them."""
    path: str


@dataclass(slots=True, eq=False)
class Bag:
    """All constraints that apply to one value."""

    types: frozenset[str] = ANYTHING
    values: dict[Any, Any] | None = None
    """The listed values, by what makes them equal (`judge.identity`)."""
    low: Bound | None = None
    high: Bound | None = None
    divisors: list[tuple[Decimal, str]] = field(default_factory=list)
    least: int = 0
    most: int | None = None
    patterns: list[tuple[str, str, str]] = field(default_factory=list)
    """(regular expression, path, keyword)"""
    shapes: list[Shape] = field(default_factory=list)
    required: dict[str, None] = field(default_factory=dict)
    names: list[Where] = field(default_factory=list)
    least_members: int = 0
    most_members: int | None = None
    dependent: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    """(member, the members that it needs, keyword)"""
    sealed: list[Where] = field(default_factory=list)
    """The schemas that admit only the members that they name."""
    prefix: list[tuple[list[Any], Any, str]] = field(default_factory=list)
    """(schemas of the first items, schema of the others, path)"""
    least_items: int = 0
    most_items: int | None = None
    maybe: dict[str, list[Where]] = field(default_factory=dict)
    """Members that a condition may bring. They are optional in the grammar."""
    told: list[Weakened] = field(default_factory=list)
    """The weakened keywords, by type. They are reported only if that type is written."""
    path: str = ""
    """The path of the schema that was gathered last, "" before the first."""


def crossed(low: Bound | None, high: Bound | None) -> bool:
    """Whether no number is within both bounds."""
    if low is None or high is None:
        return False
    return low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1]))


def narrow(left: frozenset[str], right: frozenset[str]) -> frozenset[str]:
    """The types that both sets allow; an integer is a number."""
    both = left & right
    if ("integer" in left and "number" in right) or ("integer" in right and "number" in left):
        both |= {"integer"}
    return both - {"integer"} if "number" in both else both


def shown(value: Any) -> str:
    """A value as an error shows it, short."""
    if isinstance(value, (dict, list, tuple)):
        return (
            f"an object of {len(value)} members"
            if isinstance(value, dict)
            else f"a list of {len(value)} items"
        )
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (TypeError, ValueError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def useful(wheres: list[Where]) -> list[Where]:
    """The schemas without those that say nothing."""
    found = [where for where in wheres if where[0] is not True and where[0] != {}]
    return found or [(True, wheres[0][1] if wheres else "")]
