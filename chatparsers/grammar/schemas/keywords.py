"""What the grammar makes of each keyword: one rule for each row of `schema.keywords` that constrains a value.

``gathers`` adds the keyword to the case of a value: the constraints from which values are written by type, and given
values are judged; or it says why no grammar can enforce the keyword (`unsaid`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from ...errors import SchemaError
from ...schema.document import SPELLINGS, items_of
from ...schema.keywords import ANYTHING, KEYWORDS, SILENT, TYPES
from ..regular.regex import Unsupported, read_regex
from ..regular.string_formats import ENCODINGS, FORMATS, Named
from ..steps import Steps
from .cases import (
    UNEVALUATED,
    Accepts,
    Case,
    Holds,
    Located,
    Shape,
    Verdict,
    check_text,
    check_value,
    identity,
    narrow,
    shown,
)

Schema = Mapping[str, Any]


Gather = Callable[[Case, Any, str, Schema], None]
"""Adds a keyword's value to the case: the case, the value, the path of its schema, and the schema."""

_MOST_DIGITS = 40
"""The most digits that a bound may have before or after its point."""
_MOST_COUNTED = 1_000_000
"""The highest number to which a grammar counts."""


_OBJECT = (dict, Mapping)
"""What an object of JSON is; most are plain."""


def expect(value: Any, kind: type | tuple[type, ...], expected: str, path: str, keyword: str) -> None:
    """Raises `SchemaError` if a keyword's value is not of that kind."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise SchemaError(f"expected {expected}, found {shown(value)}", f"{path}.{keyword}")


def type_names(value: Any, path: str) -> frozenset[str]:
    """The types that ``type`` names, in JSON's words."""
    if isinstance(value, str) and value in _ALONE:
        return _ALONE[value]
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)) or not all(isinstance(kind, str) for kind in listed):
        raise SchemaError(f"expected a type or a list of types, found {shown(value)}", f"{path}.type")
    kinds = frozenset(SPELLINGS.get(kind, kind) for kind in listed)
    for kind in kinds:
        if kind not in TYPES and kind != "integer":
            raise SchemaError(
                f"expected one of {', '.join((*TYPES, 'integer'))}, found {kind!r}", f"{path}.type"
            )
    return kinds


_ALONE = {kind: frozenset({kind}) for kind in (*TYPES, "integer")}


def check_expression(expression: Any, path: str, keyword: str) -> None:
    """Raises `SchemaError` if ``expression`` is not a regular expression. A grammar may be unable to say it."""
    check_text(expression, f"{path}.{keyword}")
    try:
        read_regex(expression)
    except Unsupported:
        return
    except ValueError as error:
        raise SchemaError(f"invalid regular expression: {error}", f"{path}.{keyword}") from None


def on_type(case: Case, value: Any, path: str, schema: Schema) -> None:
    kinds = type_names(value, path)
    if not isinstance(value, str) or value not in _ALONE:
        for kind in [value] if isinstance(value, str) else value:
            if kind in SPELLINGS:
                why = f"{kind!r} is no type of JSON: it is read as {SPELLINGS[kind]!r}"
                case.weaken(path, "type", why, _always)
    if schema.get("nullable") is True:
        kinds |= {"null"}
    case.types = kinds if case.types is ANYTHING else narrow(case.types, kinds)


def on_values(case: Case, value: Any, path: str, schema: Schema) -> None:
    expect(value, (list, tuple), "a list of values", path, "enum")
    check_value(value, f"{path}.enum")
    listed = [*value, None] if schema.get("nullable") is True and "type" not in schema else value
    _listed(case, listed)


def on_const(case: Case, value: Any, path: str, schema: Schema) -> None:
    check_value(value, f"{path}.const")
    _listed(case, [value])


def _listed(case: Case, values: Iterable[Any]) -> None:
    new: dict[Any, Any] = {}
    for value in values:
        new.setdefault(identity(value), value)
    if case.values is None:
        case.values = new
    else:
        case.values = {key: value for key, value in case.values.items() if key in new}


