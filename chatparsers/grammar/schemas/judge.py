"""Judges listed values and names: whether a schema admits them, whether two are equal, how two objects differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from ...core.kept import kept
from ...core.schema.document import Document, Unresolved, references, type_of
from ..budget import Budget
from ..regular.automaton import Matcher, TooLarge
from ..regular.regex import Unsupported, read_regex
from ..steps import Steps, run
from .bags import Bag, narrow
from .keywords import type_names
from .listed import identities, identity

__all__ = ["Judge", "disjoint", "search"]

_MOST_COMPARED = 4_096
"""The most pairs of alternatives that are compared."""


@kept(64, 2_000)
def _matcher(expression: str) -> Matcher | None:
    try:
        return Matcher(read_regex(expression))
    except (Unsupported, TooLarge, ValueError):
        return None


def search(expression: str, text: str) -> bool:
    """Whether a regular expression of JSON Schema finds a match in ``text``; True if no grammar can say it."""
    matcher = _matcher(expression)
    return matcher is None or matcher.matches(text)


class Judge:
    """Judges values by the schemas of a document. Keywords that are not handled count as satisfied."""

    def __init__(self, document: Document, budget: Budget) -> None:
        self.document = document
        self.budget = budget
        self.listed: dict[int, frozenset[Any]] = {}

    def valid(self, value: Any, schema: Any) -> bool:
        """Whether ``value`` is valid."""
        return run(self._valid(value, schema, {}))

    def _valid(self, value: Any, schema: Any, known: dict[tuple[int, int], bool]) -> Steps[bool]:
        if not isinstance(schema, Mapping):
            return schema is not False
        key = (id(schema), id(value))
        found = known.get(key)
        if found is None:
            if self.budget.work < 0:
                return True
            self.budget.work -= 1
            known[key] = True  # a schema that leads back to itself adds nothing
            found = known[key] = self._scalars(value, schema) and (yield self._parts(value, schema, known))
        return found

    def _parts(
        self, value: Any, schema: Mapping[str, Any], known: dict[tuple[int, int], bool]
    ) -> Steps[bool]:
        """The answers of other schemas: those of the same value, and those of its parts."""
        for keyword, ref in references(schema):
            try:
                target = self.document.resolve(ref, schema, keyword)
            except Unresolved:
                continue
            if not (yield self._valid(value, target, known)):
                return False
        for option in _schemas(schema.get("allOf")):
            if not (yield self._valid(value, option, known)):
                return False
        for keyword in ("anyOf", "oneOf"):
            if keyword in schema:
                count = 0
                for option in _schemas(schema[keyword]):
                    count += yield self._valid(value, option, known)
                    if count > (keyword == "oneOf"):
                        break
                if not count or (keyword == "oneOf" and count > 1):
                    return False
        if "not" in schema and (yield self._valid(value, schema["not"], known)):
            return False
        for part, wanted in _inner(value, schema):
            if not (yield self._valid(part, wanted, known)):
                return False
        return True

    def _scalars(self, value: Any, schema: Mapping[str, Any]) -> bool:
        """Whether the value satisfies the schema's own keywords, except those that hold schemas."""
        kind = type_of(value)
        if "type" in schema:
            kinds = type_names(schema["type"], "$")
            whole = kind == "number" and _whole(value)
            if kind not in kinds and not (whole and "integer" in kinds):
                return schema.get("nullable") is True and value is None
        if isinstance(schema.get("enum"), (list, tuple)):
            listed = self.listed.get(id(schema["enum"]))
            if listed is None:
                listed = self.listed[id(schema["enum"])] = identities(schema["enum"], "$", "enum")
            nullable = schema.get("nullable") is True and "type" not in schema and value is None
            if identity(value) not in listed and not nullable:
                return False
        if "const" in schema and identity(value) not in identities([schema["const"]], "$", "const"):
            return False
        if kind == "number":
            return _number(value, schema)
        if kind == "string":
            if isinstance(schema.get("pattern"), str) and not search(schema["pattern"], value):
                return False
            return _counted(len(value), schema, "minLength", "maxLength")
        if kind == "array":
            if schema.get("uniqueItems") and len(set(map(identity, value))) < len(value):
                return False
            return _counted(len(value), schema, "minItems", "maxItems")
        if kind == "object":
            required = schema.get("required", ())
            if isinstance(required, (list, tuple)) and not all(name in value for name in required):
                return False
            return _counted(len(value), schema, "minProperties", "maxProperties")
        return True


def _schemas(listed: Any) -> tuple[Any, ...]:
    return tuple(listed) if isinstance(listed, (list, tuple)) else ()


def _inner(value: Any, schema: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """The parts of an array or object with the schemas that each must satisfy."""
    if isinstance(value, (list, tuple)):
        items = schema.get("items")
        prefix = items if isinstance(items, (list, tuple)) else _schemas(schema.get("prefixItems"))
        rest = schema.get("additionalItems") if isinstance(items, (list, tuple)) else items
        yield from zip(value, prefix, strict=False)
        if rest is not None:
            yield from ((item, rest) for item in value[len(prefix) :])
    elif isinstance(value, Mapping):
        properties = schema.get("properties", {})
        patterns = schema.get("patternProperties", {})
        for name, member in value.items():
            found = [properties[name]] if isinstance(properties, Mapping) and name in properties else []
            if isinstance(patterns, Mapping):
                found += [part for expression, part in patterns.items() if search(expression, name)]
            if not found and "additionalProperties" in schema:
                found = [schema["additionalProperties"]]
            yield from ((member, part) for part in found)


def _whole(value: float) -> bool:
    return isinstance(value, int) or value.is_integer()


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")


def _number(value: float, schema: Mapping[str, Any]) -> bool:
    exact = Fraction(value) if isinstance(value, int) else Fraction(repr(value))
    bounds = (
        ("minimum", exact.__ge__),
        ("maximum", exact.__le__),
        ("exclusiveMinimum", exact.__gt__),
        ("exclusiveMaximum", exact.__lt__),
    )
    for keyword, test in bounds:
        bound = schema.get(keyword)
        if _finite(bound) and not test(Fraction(bound) if isinstance(bound, int) else Fraction(repr(bound))):
            return False
    step = schema.get("multipleOf")
    if not _finite(step) or step == 0:
        return True
    return (exact / (Fraction(step) if isinstance(step, int) else Fraction(repr(step)))).denominator == 1


def _counted(size: int, schema: Mapping[str, Any], lower: str, upper: str) -> bool:
    low, high = schema.get(lower, 0), schema.get(upper, size)
    return not (_finite(low) and size < low) and not (_finite(high) and size > high)


# how alternatives differ


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
        pairs = ((left.low, right.high), (right.low, left.high))
        return any(
            low and high and (low[0] > high[0] or (low[0] == high[0] and (low[1] or high[1])))
            for low, high in pairs
        )
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
