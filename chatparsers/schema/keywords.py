"""The keywords of JSON Schema: one row for each, with what is known of it wherever a schema is read.

A row says where schemas are in the keyword's value, whether they apply to the same value, and of which types of
values it speaks. References and types (document.py) are derived from the rows; `grammar.schemas.keywords` has a rule
for each row that constrains a value. A keyword without a row is a note that nobody reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TYPES = ("object", "array", "string", "number", "boolean", "null")
ANYTHING = frozenset(TYPES)
"""Every JSON type. A schema without a type admits them all. A number may be an integer."""

_OBJECT, _ARRAY, _STRING, _NUMBER = (frozenset({kind}) for kind in TYPES[:4])


@dataclass(frozen=True, slots=True)
class Keyword:
    """What is known of a keyword.

    ``types``: the types of the values of which it speaks. ``schemas``: how schemas are in its value: ``one``, in a
    ``list``, or by ``names``. ``same``: whether these apply to the value itself: ``all`` of them, ``one`` of them, or
    some ``perhaps``. ``reference``: its value names a schema. ``means``: a schema with it and without a type means a
    value of its type. ``beside``: the keywords without which it says nothing; they read it. ``silent``: it constrains
    nothing, because it is a ``note`` for readers, a ``name`` of the schema, or something of the whole ``document``.
    """

    name: str
    types: frozenset[str] = ANYTHING
    schemas: tuple[Literal["one", "list", "names"], ...] = ()
    same: Literal["all", "one", "perhaps"] | None = None
    reference: bool = False
    means: bool = False
    beside: tuple[str, ...] = ()
    silent: Literal["note", "name", "document"] | None = None


_ROWS = (
    # of every type
    Keyword("type"),
    Keyword("enum"),
    Keyword("const"),
    Keyword("nullable", beside=("type", "enum")),
    # several schemas of one value
    Keyword("$ref", same="all", reference=True),
    Keyword("$dynamicRef", same="all", reference=True),
    Keyword("$recursiveRef", same="all", reference=True),
    Keyword("allOf", schemas=("list",), same="all"),
    Keyword("anyOf", schemas=("list",), same="one"),
    Keyword("oneOf", schemas=("list",), same="one"),
    Keyword("not", schemas=("one",), same="perhaps"),
    Keyword("if", schemas=("one",), same="perhaps"),
    Keyword("then", schemas=("one",), same="perhaps", beside=("if",)),
    Keyword("else", schemas=("one",), same="perhaps", beside=("if",)),
    # strings
    Keyword("minLength", _STRING),
    Keyword("maxLength", _STRING),
    Keyword("pattern", _STRING),
    Keyword("format", _STRING),
    Keyword("contentEncoding", _STRING),
    Keyword("contentMediaType", _STRING),
    Keyword("contentSchema", _STRING, ("one",)),
    # numbers
    Keyword("minimum", _NUMBER),
    Keyword("maximum", _NUMBER),
    Keyword("exclusiveMinimum", _NUMBER),
    Keyword("exclusiveMaximum", _NUMBER),
    Keyword("multipleOf", _NUMBER),
    # arrays
    Keyword("items", _ARRAY, ("one", "list"), means=True),
    Keyword("prefixItems", _ARRAY, ("list",), means=True),
    Keyword("additionalItems", _ARRAY, ("one",), beside=("items",)),
    Keyword("minItems", _ARRAY),
    Keyword("maxItems", _ARRAY),
    Keyword("uniqueItems", _ARRAY),
    Keyword("contains", _ARRAY, ("one",)),
    Keyword("minContains", _ARRAY, beside=("contains",)),
    Keyword("maxContains", _ARRAY, beside=("contains",)),
    Keyword("unevaluatedItems", _ARRAY, ("one",)),
    # objects
    Keyword("properties", _OBJECT, ("names",), means=True),
    Keyword("patternProperties", _OBJECT, ("names",), means=True),
    Keyword("additionalProperties", _OBJECT, ("one",), means=True),
    Keyword("required", _OBJECT),
    Keyword("propertyNames", _OBJECT, ("one",)),
    Keyword("minProperties", _OBJECT),
    Keyword("maxProperties", _OBJECT),
    Keyword("dependentRequired", _OBJECT),
    Keyword("dependentSchemas", _OBJECT, ("names",), same="perhaps"),
    Keyword("dependencies", _OBJECT, ("names",), same="perhaps"),
    Keyword("unevaluatedProperties", _OBJECT, ("one",)),
    # without a constraint
    *(Keyword(name, silent="note") for name in ("title", "description", "default", "examples", "example")),
    *(Keyword(name, silent="note") for name in ("$comment", "deprecated", "readOnly", "writeOnly")),
    *(
        Keyword(name, silent="name")
        for name in ("$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor")
    ),
    *(Keyword(name, schemas=("names",), silent="document") for name in ("$defs", "definitions")),
    *(Keyword(name, silent="document") for name in ("$schema", "$vocabulary")),
)

KEYWORDS = {row.name: row for row in _ROWS}
"""The rows, by name."""


def names(*silent: str) -> frozenset[str]:
    """The keywords that are silent in one of these ways."""
    return frozenset(row.name for row in _ROWS if row.silent in silent)


NOTES = names("note")
"""The keywords that say something to readers alone."""
SILENT = names("note", "name", "document")
"""The keywords that constrain nothing."""
