"""A case: the constraints that must hold together for one value, gathered from the keywords of its schemas.

From a case a value is written (compiler.py, scalars.py), and by it a given value is judged (`Case.holds`). So a
keyword has one meaning. What no grammar enforces is in the case too (`Case.weaken`), and is reported only where it
matters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal
from typing import Any

from ...errors import SchemaError
from ...kept import kept
from ...public import public
from ...schema.document import is_of, type_of
from ...schema.keywords import ANYTHING, KEYWORDS
from ..regular.automaton import Matcher, TooLarge
from ..regular.regex import Unsupported, read_regex
from ..steps import Steps

Located = tuple[Any, str]
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

Accepts = Callable[[Any, "list[Located]"], Steps[Verdict]]
"""Whether schemas accept a value."""

Holds = Callable[[Accepts, Any], "Verdict | Steps[Verdict]"]
"""What a keyword that no grammar enforces says of one value."""

Unsaid = tuple[Weakened, "Holds | None"]
"""A keyword that the grammar does not enforce, and what it says of one value, if that is known."""


UNEVALUATED = "a grammar cannot know which members another keyword has judged"


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
class Case:
    """All constraints that hold together for one value."""

    types: frozenset[str] = ANYTHING
    values: dict[Any, Any] | None = None
    """The listed values, by what makes them equal (`identity`)."""
    low: Bound | None = None
    high: Bound | None = None
    divisors: tuple[tuple[Decimal, str], ...] = ()
    least: int = 0
    most: int | None = None
    patterns: tuple[tuple[str, str, str], ...] = ()
    """(regular expression, path, keyword)"""
    shapes: tuple[Shape, ...] = ()
    required: dict[str, None] = field(default_factory=dict)
    names: list[Located] = field(default_factory=list)
    least_members: int = 0
    most_members: int | None = None
    dependent: list[tuple[str, tuple[str, ...], str]] = field(default_factory=list)
    """(member, the members that it needs, keyword)"""
    sealed: tuple[Located, ...] = ()
    """The schemas that admit only the members that they name."""
    prefix: tuple[tuple[list[Any], Any, str], ...] = ()
    """(schemas of the first items, schema of the others, path)"""
    least_items: int = 0
    most_items: int | None = None
    conditions: tuple[Located, ...] = ()
    """The schemas with ``if`` that are not decided."""
    maybe: dict[str, list[Located]] = field(default_factory=dict)
    """Members that a condition may bring. They are optional in the grammar."""
    unsaid: list[Unsaid] = field(default_factory=list)
    """The keywords that the grammar does not enforce. They are reported if their type is written."""
    path: str = ""
    """The path of the schema that was gathered last, "" before the first."""

    def weaken(self, path: str, keyword: str, why: str, holds: Holds | None = None) -> None:
        """Leaves a keyword out of the grammar. ``holds``: what it says of a listed value, if that is known."""
        self.unsaid.append((Weakened(path, keyword, why), holds))

    def unsaid_of(self, kind: str) -> Collection[Unsaid]:
        """The keywords that the grammar does not enforce and that speak of this type."""
        if not self.unsaid:
            return ()
        kind = "number" if kind == "integer" else kind
        rows = [(KEYWORDS.get(one[0].keyword), one) for one in self.unsaid]
        return [one for row, one in rows if row is None or kind in row.types]

    def of_strings(self) -> bool:
        """Whether it constrains no values but strings."""
        said = (name for name in _SAID if getattr(self, name) != getattr(_NOTHING, name))
        return not any(said) and not any(map(self.unsaid_of, self.types - {"string"}))

    def holds(
        self, value: Any, accepts: Accepts, unsure: dict[Weakened, None], unsaid: bool
    ) -> Steps[Verdict]:
        """Whether all constraints hold for a value. ``accepts``: what judges its members and items. ``unsure`` gets
        what would have to be known. ``unsaid``: whether keywords count that no grammar enforces."""
        if not is_of(value, self.types) or (self.values is not None and identity(value) not in self.values):
            return False
        kind = type_of(value)
        said: Iterable[Verdict | Steps[Verdict]] = ()
        if kind == "string":
            said = self._of_string(value, unsure)
        elif kind == "number":
            said = self._of_number(value)
        elif kind == "array":
            said = self._of_array(value, accepts)
        elif kind == "object":
            said = self._of_object(value, accepts, unsure)
        found: Verdict = yield every(said)
        if found is False or not unsaid:
            return found
        for weak, holds in self.unsaid_of(kind):
            verdict: Verdict = None if holds is None else (yield holds(accepts, value))
            if verdict is False:
                return False
            if verdict is None:
                unsure[weak] = found = None
        return found

    def _of_string(self, text: str, unsure: dict[Weakened, None]) -> Iterator[Verdict]:
        yield _between(len(text), self.least, self.most)
        for expression, path, keyword in self.patterns:
            matches = finds(expression, text)
            if matches is None:
                unsure[no_match(expression, path, keyword)] = None
            yield matches

    def _of_number(self, value: float) -> Iterator[Verdict]:
        from fractions import Fraction  # few schemas need it

        exact = Fraction(value) if isinstance(value, int) else Fraction(repr(value))
        for bound, sign in ((self.low, 1), (self.high, -1)):
            if bound is not None:
                above = (exact - Fraction(bound[0])) * sign
                yield above > 0 or (not above and not bound[1])
        for step, _ in self.divisors:
            yield (exact / Fraction(step)).denominator == 1

    def _of_array(self, items: list[Any], accepts: Accepts) -> Iterator[Verdict | Steps[Verdict]]:
        yield _between(len(items), self.least_items, self.most_items)
        for index, item in enumerate(items if self.prefix else ()):
            yield accepts(item, self.of_item(index))

    def _of_object(
        self, members: dict[str, Any], accepts: Accepts, unsure: dict[Weakened, None]
    ) -> Iterator[Verdict | Steps[Verdict]]:
        yield _between(len(members), self.least_members, self.most_members)
        yield members.keys() >= self.required.keys()
        for name, needed, _ in self.dependent:
            yield name not in members or members.keys() >= set(needed)
        unknown = [Weakened(path, "unevaluatedProperties", UNEVALUATED) for _, path in self.sealed]
        for name, part in members.items():
            schemas, _, patterns = self.of_member(name)
            unknown += patterns
            if self.names:
                yield accepts(name, self.names)
            if schemas:
                yield accepts(part, schemas)
        unsure.update(dict.fromkeys(unknown))
        yield None if unknown else True

    def of_item(self, index: int, silent: bool = True) -> list[Located]:
        """The schemas of the item at ``index``. ``silent``: the schema of an item of which a schema says nothing."""
        return [
            (prefix[index], f"{path}.prefixItems[{index}]")
            if index < len(prefix)
            else (silent if rest is None else rest, f"{path}.items")
            for prefix, rest, path in self.prefix
        ]

    def of_member(self, name: str) -> tuple[list[Located], bool, list[Weakened]]:
        """The schemas of the member ``name``, whether one of them lists it, and the patterns of which it is not known
        whether they match."""
        found: list[Located] = []
        unknown: list[Weakened] = []
        listed = False
        for shape in self.shapes:
            matched = False
            if name in shape.properties:
                found.append((shape.properties[name], f"{shape.path}.properties.{name}"))
                matched = listed = True
            for expression, schema in shape.patterns:
                matches = finds(expression, name)
                if matches:
                    found.append((schema, f"{shape.path}.patternProperties.{expression}"))
                elif matches is None:
                    unknown.append(no_match(expression, shape.path, "patternProperties"))
                matched = matched or matches is not False  # unknown: neither schema is sure to apply
            if not matched and shape.extra is not None:
                found.append((shape.extra, f"{shape.path}.additionalProperties"))
        return found, listed, unknown


_NOTHING = Case()
_SAID = {one.name for one in fields(Case)} - {"types", "least", "most", "patterns", "unsaid", "path"}
"""The fields that constrain values other than strings."""


def every(verdicts: Iterable[Verdict | Steps[Verdict]]) -> Steps[Verdict]:
    """Whether all hold. Asks no further once one does not."""
    found: Verdict = True
    for one in verdicts:
        verdict: Verdict = yield one
        if verdict is False:
            return False
        found = found and verdict
    return found


def _between(size: int, least: int, most: int | None) -> bool:
    return size >= least and (most is None or size <= most)


def finds(expression: str, text: str) -> Verdict:
    """Whether a regular expression of JSON Schema finds a match in ``text``; None if no grammar can say it."""
    found = matcher(expression)
    return None if found is None else found.matches(text)


def no_match(expression: str, path: str, keyword: str) -> Weakened:
    """That it is not known whether a regular expression finds a match."""
    return Weakened(path, keyword, f"no grammar can say the regular expression {expression!r}")


@kept(64, 2_000)
def matcher(expression: str) -> Matcher | None:
    """What tests texts by a regular expression; None if no grammar can say it."""
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


def useful(schemas: list[Located]) -> list[Located]:
    """The schemas without those that say nothing."""
    if len(schemas) == 1 and schemas[0][0] and schemas[0][0] is not True:
        return schemas
    found = [one for one in schemas if one[0] is not True and one[0] != {}]
    return found or [(True, schemas[0][1] if schemas else "")]


# listed values

_DEEPEST = 64
"""The deepest nesting of a listed value."""
_MOST_BITS = 4_096
"""How large a listed integer may be."""
_HALF = re.compile("[\ud800-\udfff]").search


def check_text(text: Any, path: str) -> None:
    """Raises `SchemaError` if ``text`` is not a text, or cannot be written."""
    if not isinstance(text, str):
        raise SchemaError(f"expected a text, found {type(text).__name__}", path)
    if not text.isascii() and _HALF(text):
        raise SchemaError("expected a text of Unicode, found half of a surrogate pair in it", path)


def check_value(value: Any, path: str) -> None:
    """Raises `SchemaError` if a value is not JSON, or too large to be written."""
    todo = [(value, 0)]
    while todo:
        part, depth = todo.pop()
        if isinstance(part, str):
            check_text(part, path)
        elif isinstance(part, float):
            if part != part or abs(part) == float("inf"):
                raise SchemaError(f"expected a finite number, found {part}", path)
        elif isinstance(part, int):
            if part.bit_length() > _MOST_BITS:
                raise SchemaError(f"expected a number of at most {_MOST_BITS} bits, found a larger one", path)
        elif isinstance(part, (Mapping, list, tuple)):
            if depth > _DEEPEST:
                raise SchemaError(
                    f"expected a value nested at most {_DEEPEST} deep, found a deeper one", path
                )
            if isinstance(part, Mapping):
                for name in part:
                    check_text(name, path)
            todo += [(inner, depth + 1) for inner in (part.values() if isinstance(part, Mapping) else part)]
        elif part is not None:
            raise SchemaError(f"expected a value of JSON, found {type(part).__name__}", path)


def identity(value: Any) -> Any:
    """A key that is the same for equal JSON values. Numbers are equal by value, booleans are not numbers, and the order
    of members does not count."""
    if isinstance(value, (bool, str)) or value is None:
        return (type(value), value)
    if isinstance(value, (int, float)):
        return value
    if isinstance(value, Mapping):
        return frozenset((name, identity(part)) for name, part in value.items())
    return tuple(map(identity, value))


def identities(values: Iterable[Any], path: str, keyword: str) -> frozenset[Any]:
    """The identities of listed values. Raises `SchemaError` if one is not JSON."""
    found = []
    for value in values:
        check_value(value, f"{path}.{keyword}")
        found.append(identity(value))
    return frozenset(found)


# whether alternatives exclude each other, so that ``oneOf`` is as good as ``anyOf``

_MOST_COMPARED = 4_096
"""The most pairs of alternatives that are compared."""


def disjoint(groups: list[list[Case]]) -> bool:
    """Whether types, listed values and bounds show that no value can be in the cases of two groups."""
    seen: set[Any] = set()
    listed: list[tuple[int, Case]] = []
    others: list[tuple[int, Case]] = []
    for number, group in enumerate(groups):
        own = {key for case in group for key in case.values or ()}
        if not seen.isdisjoint(own):
            return False
        seen |= own
        for case in group:
            (others if case.values is None else listed).append((number, case))
    if len(others) * (len(others) + len(listed)) > _MOST_COMPARED:
        return False
    return all(
        i == j or _apart(left, right)
        for place, (i, left) in enumerate(others)
        for j, right in (*others[:place], *listed)
    )


def _apart(left: Case, right: Case) -> bool:
    kinds = [
        frozenset(map(type_of, case.values.values())) if case.values is not None else case.types
        for case in (left, right)
    ]
    both = narrow(kinds[0], kinds[1])
    if not both:
        return True
    if both <= {"number", "integer"}:
        return crossed(left.low, right.high) or crossed(right.low, left.high)
    return both == {"object"} and _differ(left, right)


def _differ(left: Case, right: Case) -> bool:
    """Whether two objects must differ, by the listed values of a required member or by closed members."""
    for case, other in ((left, right), (right, left)):
        names = _closed(other)
        if names is not None and any(name not in names for name in case.required):
            return True
    for name in left.required:
        if name in right.required:
            a, b = _listed(left, name), _listed(right, name)
            if a is not None and b is not None and a.isdisjoint(b):
                return True
    return False


def _closed(case: Case) -> set[str] | None:
    """The members of an object that admits no others; None if it admits others."""
    if any(shape.extra is False and not shape.patterns for shape in case.shapes):
        return {name for shape in case.shapes for name in shape.properties}
    return None


def _listed(case: Case, name: str) -> frozenset[Any] | None:
    """The listed values of a member; None if its values are not listed."""
    for shape in case.shapes:
        schema = shape.properties.get(name)
        if isinstance(schema, Mapping):
            if "const" in schema:
                return identities([schema["const"]], shape.path, "const")
            if isinstance(schema.get("enum"), (list, tuple)):
                return identities(schema["enum"], shape.path, "enum")
    return None
