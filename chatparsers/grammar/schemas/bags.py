"""The records that hold the gathered keywords of one value's schemas."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from ...kept import kept
from ...public import public
from ...schema.document import ANYTHING
from ..regular.automaton import Matcher, TooLarge
from ..regular.regex import Unsupported, read_regex
from ..steps import Steps

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


Verdict = bool | None
"""Whether a value is valid; None: not known."""

Accepts = Callable[[Any, "list[Where]"], Steps[Verdict]]
"""Whether schemas accept a value."""

Holds = Callable[[Accepts, Any], "Verdict | Steps[Verdict]"]
"""What a keyword that no grammar enforces says of one value."""

Unsaid = tuple[Weakened, "Holds | None"]
"""A keyword that the grammar does not enforce, and what it says of one value, if that is known."""


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
    unsaid: list[Unsaid] = field(default_factory=list)
    """The keywords that the grammar does not enforce. They are reported if their type is written."""
    path: str = ""
    """The path of the schema that was gathered last, "" before the first."""

    def weaken(self, path: str, keyword: str, why: str, holds: Holds | None = None) -> None:
        """Leaves a keyword out of the grammar. ``holds``: what it says of a listed value, if that is known."""
        self.unsaid.append((Weakened(path, keyword, why), holds))

    def of_item(self, index: int, silent: bool = True) -> list[Where]:
        """The schemas of the item at ``index``. ``silent``: the schema of an item of which a schema says nothing."""
        return [
            (prefix[index], f"{path}.prefixItems[{index}]")
            if index < len(prefix)
            else (silent if rest is None else rest, f"{path}.items")
            for prefix, rest, path in self.prefix
        ]

    def of_member(self, name: str) -> tuple[list[Where], bool, list[Weakened]]:
        """The schemas of the member ``name``, whether one of them lists it, and the patterns of which it is not known
        whether they match."""
        found: list[Where] = []
        unknown: list[Weakened] = []
        listed = False
        for shape in self.shapes:
            matched = False
            if name in shape.properties:
                found.append((shape.properties[name], f"{shape.path}.properties.{name}"))
                matched = listed = True
            for expression, schema in shape.patterns:
                matches = search(expression, name)
                if matches:
                    found.append((schema, f"{shape.path}.patternProperties.{expression}"))
                elif matches is None:
                    why = f"no grammar can say the regular expression {expression!r}"
                    unknown.append(Weakened(shape.path, "patternProperties", why))
                matched = matched or matches is not False  # unknown: neither schema is sure to apply
            if not matched and shape.extra is not None:
                found.append((shape.extra, f"{shape.path}.additionalProperties"))
        return found, listed, unknown


def search(expression: str, text: str) -> Verdict:
    """Whether a regular expression of JSON Schema finds a match in ``text``; None if no grammar can say it."""
    matcher = _matcher(expression)
    return None if matcher is None else matcher.matches(text)


@kept(64, 2_000)
def _matcher(expression: str) -> Matcher | None:
    try:
        return Matcher(read_regex(expression))
    except (Unsupported, TooLarge, ValueError):
        return None


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