def _decimal(value: Any, path: str, keyword: str) -> Decimal | None:
    """The exact number; None if it is not finite, or has more digits than a bound may have."""
    expect(value, (int, float), "a number", path, keyword)
    if value != value:
        raise SchemaError("expected a number, found NaN", f"{path}.{keyword}")
    if abs(value) >= 10**_MOST_DIGITS:
        return None
    found = Decimal(value) if isinstance(value, int) else Decimal(repr(value))
    exponent = found.as_tuple().exponent
    return None if isinstance(exponent, int) and -exponent > _MOST_DIGITS else found


def bound(keyword: str, lower: bool, strict: bool) -> Gather:
    def add(case: Case, value: Any, path: str, schema: Schema) -> None:
        if isinstance(value, bool) and strict:  # as in draft 4
            plain = schema.get("minimum" if lower else "maximum")
            if not value or plain is None:
                return
            value = plain
        number = _decimal(value, path, keyword)
        if number is None:
            why = f"a bound of more than {_MOST_DIGITS} digits is left out"
            case.weaken(path, keyword, why)
            return
        new = (number, strict)
        if lower:
            if case.low is None or (new[0], new[1]) > (case.low[0], case.low[1]):
                case.low = new
        elif case.high is None or (-new[0], new[1]) > (-case.high[0], case.high[1]):
            case.high = new

    return add


def on_multiple(case: Case, value: Any, path: str, schema: Schema) -> None:
    step = _decimal(value, path, "multipleOf")
    if step is None:
        why = f"a number of more than {_MOST_DIGITS} digits is left out"
        case.weaken(path, "multipleOf", why)
        return
    if step <= 0:
        raise SchemaError(f"expected a number above 0, found {shown(value)}", f"{path}.multipleOf")
    case.divisors += ((step.normalize(), path),)


def count(keyword: str, attribute: str, lower: bool) -> Gather:
    def add(case: Case, value: Any, path: str, schema: Schema) -> None:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, float) and value == float("inf"):
            whole = True
        if not whole or isinstance(value, bool) or value < 0:
            raise SchemaError(f"expected a whole number from 0 on, found {shown(value)}", f"{path}.{keyword}")
        now = getattr(case, attribute)
        if value > _MOST_COUNTED:
            case.weaken(path, keyword, f"a grammar counts up to {_MOST_COUNTED}", _sized(value, lower))
            if not lower:
                return
            value = _MOST_COUNTED
        number = int(value)
        setattr(case, attribute, max(now, number) if lower else number if now is None else min(now, number))

    return add


def on_pattern(case: Case, value: Any, path: str, schema: Schema) -> None:
    check_expression(value, path, "pattern")
    case.patterns += ((value, path, "pattern"),)


def named(keyword: str, sets: Named) -> Gather:
    """A keyword that names a set of strings."""

    def add(case: Case, value: Any, path: str, schema: Schema) -> None:
        expect(value, str, "a name", path, keyword)
        if value in sets.expressions:
            case.patterns += ((sets.expressions[value], path, keyword),)
            if value in sets.wider:
                case.weaken(path, keyword, f"{value}: {sets.wider[value]}")
        elif value in sets.unsaid:
            case.weaken(path, keyword, f"no grammar for {value!r}")

    return add


def on_media_type(case: Case, value: Any, path: str, schema: Schema) -> None:
    expect(value, str, "a media type", path, "contentMediaType")
    if value == "application/json":
        holds = None if "contentEncoding" in schema else _is_json
        case.weaken(path, "contentMediaType", "the inside of a string is not parsed", holds)


def on_required(case: Case, value: Any, path: str, schema: Schema) -> None:
    if isinstance(value, bool):  # as in draft 3
        return
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise SchemaError(f"expected a list of names, found {shown(value)}", f"{path}.required")
    case.required.update(dict.fromkeys(value))


