"""What a keyword's value says of a given value (see keywords.py).

A verdict is True, False, or None: not known here. ``not`` and the like turn verdicts round, so what is not known must
not count as satisfied before the end. A malformed keyword says nothing: gathering reports it where it matters.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Protocol

from ...schema.document import type_of
from ..regular.string_formats import Named
from ..steps import Steps
from .constraints import Schema, type_names
from .listed import identities, identity

Verdict = bool | None


class Ask(Protocol):
    """The judge, as a keyword asks it."""

    def valid(self, value: Any, schema: Any) -> Steps[Verdict]:
        """Whether a part of the value, or the value itself, is valid under a schema."""
        ...

    def finds(self, expression: Any, text: str, keyword: str) -> Verdict:
        """Whether a regular expression, which a keyword gives, finds a match in ``text``."""
        ...

    def listed(self, values: Any, keyword: str) -> frozenset[Any]:
        """The identities of listed values."""
        ...

    def target(self, reference: Any, schema: Schema, keyword: str) -> Any:
        """The schema that a reference names; None if it is not known."""
        ...


Judged = Callable[[Ask, Any, Any, Schema], "Verdict | Steps[Verdict]"]
"""Judges a value by a keyword: the judge, the keyword's value, the value, the schema."""


def every(verdicts: Iterable[Verdict]) -> Verdict:
    """Whether all hold."""
    known: Verdict = True
    for verdict in verdicts:
        if verdict is False:
            return False
        known = known and verdict
    return known


# every type


def kind(ask: Ask, said: Any, value: Any, schema: Schema) -> Verdict:
    kinds = type_names(said, "$")
    found = type_of(value)
    if found in kinds or (value is None and schema.get("nullable") is True):
        return True
    return found == "number" and "integer" in kinds and (isinstance(value, int) or value.is_integer())


def among(ask: Ask, said: Any, value: Any, schema: Schema) -> Verdict:
    if not isinstance(said, (list, tuple)):
        return True
    nullable = schema.get("nullable") is True and "type" not in schema and value is None
    return nullable or identity(value) in ask.listed(said, "enum")


def constant(ask: Ask, said: Any, value: Any, schema: Schema) -> Verdict:
    return identity(value) in identities([said], "$", "const")


# schemas of the same value


