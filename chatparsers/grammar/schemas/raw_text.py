"""Values as raw text: strings verbatim, other types as JSON, as far as a reader does not take one for another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...schema.keywords import KEYWORDS, NOTES
from ..ir import ANYTHING, NOTHING, SPACES, Alt, Chars, Ir, Part, alt, charset, seq, texts
from ..regular.numbers import ANY_INTEGER, ANY_NUMBER
from ..syntaxes import RawText
from .cases import Case, Located, narrow
from .written import Output


def scalar_text(kind: str, scalars: Mapping[str, Ir], raw: RawText) -> Ir:
    """The values of a type without further constraints. ``scalars``: as they are written elsewhere."""
    if raw.said:
        said = narrow(frozenset({kind}), raw.types)
        if not said:
            return NOTHING
        (kind,) = said
    return raw.write(raw.only, 0, None) if kind == "string" else raw.word(scalars[kind])


def meant(case: Case, raw: RawText, output: Output) -> frozenset[str]:
    """The types of a case that the reader may take a value for."""
    kinds = narrow(case.types, raw.types)
    if kinds != case.types and not raw.said:
        types = " or ".join(sorted(raw.types))
        why = f"no type is given, and the other keywords mean {types}: no other is generated"
        output.tell(case.path, "type", why)
    return kinds


def told_apart(node: Ir, schemas: list[Located], raw: RawText, output: Output) -> Ir:
    """The alternatives of a value, as far as the reader tells them apart: if any text may be the value, only text is
    written."""
    if raw.said or not raw.written:
        return node
    options = node.options if isinstance(node, Alt) else (node,)
    others = [option for option in options if option not in raw.written and option not in raw.apart]
    free = next(
        (text for text in raw.written if text.parts == raw.only and not text.least and text.most is None),
        None,
    )
    if free is None or (not others and raw.types == {"string"}):
        return node
    if not (others or raw.apart) or not all(_whole(schema) for schema, _ in schemas):
        why = "text is also generated that reads as another type, without that type's constraints"
        output.tell(schemas[0][1], "type", why)
    return alt(free, *raw.apart)


def _whole(schema: Any) -> bool:
    """Whether the schema admits every value of each type that it admits beside strings."""
    if not isinstance(schema, Mapping):
        return True
    if set(schema) <= _OF_STRINGS:
        return True
    options = schema.get("anyOf") or schema.get("oneOf")
    return set(schema) <= _OF_STRINGS | {"anyOf", "oneOf"} and all(
        isinstance(option, Mapping) and set(option) <= _OF_STRINGS for option in options or ()
    )


_OF_STRINGS = (
    NOTES
    | {"type", "nullable"}
    | {row.name for row in KEYWORDS.values() if row.types == {"string"} and not row.silent}
)
"""Keywords that do not constrain values other than strings."""


def raw_parts(parts: tuple[Part, ...], case: Case, raw: RawText, output: Output) -> tuple[Part, ...]:
    """The constraints on a string that is written as raw text."""
    if not parts and not case.least and case.most is None:
        return raw.only
    parts += _no_other(case, raw, output)
    if raw.escapes:
        spelt = ", ".join(repr(char) for char, _ in raw.escapes)
        output.tell(case.path, "type", f"no string with {spelt} is generated: it is spelt in another way")
    return raw.verbatim + parts


def _no_other(case: Case, raw: RawText, output: Output) -> tuple[Part, ...]:
    """The constraints that keep raw text from being read as another type."""
    found: list[Part] = []
    if "number" in raw.types or "integer" in raw.types:
        number = ANY_NUMBER if "number" in raw.types else ANY_INTEGER
        found.append(Part(seq(SPACES, number, SPACES), False))
    words = [word for kind in ("boolean", "null") if kind in raw.types for word in raw.words[kind]]
    if words:
        found.append(Part(seq(SPACES, texts(words), SPACES), False))
    opening = "".join(char for kind, char in (("object", "{"), ("array", "[")) if kind in raw.types)
    if opening:
        found.append(Part(seq(SPACES, Chars(charset(opening)), ANYTHING), False))
        begins = " or ".join(opening)
        why = f"no string that begins with {begins} is generated: it may be read as another type"
        output.tell(case.path, "type", why)
    return tuple(found)
