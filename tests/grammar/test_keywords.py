"""Random schemas over every keyword, and random values: the judge, jsonschema and the generated language agree, or
``weakened`` names the keyword.

jsonschema is the independent judge. It leaves ``contentEncoding`` and ``contentMediaType`` to its caller, so this file
judges these two with Python's own decoders.
"""

from __future__ import annotations

import base64
import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jsonschema
import pytest
from engines import FULL
from schema_suite import canonical, compiled, judges, spell

from chatparsers.errors import SchemaError
from chatparsers.grammar.budget import MAX_WORK, Budget
from chatparsers.grammar.schemas import Output
from chatparsers.grammar.schemas.judge import Judge
from chatparsers.schema.document import Document, contradictory, reconciled
from chatparsers.schema.keywords import KEYWORDS

STRINGS = ["", "a", "ab", "b", "QQ==", "!!", "2024-02-29", "127.0.0.1", "x-1", '{"a": 1}', "[", "ü"]
NUMBERS = [0, 1, -1, 2, 3, 10, 0.5, 1.5, -0.25]
NAMES = ["a", "b", "ab", "x-1", "c"]
PATTERNS = ["^a", "b$", "^[ab]*$", "x|y", "^.{2}$", "^(?=a)", "^(?!a)"]
FORMATS = ["date", "ipv4", "uuid", "regex", "weird"]


