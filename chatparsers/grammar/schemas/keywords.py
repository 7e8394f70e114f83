"""What each keyword of JSON Schema adds to a bag."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from ...core.errors import SchemaError
from ...core.schema.document import ANYTHING, SPELLINGS, TYPES
from ..regular.regex import Unsupported, read_regex
from ..regular.string_formats import EXPRESSIONS, UNSAID
from .bags import Bag, Shape, Weakened, narrow, shown
from .listed import check_text, check_value, identity

__all__ = ["ANNOTATIONS", "APPLIES", "SPEAKING", "gather", "negate", "read_expression", "type_names"]

_MOST_DIGITS = 40
"""The most digits that a bound may have before or after its point."""
_MOST_COUNTED = 1_000_000
"""The highest number to which a grammar counts."""


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


def read_expression(expression: Any, path: str, keyword: str) -> Unsupported | None:
    """Why a grammar cannot say a regular expression; None if it can. Raises `SchemaError` if ``expression`` is not a
    regular expression."""
    check_text(expression, f"{path}.{keyword}")
    try:
        read_regex(expression)
    except Unsupported as reason:
        return reason
    except ValueError as error:
        raise SchemaError(f"invalid regular expression: {error}", f"{path}.{keyword}") from None
    return None


def _on_type(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    kinds = type_names(value, path)
    if not isinstance(value, str) or value not in _ALONE:
        for kind in [value] if isinstance(value, str) else value:
            if kind in SPELLINGS:
                why = f"{kind!r} is no type of JSON: it is read as {SPELLINGS[kind]!r}"
                bag.told.append(Weakened(path, "type", why))
    if schema.get("nullable") is True:
        kinds |= {"null"}
    bag.types = kinds if bag.types is ANYTHING else narrow(bag.types, kinds)


def _on_values(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    expect(value, (list, tuple), "a list of values", path, "enum")
    check_value(value, f"{path}.enum")
    listed = [*value, None] if schema.get("nullable") is True and "type" not in schema else value
    _listed(bag, listed)


def _on_const(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    check_value(value, f"{path}.const")
    _listed(bag, [value])


def _listed(bag: Bag, values: Iterable[Any]) -> None:
    new: dict[Any, Any] = {}
    for value in values:
        new.setdefault(identity(value), value)
    if bag.values is None:
        bag.values = new
    else:
        bag.values = {key: value for key, value in bag.values.items() if key in new}


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


def _bound(keyword: str, lower: bool, strict: bool) -> Keyword:
    def add(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
        if isinstance(value, bool) and strict:  # as in draft 4
            plain = schema.get("minimum" if lower else "maximum")
            if not value or plain is None:
                return
            value = plain
        number = _decimal(value, path, keyword)
        if number is None:
            why = f"a bound of more than {_MOST_DIGITS} digits is left out"
            bag.told.append(Weakened(path, keyword, why))
            return
        new = (number, strict)
        if lower:
            if bag.low is None or (new[0], new[1]) > (bag.low[0], bag.low[1]):
                bag.low = new
        elif bag.high is None or (-new[0], new[1]) > (-bag.high[0], bag.high[1]):
            bag.high = new

    return add


def _on_multiple(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    step = _decimal(value, path, "multipleOf")
    if step is None:
        why = f"a number of more than {_MOST_DIGITS} digits is left out"
        bag.told.append(Weakened(path, "multipleOf", why))
        return
    if step <= 0:
        raise SchemaError(f"expected a number above 0, found {shown(value)}", f"{path}.multipleOf")
    bag.divisors.append((step.normalize(), path))


def _count(keyword: str, attribute: str, lower: bool) -> Keyword:
    def add(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        if isinstance(value, float) and value == float("inf"):
            whole = True
        if not whole or isinstance(value, bool) or value < 0:
            raise SchemaError(f"expected a whole number from 0 on, found {shown(value)}", f"{path}.{keyword}")
        now = getattr(bag, attribute)
        if value > _MOST_COUNTED:
            bag.told.append(Weakened(path, keyword, f"a grammar counts up to {_MOST_COUNTED}"))
            if not lower:
                return
            value = _MOST_COUNTED
        number = int(value)
        setattr(bag, attribute, max(now, number) if lower else number if now is None else min(now, number))

    return add


def _on_pattern(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    read_expression(value, path, "pattern")
    bag.patterns.append((value, path, "pattern"))


def _on_format(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    expect(value, str, "a format's name", path, "format")
    if value in EXPRESSIONS:
        bag.patterns.append((value, path, "format"))
    elif value in UNSAID:
        bag.told.append(Weakened(path, "format", f"no grammar for {value!r}"))


def _on_required(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    if isinstance(value, bool):  # as in draft 3
        return
    if not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise SchemaError(f"expected a list of names, found {shown(value)}", f"{path}.required")
    bag.required.update(dict.fromkeys(value))


def _on_names(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    bag.names.append((value, f"{path}.propertyNames"))


def _on_dependent(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    expect(value, Mapping, "an object of lists of names", path, "dependentRequired")
    for name, needed in value.items():
        check_text(name, f"{path}.dependentRequired")
        if isinstance(needed, (list, tuple)):
            for other in needed:
                check_text(other, f"{path}.dependentRequired.{name}")
            if needed:
                bag.dependent.append((name, tuple(needed)))
                for other in needed:
                    bag.dependent.append((other, ()))
        elif needed is not True:
            bag.told.append(
                Weakened(path, "dependencies", "a grammar cannot look back at the members before")
            )


def _on_unique(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    expect(value, bool, "true or false", path, "uniqueItems")
    most = schema.get("maxItems")
    if value and not (isinstance(most, (int, float)) and most <= 1):
        bag.told.append(Weakened(path, "uniqueItems", "a grammar cannot compare items"))


def _on_condition(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    bag.told.append(Weakened(path, "if", "a grammar cannot decide one part of a value by another"))
    for keyword in ("then", "else"):
        _maybe(bag, schema.get(keyword), f"{path}.{keyword}")


def _on_dependent_schemas(bag: Bag, value: Any, path: str, schema: Mapping[str, Any]) -> None:
    expect(value, Mapping, "an object of schemas", path, "dependentSchemas")
    bag.told.append(Weakened(path, "dependentSchemas", "a grammar cannot look back at the members before"))
    for name, part in value.items():
        _maybe(bag, part, f"{path}.dependentSchemas.{name}")


def _maybe(bag: Bag, schema: Any, path: str) -> None:
    """Notes the members that a condition may bring."""
    if isinstance(schema, Mapping) and isinstance(schema.get("properties"), Mapping):
        for name, part in schema["properties"].items():
            check_text(name, f"{path}.properties")
            bag.maybe.setdefault(name, []).append((part, f"{path}.properties.{name}"))


def _shape(bag: Bag, schema: Mapping[str, Any], path: str) -> None:
    properties = schema.get("properties", {})
    expect(properties, Mapping, "an object of schemas", path, "properties")
    for name in properties:
        check_text(name, f"{path}.properties")
    patterns = schema.get("patternProperties", {})
    expect(patterns, Mapping, "an object of schemas", path, "patternProperties")
    for expression in patterns:
        read_expression(expression, path, "patternProperties")
    bag.shapes.append(
        Shape(
            properties,
            "properties" in schema,
            tuple(patterns.items()),
            schema.get("additionalProperties"),
            path,
        )
    )


def _items(bag: Bag, schema: Mapping[str, Any], path: str, open_: bool) -> None:
    prefix, rest = schema.get("prefixItems", []), schema.get("items")
    if isinstance(rest, (list, tuple)):
        prefix, rest = rest, schema.get("additionalItems")
    if not isinstance(prefix, (list, tuple)):
        raise SchemaError(f"expected a list of schemas, found {shown(prefix)}", f"{path}.prefixItems")
    if rest is not None and not isinstance(rest, (bool, Mapping)):
        raise SchemaError(
            f"expected a schema (an object, true or false), found {shown(rest)}", f"{path}.items"
        )
    if rest is None and prefix and not open_:
        rest = False
    bag.prefix.append((list(prefix), True if rest is None else rest, path))


def gather(bag: Bag, schema: Mapping[str, Any], path: str, open_: bool) -> None:
    """Adds one schema's own keywords to the bag. ``open_``: items that it does not mention are generated."""
    bag.path = path
    for keyword, value in schema.items():
        if keyword in ANNOTATIONS:
            continue
        add = _KEYWORDS.get(keyword)
        if add is not None:
            add(bag, value, path, schema)
        elif keyword in _UNSAID:
            bag.told.append(Weakened(path, keyword, _UNSAID[keyword]))
    if _SHAPES & schema.keys():
        _shape(bag, schema, path)
    if _ITEMS & schema.keys():
        _items(bag, schema, path, open_)


