"""Values as raw text: strings verbatim, other types as JSON, as far as a reader does not take one for another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...schema.document import is_of
from ...schema.keywords import KEYWORDS, NOTES, TYPES
from ..ir import ANYTHING, NOTHING, SPACES, Alt, Chars, Ir, Part, alt, charset, seq, texts
from ..regular.numbers import ANY_INTEGER, ANY_NUMBER
from ..steps import Steps
from ..syntaxes import RawText
from .cases import Case, Located, narrow
from .containers import Compiler
from .scalars import borne, number, string_parts
from .written import Output


def text_values(schemas: list[Located], depth: int, raw: RawText, compiler: Compiler) -> Steps[Ir]:
    """The alternatives of a value as raw text."""
    output = compiler.output
    scalar = compiler.scalar(schemas)
    if scalar is not None:
        return _scalar_text(scalar, compiler.scalars[0], raw)
    cases = compiler.judge.cases(schemas)
    listed = output.listed(cases)
    options = [raw.write((), 0, None)] if listed is None else _listed(listed, schemas, cases, raw, compiler)
    for case in cases:
        if case.values is not None:
            continue
        kinds = _meant(case, raw, output)
        for kind in (*TYPES, "integer"):
            if kind not in kinds:
                continue
            output.tell_unsaid(case, kind)
            made: Ir
            if kind == "string":
                made = _string(case, raw, output)
            elif kind in ("number", "integer"):
                made = number(case, kind == "integer", output, "string" in raw.types)
            else:
                made = yield compiler.of_type(kind, case, depth)
            options.append(raw.word(made) if kind in raw.words else made)
            if raw.marked and kind in ("object", "array"):
                raw.apart += made.options if isinstance(made, Alt) else (made,)
    return _told_apart(alt(*options), schemas, raw, output)


def _scalar_text(kind: str, scalars: Mapping[str, Ir], raw: RawText) -> Ir:
    """The values of a type without further constraints. ``scalars``: as they are written elsewhere."""
    if raw.said:
        said = narrow(frozenset({kind}), raw.types)
        if not said:
            return NOTHING
        (kind,) = said
    return raw.write(raw.only, 0, None) if kind == "string" else raw.word(scalars[kind])


def _listed(
    values: list[Any], schemas: list[Located], cases: list[Case], raw: RawText, compiler: Compiler
) -> list[Ir]:
    """Listed values, as far as the reader takes them for what they are."""
    found: list[Ir] = []
    plain: list[str] = []
    for value in values:
        if raw.said and not is_of(value, raw.types):
            continue
        if not isinstance(value, str):
            found.append(raw.word(compiler.syntax.literal(value)))
        elif raw.may(value):
            spelt = raw.spelt(value)
            why = ""
            if any(stop in spelt for stop in raw.stops):
                why = f"{value!r} holds what ends a value: it is not generated"
            elif (read := raw.read(spelt)) != value and not compiler.judge.fits(read, schemas):
                why = f"{value!r} would be read as no string: it is not generated"
            if why:
                compiler.output.tell(cases[0].path, "enum", why)
            else:
                plain.append(spelt)
    return [*found, raw.write((Part(texts(plain)),), 0, None)] if plain else found


def _string(case: Case, raw: RawText, output: Output) -> Ir:
    """The strings of a case."""
    if case.most is not None and case.most < case.least:
        return NOTHING
    parts = string_parts(case, output)
    if not parts and not case.least and case.most is None:
        parts = raw.only
    else:
        parts += _no_other(case, raw, output)
        if raw.escapes:
            spelt = ", ".join(repr(char) for char, _ in raw.escapes)
            output.tell(case.path, "type", f"no string with {spelt} is generated: it is spelt in another way")
        parts = raw.verbatim + parts
    found = borne(case, parts, raw.stops, output)
    return NOTHING if found is None else raw.write(found.parts, found.least, found.most)


def _meant(case: Case, raw: RawText, output: Output) -> frozenset[str]:
    """The types of a case that the reader may take a value for."""
    kinds = narrow(case.types, raw.types)
    if kinds != case.types and not raw.said:
        types = " or ".join(sorted(raw.types))
        why = f"no type is given, and the other keywords mean {types}: no other is generated"
        output.tell(case.path, "type", why)
    return kinds


def _told_apart(node: Ir, schemas: list[Located], raw: RawText, output: Output) -> Ir:
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