def on_names(case: Case, value: Any, path: str, schema: Schema) -> None:
    case.names.append((value, f"{path}.propertyNames"))


def dependent(keyword: str) -> Gather:
    """``dependentRequired`` and ``dependencies``, which may also hold schemas."""

    def add(case: Case, value: Any, path: str, schema: Schema) -> None:
        expect(value, _OBJECT, "an object of lists of names", path, keyword)
        for name, needed in value.items():
            check_text(name, f"{path}.{keyword}")
            if isinstance(needed, (list, tuple)):
                for other in needed:
                    check_text(other, f"{path}.{keyword}.{name}")
                if needed:
                    case.dependent.append((name, tuple(needed), keyword))
                    case.dependent += [(other, (), keyword) for other in needed]
            elif needed is not True:
                _look_back(case, name, needed, path, keyword)

    return add


def on_unique(case: Case, value: Any, path: str, schema: Schema) -> None:
    expect(value, bool, "true or false", path, "uniqueItems")
    most = schema.get("maxItems")
    if value and not (isinstance(most, (int, float)) and most <= 1):
        case.weaken(path, "uniqueItems", "a grammar cannot compare items", _unique)


def decided_by(schema: Schema) -> str:
    """The keyword that holds as the condition of a schema is a constant, ``then`` or ``else``; "" if it is none."""
    condition = schema.get("if")
    if condition is None:
        return ""
    if condition is True or (isinstance(condition, Mapping) and condition.keys() <= SILENT):
        return "then"
    return "else" if condition is False or condition in ({"not": {}}, {"not": True}) else ""


def condition_member(schema: Schema) -> str:
    """The only member of an object of which the condition of a schema speaks; "" if it speaks of anything else."""
    condition = schema["if"]
    if not isinstance(condition, Mapping) or condition.keys() - SILENT - {"type", "properties", "required"}:
        return ""
    properties, required = condition.get("properties", {}), condition.get("required", [])
    if not isinstance(properties, Mapping) or not isinstance(required, (list, tuple)):
        return ""
    names = [*dict.fromkeys((*properties, *required))]
    return names[0] if len(names) == 1 and condition.get("type", "object") == "object" else ""


def on_condition(case: Case, value: Any, path: str, schema: Schema) -> None:
    if decided_by(schema):
        return
    case.conditions += ((schema, path),)
    why = "a grammar cannot decide one part of a value by another"
    case.weaken(path, "if", why, partial(_conditional, schema, path))
    for keyword in ("then", "else"):
        _maybe(case, schema.get(keyword), f"{path}.{keyword}")


def on_dependent_schemas(case: Case, value: Any, path: str, schema: Schema) -> None:
    expect(value, _OBJECT, "an object of schemas", path, "dependentSchemas")
    for name, part in value.items():
        _look_back(case, name, part, path, "dependentSchemas")
        _maybe(case, part, f"{path}.dependentSchemas.{name}")


def _maybe(case: Case, schema: Any, path: str) -> None:
    """Notes the members that a condition may bring."""
    if isinstance(schema, Mapping) and isinstance(schema.get("properties"), Mapping):
        for name, part in schema["properties"].items():
            check_text(name, f"{path}.properties")
            case.maybe.setdefault(name, []).append((part, f"{path}.properties.{name}"))


def on_members(case: Case, value: Any, path: str, schema: Schema) -> None:
    """``properties``, ``patternProperties`` and ``additionalProperties`` together."""
    properties = schema.get("properties", {})
    expect(properties, _OBJECT, "an object of schemas", path, "properties")
    for name in properties:
        check_text(name, f"{path}.properties")
    patterns = schema.get("patternProperties", {})
    expect(patterns, _OBJECT, "an object of schemas", path, "patternProperties")
    for expression in patterns:
        check_expression(expression, path, "patternProperties")
    extra = schema.get("additionalProperties")
    case.shapes += (Shape(properties, "properties" in schema, tuple(patterns.items()), extra, path),)