def negate(bag: Bag, schema: Any, path: str) -> bool:
    """Takes the values that ``schema`` describes out of the bag, as far as a bag can say that; False if no value is
    left."""
    if schema is True or schema == {}:
        return False
    if schema is False:
        return True
    if not isinstance(schema, Mapping):
        raise SchemaError(f"expected a schema (an object, true or false), found {shown(schema)}", path)
    if set(schema) - ANNOTATIONS == {"type"}:
        kinds = type_names(schema["type"], path)
        if "integer" not in kinds or "number" not in bag.types:
            bag.types = bag.types - kinds - ({"integer"} if "number" in kinds else set())
            return bool(bag.types)
    if bag.values is None:
        bag.told.append(Weakened(path.removesuffix(".not"), "not", "a grammar cannot take away"))
    return True


Keyword = Callable[[Bag, Any, str, Mapping[str, Any]], None]

_KEYWORDS: dict[str, Keyword] = {
    "type": _on_type,
    "enum": _on_values,
    "const": _on_const,
    "minimum": _bound("minimum", True, False),
    "maximum": _bound("maximum", False, False),
    "exclusiveMinimum": _bound("exclusiveMinimum", True, True),
    "exclusiveMaximum": _bound("exclusiveMaximum", False, True),
    "multipleOf": _on_multiple,
    "minLength": _count("minLength", "least", True),
    "maxLength": _count("maxLength", "most", False),
    "pattern": _on_pattern,
    "format": _on_format,
    "required": _on_required,
    "propertyNames": _on_names,
    "minProperties": _count("minProperties", "least_members", True),
    "maxProperties": _count("maxProperties", "most_members", False),
    "dependentRequired": _on_dependent,
    "dependencies": _on_dependent,
    "minItems": _count("minItems", "least_items", True),
    "maxItems": _count("maxItems", "most_items", False),
    "uniqueItems": _on_unique,
    "if": _on_condition,
    "dependentSchemas": _on_dependent_schemas,
}