def reference(keyword: str) -> Judged:
    def judged(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
        target = ask.target(said, schema, keyword)
        if target is None:
            return None
        found: Verdict = yield ask.valid(value, target)
        return found

    return judged


def all_of(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    found: Verdict = yield _every(ask, ((value, part) for part in _schemas(said)))
    return found


def any_of(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    known: Verdict = False
    for part in _schemas(said):
        verdict: Verdict = yield ask.valid(value, part)
        if verdict:
            return True
        known = None if verdict is None else known
    return known


def one_of(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    found: Verdict = yield _counted(ask, ((value, part) for part in _schemas(said)), 1, 1)
    return found


def none_of(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    found: Verdict = yield ask.valid(value, said)
    return None if found is None else not found


def condition(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    holds: Verdict = yield ask.valid(value, said)
    found: list[Verdict] = []
    for keyword, wanted in (("then", True), ("else", False)):
        if keyword in schema and holds is not (not wanted):
            found.append((yield ask.valid(value, schema[keyword])))
    return every(found) if holds is not None or all(found) else None


def _every(ask: Ask, parts: Iterable[tuple[Any, Any]]) -> Steps[Verdict]:
    """Whether each value is valid under its schema."""
    known: Verdict = True
    for value, schema in parts:
        verdict: Verdict = yield ask.valid(value, schema)
        if verdict is False:
            return False
        known = known and verdict
    return known


def _counted(ask: Ask, parts: Iterable[tuple[Any, Any]], least: float, most: float) -> Steps[Verdict]:
    """Whether ``least`` to ``most`` of the values are valid under their schemas."""
    sure = perhaps = 0
    for value, schema in parts:
        verdict: Verdict = yield ask.valid(value, schema)
        sure += verdict is True
        perhaps += verdict is not False
    if perhaps < least or sure > most:
        return False
    return True if sure >= least and perhaps <= most else None


# strings


def pattern(ask: Ask, said: Any, value: Any, schema: Schema) -> Verdict:
    return ask.finds(said, value, "pattern")


def named(keyword: str, sets: Named) -> Judged:
    """A keyword that names a set of strings."""

    def judged(ask: Ask, said: Any, value: Any, schema: Schema) -> Verdict:
        if not isinstance(said, str):
            return True
        if said in sets.expressions:
            found = ask.finds(sets.expressions[said], value, keyword)
            return None if found and said in sets.wider else found
        return None if said in sets.unsaid else True

    return judged


def media_type(ask: Ask, said: Any, value: Any, schema: Schema) -> Verdict:
    if said != "application/json" or "contentEncoding" in schema:
        return None if said == "application/json" else True
    try:
        json.loads(value, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")


def sized(lower: bool) -> Judged:
    """The number of a text's characters, an array's items or an object's members."""

    def judged(ask: Ask, said: Any, value: Any, schema: Schema) -> Verdict:
        return not _finite(said) or (len(value) >= said if lower else len(value) <= said)

    return judged


# numbers


def compared(holds: Callable[[Fraction, Fraction], bool]) -> Judged:
    def judged(ask: Ask, said: Any, value: Any, schema: Schema) -> Verdict:
        return not _finite(said) or holds(_exact(value), _exact(said))

    return judged


def strictly(plain: str, holds: Callable[[Fraction, Fraction], bool]) -> Judged:
    """An exclusive bound; in draft 4 it is true or false, beside the bound ``plain``."""

    def judged(ask: Ask, said: Any, value: Any, schema: Schema) -> Verdict:
        bound: Any = schema.get(plain) if said is True else said
        return not _finite(bound) or holds(_exact(value), _exact(bound))

    return judged


def divided(ask: Ask, said: Any, value: Any, schema: Schema) -> Verdict:
    return not _finite(said) or said == 0 or (_exact(value) / _exact(said)).denominator == 1


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < float("inf")


def _exact(value: float) -> Fraction:
    return Fraction(value) if isinstance(value, int) else Fraction(repr(value))


# arrays


def items(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    parts: list[tuple[Any, Any]] = []
    before, rest = _schemas(schema.get("prefixItems")), said
    if isinstance(said, (list, tuple)):
        before, rest = tuple(said), schema.get("additionalItems", True)
        parts += zip(value, said, strict=False)
    parts += [(item, rest) for item in value[len(before) :]]
    found: Verdict = yield _every(ask, parts)
    return found


def prefix(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    found: Verdict = yield _every(ask, zip(value, _schemas(said), strict=False))
    return found


def unique(ask: Ask, said: Any, value: Any, schema: Schema) -> Verdict:
    return said is not True or len(set(map(identity, value))) == len(value)


def contains(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    least: Any = schema.get("minContains")
    most: Any = schema.get("maxContains")
    lower: float = least if _finite(least) else 1
    upper: float = most if _finite(most) else float("inf")
    found: Verdict = yield _counted(ask, ((item, said) for item in value), lower, upper)
    return found


# objects


def properties(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    named = said if isinstance(said, Mapping) else {}
    found: Verdict = yield _every(ask, ((value[name], named[name]) for name in value if name in named))
    return found


def patterns(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    pairs = ((name, *item) for name in value for item in (said if isinstance(said, Mapping) else {}).items())
    known: Verdict = True
    for name, expression, part in pairs:
        matches = ask.finds(expression, name, "patternProperties")
        if matches is not False:
            verdict: Verdict = yield ask.valid(value[name], part)
            if verdict is False and matches:
                return False
            known = known and (verdict or None)
    return known


def others(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    """``additionalProperties``: the members that no name and no pattern beside it takes."""
    named, told = (
        found if isinstance(found, Mapping) else {}
        for found in (schema.get("properties"), schema.get("patternProperties"))
    )
    known: Verdict = True
    for name in value:
        matches = [ask.finds(expression, name, "patternProperties") for expression in told]
        if name in named or True in matches:
            continue
        verdict: Verdict = yield ask.valid(value[name], said)
        if verdict is False and None not in matches:
            return False
        known = known and (verdict or None)
    return known


def required(ask: Ask, said: Any, value: Any, schema: Schema) -> Verdict:
    return not isinstance(said, (list, tuple)) or all(name in value for name in said)


def property_names(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    found: Verdict = yield _every(ask, ((name, said) for name in value))
    return found


def dependent(ask: Ask, said: Any, value: Any, schema: Schema) -> Steps[Verdict]:
    """``dependentRequired``, ``dependentSchemas`` and ``dependencies``: lists of names, or schemas."""
    there = [needed for name, needed in _pairs(said) if name in value]
    if not all(name in value for needed in there if isinstance(needed, (list, tuple)) for name in needed):
        return False
    found: Verdict = yield _every(
        ask, ((value, part) for part in there if not isinstance(part, (list, tuple)))
    )
    return found


def _pairs(said: Any) -> Iterator[tuple[str, Any]]:
    yield from said.items() if isinstance(said, Mapping) else ()


def _schemas(listed: Any) -> tuple[Any, ...]:
    return tuple(listed) if isinstance(listed, (list, tuple)) else ()