def on_unevaluated_members(case: Case, value: Any, path: str, schema: Schema) -> None:
    """It is exact if schemas that apply without a choice name every possible member (judge.py)."""
    if value is False:
        case.sealed += ((schema, path),)
    elif value is not True:
        case.weaken(path, "unevaluatedProperties", UNEVALUATED)


def on_items(case: Case, value: Any, path: str, schema: Schema) -> None:
    """``items``, ``prefixItems`` and ``additionalItems`` together."""
    prefix, rest = items_of(schema)
    if not isinstance(prefix, (list, tuple)):
        raise SchemaError(f"expected a list of schemas, found {shown(prefix)}", f"{path}.prefixItems")
    if rest is not None and not isinstance(rest, (bool, Mapping)):
        raise SchemaError(
            f"expected a schema (an object, true or false), found {shown(rest)}", f"{path}.items"
        )
    case.prefix += ((list(prefix), rest if prefix or rest is not None else True, path),)


def on_contains(case: Case, value: Any, path: str, schema: Schema) -> None:
    why = "a grammar cannot count the items that satisfy a schema"
    case.weaken(path, "contains", why, partial(_contains, schema, path))


def on_not(case: Case, value: Any, path: str, schema: Schema) -> None:
    """Takes away the values that a schema describes, as far as a case can say that."""
    if value is True or value == {}:
        case.types = frozenset()
        return
    if value is False:
        return
    expect(value, _OBJECT, "a schema (an object, true or false)", path, "not")
    if set(value) - SILENT == {"type"}:
        kinds = type_names(value["type"], f"{path}.not")
        if "integer" not in kinds or "number" not in case.types:
            case.types = case.types - kinds - ({"integer"} if "number" in kinds else set())
            return
    case.weaken(path, "not", "a grammar cannot take away", partial(_refused, [(value, f"{path}.not")]))


# what keywords that no grammar enforces say of a listed value


def _always(accepts: Accepts, value: Any) -> Verdict:
    return True


def _sized(bound: float, lower: bool) -> Holds:
    return lambda accepts, value: len(value) >= bound if lower else len(value) <= bound


def _unique(accepts: Accepts, value: Any) -> Verdict:
    return len(set(map(identity, value))) == len(value)