def value(chance: random.Random, depth: int = 0) -> Any:
    """Any JSON value, not deep."""
    kind = chance.random()
    if depth < 2 and kind < 0.3:
        return {name: value(chance, depth + 1) for name in chance.sample(NAMES, chance.randint(0, 4))}
    if depth < 2 and kind < 0.5:
        return [value(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    if kind < 0.75:
        return chance.choice(STRINGS)
    return chance.choice(NUMBERS) if kind < 0.9 else chance.choice([True, False, None])


class Draw:
    """Draws the values of keywords. ``draft``: 7 or 2020, whose keywords differ."""

    def __init__(self, chance: random.Random, draft: int) -> None:
        self.chance = chance
        self.draft = draft

    def schema(self, depth: int = 0) -> Any:
        chance = self.chance
        if depth > 2 or chance.random() < 0.04:
            return chance.choice([True, True, False, {"type": "string"}, {"type": "integer"}])
        if (
            chance.random() < 0.25
        ):  # one keyword of the others beside an enumeration, which the judge must know
            names = ["enum", chance.choice(self.keywords())]
        else:
            names = chance.sample(self.keywords(), chance.randint(1, 3))
        if chance.random() < 0.5:
            names.append("type")
        found = {name: DRAWN[name](self, depth + 1) for name in dict.fromkeys(names)}
        for name, others in BESIDE.items():
            if name in found:
                chosen = (other for other in others if chance.random() < 0.6 and self.known(other))
                found |= {other: DRAWN[other](self, depth + 1) for other in chosen}
        if not isinstance(found.get("items"), list):  # jsonschema measures it
            found.pop("additionalItems", None)
        return found

    def keywords(self) -> list[str]:
        alone = (name for name, row in KEYWORDS.items() if row.silent is None and not row.beside)
        return [name for name in alone if self.known(name)]

    def known(self, name: str) -> bool:
        return name not in (LATER if self.draft == 7 else EARLIER)

    def schemas(self, depth: int) -> list[Any]:
        return [self.schema(depth) for _ in range(self.chance.randint(1, 3))]

    def named(self, names: list[str], depth: int) -> dict[str, Any]:
        return {name: self.schema(depth) for name in self.some(names)}

    def some(self, names: list[str]) -> list[str]:
        return self.chance.sample(names, self.chance.randint(0, 3))

    def count(self) -> int:
        return self.chance.randint(0, 3)


EARLIER = {"dependencies", "additionalItems", "$recursiveRef", "nullable"}
"""Keywords of drafts before 2020."""
LATER = {
    *(
        "$dynamicRef",
        "$recursiveRef",
        "nullable",
        "prefixItems",
        "minContains",
        "maxContains",
        "contentSchema",
    ),
    *("dependentRequired", "dependentSchemas", "unevaluatedItems", "unevaluatedProperties"),
}
"""Keywords of drafts after 7. ``nullable`` is of none, and ``$recursiveRef`` of 2019, which stands for a plain one."""

NUMBER = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]
SIZES = [f"{end}{what}" for what in ("Length", "Items", "Properties", "Contains") for end in ("min", "max")]
ONE = ["not", "if", "then", "else", "contentSchema", "additionalItems", "contains", "unevaluatedItems"]
ONE += ["additionalProperties", "propertyNames", "unevaluatedProperties"]
Drawn = Callable[[Draw, int], Any]
DRAWN: Mapping[str, Drawn] = {
    "type": lambda draw, depth: draw.chance.choice(
        ["object", "array", "string", "number", "integer", "boolean", "null", ["string", "null"], ["object", "array"]]
    ),
    "enum": lambda draw, depth: [value(draw.chance) for _ in range(draw.chance.randint(1, 4))],
    "const": lambda draw, depth: value(draw.chance),
    "$ref": lambda draw, depth: "#/$defs/" + draw.chance.choice(["leaf", "tree"]),
    "$dynamicRef": lambda draw, depth: "#/$defs/" + draw.chance.choice(["leaf", "tree"]),
    "allOf": lambda draw, depth: draw.schemas(depth),
    "anyOf": lambda draw, depth: draw.schemas(depth),
    "oneOf": lambda draw, depth: draw.schemas(depth),
    **dict.fromkeys(ONE, lambda draw, depth: draw.schema(depth)),
    **dict.fromkeys(SIZES, lambda draw, depth: draw.count()),
    **dict.fromkeys(NUMBER, lambda draw, depth: draw.chance.choice(NUMBERS)),
    "pattern": lambda draw, depth: draw.chance.choice(PATTERNS),
    "format": lambda draw, depth: draw.chance.choice(FORMATS),
    "contentEncoding": lambda draw, depth: draw.chance.choice(["base64", "base16", "quoted-printable", "gzip"]),
    "contentMediaType": lambda draw, depth: draw.chance.choice(["application/json", "image/png"]),
    "multipleOf": lambda draw, depth: draw.chance.choice([1, 2, 3, 0.5, 0.25, 1000]),
    "items": lambda draw, depth: (
        draw.schemas(depth) if draw.draft == 7 and draw.chance.random() < 0.5 else draw.schema(depth)
    ),
    "prefixItems": lambda draw, depth: draw.schemas(depth),
    "uniqueItems": lambda draw, depth: True,
    "properties": lambda draw, depth: draw.named(NAMES, depth),
    "patternProperties": lambda draw, depth: draw.named(PATTERNS, depth),
    "required": lambda draw, depth: draw.some(NAMES),
    "dependentRequired": lambda draw, depth: {name: draw.some(NAMES) for name in draw.some(NAMES)},
    "dependentSchemas": lambda draw, depth: draw.named(NAMES, depth),
    "dependencies": lambda draw, depth: {
        name: draw.some(NAMES) if draw.chance.random() < 0.5 else draw.schema(depth) for name in draw.some(NAMES)
    },
    "unevaluatedProperties": lambda draw, depth: draw.chance.choice([False, draw.schema(depth)]),
}  # fmt: skip
BESIDE = {
    "if": ["then", "else"],
    "contains": ["minContains", "maxContains"],
    "items": ["additionalItems", "prefixItems", "minItems", "maxItems"],
    "properties": ["required", "additionalProperties", "patternProperties", "minProperties", "maxProperties"],
    "contentMediaType": ["contentEncoding"],
}
"""Keywords that are often together."""


def test_every_keyword_is_drawn() -> None:
    """A keyword with a new row needs a draw here, but for those of which no jsonschema judges."""
    wanted = {name for name, row in KEYWORDS.items() if row.silent is None}
    assert wanted - DRAWN.keys() == {"nullable", "$recursiveRef"}


def drawn(number: int) -> tuple[Any, Any, list[Any]]:
    """A schema, its validator and some values: values that it lists are among them."""
    chance = random.Random(f"keywords {number}")
    draft = chance.choice([7, 2020, 2020])
    draw = Draw(chance, draft)
    leaf = {
        "type": chance.choice(["string", "integer"]),
        **chance.choice([{}, {"minLength": 2}, {"minimum": 1}]),
    }
    tree = {"properties": {"a": {"$ref": "#/$defs/tree"}, "b": leaf}, "required": chance.choice([[], ["b"]])}
    schema = draw.schema()
    while not isinstance(schema, dict):
        schema = draw.schema()
    if draft == 7:  # which ignores the keywords beside a reference
        schema["$schema"] = "http://json-schema.org/draft-07/schema#"
        alone(schema)
    schema["$defs"] = {"leaf": leaf, "tree": tree}
    values = [*map(canonical, listed(schema)), *(canonical(value(chance)) for _ in range(10))]
    return schema, VALIDATORS[draft](meant(schema), format_checker=FORMAT_CHECKER), values


def meant(schema: Any) -> Any:
    """The schema, with each enum against its type as it is read: docs/grammar.md says how."""
    if isinstance(schema, list):
        return [meant(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if contradictory(schema):
        kept = {name: schema[name] for name in ("$defs", "$schema") if name in schema}
        return {**meant(kept), "anyOf": [meant({**option, "$defs": {}}) for option in reconciled(schema)]}
    return {name: part if name in ("enum", "const") else meant(part) for name, part in schema.items()}


def alone(schema: Any) -> None:
    """Takes away what stands beside references."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            for name in [*schema]:
                if name not in ("$ref", "$schema"):
                    del schema[name]
        for part in schema.values():
            alone(part)
    elif isinstance(schema, list):
        for part in schema:
            alone(part)


def listed(schema: Any) -> Iterator[Any]:
    """The values that a schema lists anywhere."""
    if isinstance(schema, dict):
        if isinstance(schema.get("enum"), list):
            yield from schema["enum"]
        if "const" in schema:
            yield schema["const"]
        for part in schema.values():
            yield from listed(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from listed(part)


def _encoded(validator: Any, said: Any, instance: Any, schema: Any) -> Iterator[Any]:
    decode = {"base64": lambda text: base64.b64decode(text, validate=True), "base16": bytes.fromhex}.get(said)
    if decode is not None and isinstance(instance, str):
        try:
            decode(instance)
        except ValueError as error:
            yield jsonschema.ValidationError(str(error))


def _typed(validator: Any, said: Any, instance: Any, schema: Any) -> Iterator[Any]:
    if said == "application/json" and isinstance(instance, str):
        try:
            json.loads(instance)
        except ValueError as error:
            yield jsonschema.ValidationError(str(error))


VALIDATORS = {
    draft: jsonschema.validators.extend(cls, {"contentEncoding": _encoded, "contentMediaType": _typed})
    for draft, cls in ((7, jsonschema.Draft7Validator), (2020, jsonschema.Draft202012Validator))
}
FORMAT_CHECKER = jsonschema.FormatChecker(["date", "ipv4", "uuid", "regex"])


def without(schema: Any, keywords: set[str]) -> Any:
    """A schema without keywords that a grammar does not enforce. A ``oneOf`` that it enforces is as an ``anyOf``."""
    if isinstance(schema, list):
        return [without(part, keywords) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: without(part, keywords) for name, part in schema.items() if name not in keywords}
    if "oneOf" in schema:
        options = {"anyOf": without(schema["oneOf"], keywords)}
        found = {**{name: part for name, part in found.items() if name != "oneOf"}, "allOf": [
            *found.get("allOf", []), options]}  # fmt: skip
    return found


TOGETHER = {
    "if": {"then", "else"},
    "contains": {"minContains", "maxContains"},
    "patternProperties": {"additionalProperties", "unevaluatedProperties"},
}
"""What a keyword takes with it: without it they say nothing, or more."""


def judged(value: Any, schema: Any, work: int = MAX_WORK) -> tuple[bool, list[tuple[str, str]]]:
    """Whether our judge lets a value pass, and what it says that it does not know."""
    output = Output(budget=Budget(work=work))
    fits = Judge(Document(schema), output).fits(value, [(schema, "$")])
    return fits, [(weak.path, weak.keyword) for weak in output.weakened]


def test_judge(amount: Callable[[int, int, int], int]) -> None:
    """Our judge says what jsonschema says, or that it does not know."""
    counted: Counter[object] = Counter()
    wrong: list[str] = []
    for number in range(amount(300, 2_000, 50_000)):
        schema, validator, values = drawn(number)
        for one in values:
            valid = validator.is_valid(one)
            fits, unsure = judged(one, schema)
            counted[None if unsure else fits] += 1
            if fits != valid and not (fits and unsure):
                wrong.append(
                    f"{number}: {json.dumps(one)} is {valid=}, judged {fits} under {json.dumps(schema)}"
                )
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:5])
    assert counted[True] > 100 and counted[False] > 100 and counted[None] > 10


def test_a_schema_that_leads_back_to_itself_adds_nothing() -> None:
    schema = {"type": "array", "items": {"$ref": "#"}, "allOf": [{"$ref": "#"}]}
    fits, told = judged([[], [[]]], schema, work=100)
    assert fits
    assert {keyword for _, keyword in told} == {"$ref"}


def test_a_refusal_counts_whatever_is_not_known() -> None:
    unknown: Any = {"pattern": "^(?=a)"}
    for schema in ({"allOf": [unknown, {"minLength": 2}]}, {"allOf": [unknown], "minLength": 2}):
        assert judged("a", schema)[0] is False


def test_language(amount: Callable[[int, int, int], int]) -> None:
    """The grammar takes what jsonschema takes, and more only where ``weakened`` names the keyword."""
    counted: Counter[str] = Counter()
    wrong: list[str] = []
    for number in range(amount(40, 250, 8_000)):
        schema, validator, values = drawn(number)
        try:
            weakened = compiled(schema)[2]
        except SchemaError as error:
            wrong.append(f"{number}: {error} under {json.dumps(schema)}")
            continue
        keywords = {weak.keyword for weak in weakened}
        keywords = keywords.union(*(TOGETHER.get(keyword, ()) for keyword in keywords))
        wider = VALIDATORS[2020 if "$schema" not in schema else 7](without(meant(schema), keywords))
        engines = judges(schema)
        for one in values:
            statuses = {engine: found.status(spell(one)) == FULL for engine, found in engines.items()}
            taken, valid = any(statuses.values()), validator.is_valid(one)
            counted[f"{taken=} {valid=}"] += 1
            if len({*statuses.values()}) > 1:
                wrong.append(f"{number}: {json.dumps(one)}: {statuses} under {json.dumps(schema)}")
            elif valid and not taken:
                wrong.append(f"{number}: {json.dumps(one)} is valid and refused under {json.dumps(schema)}")
            elif taken and not valid and "*" not in keywords and not wider.is_valid(one):
                wrong.append(
                    f"{number}: {json.dumps(one)} taken, {keywords} told, under {json.dumps(schema)}"
                )
    assert not wrong, f"{len(wrong)}:\n" + "\n".join(wrong[:5])
    assert len(counted) == 3 and min(counted.values()) > 10, counted


LISTED: list[Any] = ["QQ==", "2024-02-29", "!!", "{}", [1], [2], [1, 1], {"a": 1}, {"a": 1, "b": 2}]
JUDGED: dict[str, dict[str, Any]] = {
    "contentEncoding": {"contentEncoding": "base64"},
    "contentMediaType": {"contentMediaType": "application/json"},
    "format": {"format": "date"},
    "pattern": {"pattern": "^Q"},
    "contains": {"contains": {"const": 1}, "maxContains": 1},
    "prefixItems": {"prefixItems": [{"const": 1}], "items": False},
    "uniqueItems": {"uniqueItems": True},
    "propertyNames": {"propertyNames": False},
    "dependentSchemas": {"dependentSchemas": {"b": {"maxProperties": 1}}},
    "not": {"not": {"minItems": 2}},
    "if": {"if": {"type": "array"}, "then": {"minItems": 2}, "else": {"type": "string"}},
    "oneOf": {"oneOf": [{"maxLength": 3}, {"minLength": 3}]},
}


@pytest.mark.parametrize("keyword", JUDGED)
def test_listed_values_are_judged_by_every_keyword(keyword: str) -> None:
    """Also by those that no grammar enforces. ``"!!"`` was generated here in silence."""
    schema = {"enum": LISTED, **JUDGED[keyword]}
    weakened = compiled(schema)[2]
    validator = VALIDATORS[2020](schema, format_checker=FORMAT_CHECKER)
    engine = judges(schema)["llguidance"]
    taken = [one for one in LISTED if engine.status(spell(one)) == FULL]
    assert taken == [one for one in LISTED if validator.is_valid(one)] != LISTED
    assert not weakened


def told(chance: random.Random, depth: int = 0) -> dict[str, Any]:
    """A schema of an object some of whose members decide its conditions."""
    kinds: list[Any] = ["a", "b", "c"]
    name = chance.choice(["kind", "on"])
    asked = {"const": chance.choice(kinds)} if chance.random() < 0.6 else {"enum": chance.sample(kinds, 2)}
    if name == "on":
        asked = {"const": chance.random() < 0.5}
    condition: dict[str, Any] = {"properties": {name: asked}, "required": [name]}
    if chance.random() < 0.5:
        del condition[chance.choice(["properties", "required"])]
    found: dict[str, Any] = {"if": condition}
    for way in ("then", "else"):
        if chance.random() < 0.7:
            more = [
                {"required": chance.sample(["x", "kind"], 1)},
                {"properties": {"x": chance.choice([False, {"type": "integer"}, {"const": 1}])}},
                {"$ref": "#"},
                {"$ref": "#/$defs/more"},
            ]
            found[way] = (
                told(chance, depth + 1) if depth < 2 and chance.random() < 0.3 else chance.choice(more)
            )
    return found


def test_a_member_decides_conditions(amount: Callable[[int, int, int], int]) -> None:
    """Exactly, if its values are listed: by what it is, or by whether it is there."""
    objects = [
        {name: part for name, part in zip(("kind", "on", "x"), parts, strict=True) if part is not ...}
        for parts in itertools.product((..., "a", "b", "c"), (..., True, False), (..., 1, 2, "s"))
    ]
    verdicts: Counter[bool] = Counter()
    many, schemas = 0, amount(10, 60, 1_500)
    for number in range(schemas):
        chance = random.Random(f"conditions {number}")
        schema = {
            "type": "object",
            "properties": {"kind": {"enum": ["a", "b", "c"]}, "on": {"type": "boolean"}, "x": {}},
            "required": chance.choice([[], ["kind"], ["kind", "on"]]),
            "additionalProperties": False,
            "allOf": [told(chance) for _ in range(chance.randint(1, 4))],
            "$defs": {"more": {"properties": {"x": {"enum": [1, "s"]}}}},
        }
        # What leads back to itself adds nothing, and jsonschema does not come back from there.
        validator = VALIDATORS[2020](json.loads(json.dumps(schema).replace('{"$ref": "#"}', "{}")))
        try:
            weakened = compiled(schema)[2]
        except SchemaError:
            assert not any(map(validator.is_valid, objects)), schema
            continue
        if weakened:  # too many ways
            assert {weak.keyword for weak in weakened} == {"if"}, schema
            many += 1
            continue
        engines = judges(schema)
        for one in objects:
            valid = validator.is_valid(one)
            verdicts[valid] += 1
            for engine, judge in engines.items():
                assert (judge.status(spell(one)) == FULL) is valid, (number, engine, one, schema)
    assert min(verdicts.values()) > 50 and many <= schemas // 20