_UNSAID = {
    "contains": "a grammar cannot count the items that satisfy a schema",
    "unevaluatedItems": "a grammar cannot know which items another keyword has judged",
    "contentSchema": "the inside of a string is not parsed",
}
APPLIES = {
    "contains": "array",
    "uniqueItems": "array",
    "unevaluatedItems": "array",
    "minItems": "array",
    "maxItems": "array",
    "dependentSchemas": "object",
    "dependencies": "object",
    "unevaluatedProperties": "object",
    "minProperties": "object",
    "maxProperties": "object",
    "contentSchema": "string",
    "format": "string",
    "minLength": "string",
    "maxLength": "string",
}
"""The type that a weakened keyword concerns. Other keywords concern all types."""
NOTES = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "example",
        "$comment",
        "deprecated",
        "readOnly",
        "writeOnly",
    }
)
"""The keywords that say something to readers alone."""
ANNOTATIONS = NOTES | {"$schema", "$defs", "definitions", "$id", "id", "$anchor"}
_SHAPES = frozenset({"properties", "patternProperties", "additionalProperties"})
_ITEMS = frozenset({"items", "prefixItems"})
SPEAKING = frozenset(_KEYWORDS) | frozenset(_UNSAID) | _SHAPES | _ITEMS | {"not", "unevaluatedProperties"}
"""The keywords that constrain a value by themselves. A schema without any of them adds nothing to a bag."""