def _is_json(accepts: Accepts, value: str) -> Verdict:
    try:
        json.loads(value, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def _refused(schemas: list[Located], accepts: Accepts, value: Any) -> Steps[Verdict]:
    """``not``."""
    found: Verdict = yield accepts(value, schemas)
    return None if found is None else not found


def _conditional(schema: Schema, path: str, accepts: Accepts, value: Any) -> Steps[Verdict]:
    """``if``, with ``then`` and ``else``."""
    holds: Verdict = yield accepts(value, [(schema["if"], f"{path}.if")])
    found: list[Verdict] = []
    for keyword, other in (("then", False), ("else", True)):
        if keyword in schema and holds is not other:
            found.append((yield accepts(value, [(schema[keyword], f"{path}.{keyword}")])))
    if holds is None:
        return True if all(found) else None
    return found[0] if found else True


def _contains(schema: Schema, path: str, accepts: Accepts, value: list[Any]) -> Steps[Verdict]:
    """``contains``, with ``minContains`` and ``maxContains``."""
    least, most = _count(schema.get("minContains"), 1), _count(schema.get("maxContains"), float("inf"))
    schemas = [(schema["contains"], f"{path}.contains")]
    found: Verdict = yield _counted([accepts(item, schemas) for item in value], least, most)
    return found


def _count(said: Any, usual: float) -> float:
    return said if isinstance(said, (int, float)) and not isinstance(said, bool) else usual


def counted(
    schemas: list[Located], least: float, most: float, accepts: Accepts, value: Any
) -> Steps[Verdict]:
    """Whether ``least`` to ``most`` of the schemas accept a value."""
    found: Verdict = yield _counted([accepts(value, [one]) for one in schemas], least, most)
    return found


def _counted(every: list[Steps[Verdict]], least: float, most: float) -> Steps[Verdict]:
    sure = perhaps = 0
    for one in every:
        verdict: Verdict = yield one
        sure += verdict is True
        perhaps += verdict is not False
    if perhaps < least or sure > most:
        return False
    return True if sure >= least and perhaps <= most else None


def _look_back(case: Case, name: str, needed: Any, path: str, keyword: str) -> None:
    """Leaves out a schema that holds if there is a member ``name``."""
    schemas = [(needed, f"{path}.{keyword}.{name}")]
    case.weaken(
        path,
        keyword,
        "a grammar cannot look back at the members before",
        lambda accepts, value: accepts(value, schemas) if name in value else True,
    )


# the rules


@dataclass(frozen=True, slots=True)
class Rule:
    """What the grammar makes of a keyword.

    Keywords with the same ``gathers`` are gathered together, once for their schema. ``late``: it is gathered after all
    other keywords of all schemas of the value.
    """

    name: str
    gathers: Gather
    late: bool = False


def unsaid(keyword: str, why: str) -> Gather:
    """A keyword that no grammar can enforce."""
    return lambda case, value, path, schema: case.weaken(path, keyword, why)


_ITEMS = "a grammar cannot know which items another keyword has judged"
_INSIDE = "the inside of a string is not parsed"

_RULES = (
    # of every type
    Rule("type", on_type),
    Rule("enum", on_values),
    Rule("const", on_const),
    # several schemas of one value; judge.py finds those of which all, or one, must hold
    Rule("not", on_not, late=True),
    Rule("if", on_condition),
    # strings
    Rule("minLength", count("minLength", "least", True)),
    Rule("maxLength", count("maxLength", "most", False)),
    Rule("pattern", on_pattern),
    Rule("format", named("format", FORMATS)),
    Rule("contentEncoding", named("contentEncoding", ENCODINGS)),
    Rule("contentMediaType", on_media_type),
    Rule("contentSchema", unsaid("contentSchema", _INSIDE)),
    # numbers
    Rule("minimum", bound("minimum", True, False)),
    Rule("maximum", bound("maximum", False, False)),
    Rule("exclusiveMinimum", bound("exclusiveMinimum", True, True)),
    Rule("exclusiveMaximum", bound("exclusiveMaximum", False, True)),
    Rule("multipleOf", on_multiple),
    # arrays
    Rule("items", on_items),
    Rule("prefixItems", on_items),
    Rule("minItems", count("minItems", "least_items", True)),
    Rule("maxItems", count("maxItems", "most_items", False)),
    Rule("uniqueItems", on_unique),
    Rule("contains", on_contains),
    Rule("unevaluatedItems", unsaid("unevaluatedItems", _ITEMS)),
    # objects
    Rule("properties", on_members),
    Rule("patternProperties", on_members),
    Rule("additionalProperties", on_members),
    Rule("required", on_required),
    Rule("propertyNames", on_names),
    Rule("minProperties", count("minProperties", "least_members", True)),
    Rule("maxProperties", count("maxProperties", "most_members", False)),
    Rule("dependentRequired", dependent("dependentRequired")),
    Rule("dependentSchemas", on_dependent_schemas),
    Rule("dependencies", dependent("dependencies")),
    Rule("unevaluatedProperties", on_unevaluated_members),
)

RULES = {rule.name: rule for rule in _RULES}
"""The rules, by name."""

_WANTED = {
    row.name
    for row in KEYWORDS.values()
    if row.silent is None and not row.beside and row.same not in ("all", "one")
}
if RULES.keys() != _WANTED:
    raise ImportError(f"keywords with a row or a rule alone: {', '.join(sorted(RULES.keys() ^ _WANTED))}")

SPEAKING = frozenset(RULES)
"""The keywords that constrain a value by themselves. A schema without any of them adds nothing to a case."""
