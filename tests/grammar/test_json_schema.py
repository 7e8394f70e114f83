"""JSON Schema to grammar: hand-made cases judged by jsonschema, and the official suite where it can be had."""

from __future__ import annotations

import itertools
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from engines import FULL
from grammar_report import record
from samples import tool
from schema_suite import Score, canonical, compiled, judges, official

from chatparsers import get_format
from chatparsers.errors import SchemaError
from chatparsers.grammar.arrange import FREE, FREE_REQUIRED
from chatparsers.grammar.dialects.gbnf import write_gbnf

INSTANCES: list[Any] = [
    [[1, 2], [3]], "ab-",
    None, True, False, 0, 1, -1, 2, 3, 7, 10, 12, 99, 100, 101, -100, 0.5, 1.5, -0.25, 3.14, 1e3, 12.75, 0.125, "",
    "a", "ab", "abc", "foo", "bar", "A1", "a-b", "2024-02-29", "2023-02-29", "12:30:00Z", "x@y.org", "ä",
    "日本", "\n", 'say "hi"', "\\", "5", "true", "123e4567-e89b-12d3-a456-426614174000", "192.168.0.1",
    "http://a.b/c?d#e", "2024-01-01T00:00:00Z", [], [1], [1, 2], [1, [2]], [1, "a"], ["a"], ["a", "b"], [[]], [1, 1],
    [None], [1, 2, 3, 4], {}, {"a": 1}, {"b": 2}, {"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": "x"}, {"x-1": 1},
    {"x-1": "s"}, {"a": 1, "c": 3}, {"a": {"a": 1}}, {"a": {"a": {}}}, {"kind": "cat", "lives": 9}, {"kind":
    "dog", "name": "Rex"}, {"kind": "dog"}, {"foo": 1}, {"a": 1, "b": 2, "c": 3}, {"v": 1, "next": {"v": 2}},
    {"v": 1, "next": {"v": "x"}},
]  # fmt: skip

SCHEMAS: dict[str, list[Any]] = {
    "type": [{"type": kind} for kind in ("string", "integer", "number", "boolean", "null", "array", "object")]
    + [
        {"type": ["string", "null"]},
        {"type": ["integer", "object"]},
        {},
        True,
        {"type": "string", "nullable": True},
    ],
    "enum": [
        {"enum": ["a", 1, None, [1], {"a": 1}]},
        {"type": "string", "enum": ["a", 5, "foo"]},
        {"enum": [0.5, True]},
    ],
    "const": [{"const": "foo"}, {"const": {"b": 2, "a": 1}}, {"const": [1, 2]}, {"const": False}],
    "properties": [
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
        {"properties": {"a": {"type": "string"}}},
        {"type": "object", "properties": {name: {"type": "integer"} for name in "abcde"}, "required": ["a"]},
        {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in "abcde"},
            "required": list("abcd"),
        },
    ],
    "required": [
        {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a"]},
        {"type": "object", "required": ["foo"]},
        {"required": ["a", "b"]},
    ],
    "additionalProperties": [
        {"properties": {"a": {}}, "additionalProperties": False},
        {"properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "object", "additionalProperties": False},
    ],
    "patternProperties": [
        {"patternProperties": {"^x-": {"type": "integer"}}},
        {
            "properties": {"a": {}},
            "patternProperties": {"^x-": {"type": "integer"}},
            "additionalProperties": False,
        },
        {"patternProperties": {"a": {"type": "integer"}, "^b$": {"maximum": 1}}},
        # The automaton of 2,000 characters, one after the other, deepened Python's stack.
        {"type": "object", "patternProperties": {"^.{2000}$": {"type": "string"}}},
    ],
    "propertyNames": [{"propertyNames": {"maxLength": 1}}, {"propertyNames": {"enum": ["a", "b"]}}],
    "minProperties": [
        {"type": "object", "minProperties": 2},
        {"type": "object", "maxProperties": 1},
        {
            "type": "object",
            "properties": {"a": {}, "b": {}},
            "additionalProperties": False,
            "minProperties": 1,
            "maxProperties": 1,
        },
    ],
    "dependentRequired": [{"dependentRequired": {"a": ["b"]}}],
    "dependentSchemas": [{"dependentSchemas": {"b": {"properties": {"a": {"type": "integer"}}}}}],
    "if": [
        {
            "if": {"required": ["b"]},
            "then": {"properties": {"a": {"type": "integer"}}},
            "else": {"properties": {"c": {"type": "string"}}},
        }
    ],
    "items": [
        {"items": {"type": "integer"}},
        {"type": "array", "items": {"type": "string"}},
        {"items": False},
    ],
    "prefixItems": [
        {"prefixItems": [{"type": "integer"}, {"type": "string"}]},
        {"prefixItems": [{"type": "integer"}], "items": False},
        {"prefixItems": [{"type": "integer"}], "items": {"type": "integer"}, "minItems": 2},
    ],
    "minItems": [
        {"minItems": 2},
        {"type": "array", "maxItems": 1},
        {"type": "array", "minItems": 1, "maxItems": 2},
    ],
    "uniqueItems": [{"uniqueItems": True}],
    "minLength": [
        {"minLength": 2},
        {"type": "string", "maxLength": 2},
        {"type": "string", "minLength": 2, "maxLength": 3},
    ],
    "pattern": [
        {"pattern": p}
        for p in (
            "^a",
            "b$",
            "^[a-z]+$",
            r"^\w-\w$",
            "o{2}",
            "^(foo|bar)$",
            r"\d",
            "^[^a]*$",
            "^.{2}$",
            r"[\-]b",
            # llguidance refused the whole grammar. CloudFormation has such patterns.
            "^[\\u0020-\\uD800\\uDBFF-\\uDC00\\uDFFF-\\uFFFD]+$",
        )
    ],
    "format": [
        {"type": "string", "format": f} for f in ("date", "time", "date-time", "uuid", "email", "uri", "ipv4")
    ],
    "large counts": [
        {"type": "string", "maxLength": 5000},
        {"type": "string", "minLength": 300, "maxLength": 3000},
        {
            "type": "array",
            "items": {"type": "array", "items": {"type": "integer"}, "maxItems": 900},
            "maxItems": 2500,
        },
        {"type": "string", "pattern": "^(?:[a-z]{1,100}-){1,40}$"},
    ],
    "two bounds": [
        {"type": "integer", "minimum": 2, "allOf": [{"minimum": 7}]},
        {"type": "integer", "minimum": 7, "allOf": [{"minimum": 2}]},
        {"type": "integer", "maximum": 99, "allOf": [{"exclusiveMaximum": 99}, {"maximum": 100}]},
    ],
    "minimum": [
        {"type": "integer", "minimum": low, "maximum": high}
        for low, high in itertools.product((-100, 0, 2), (-1, 7, 100))
        if low <= high
    ]
    + [
        {"minimum": 0.5},
        {"maximum": 12.75},
        {"exclusiveMinimum": 1.5},
        {"type": "number", "exclusiveMaximum": -0.25},
    ]
    + [
        {"type": "integer", "exclusiveMinimum": 2, "exclusiveMaximum": 100},
        {"type": "number", "minimum": -1, "maximum": 3.14},
    ],
    "multipleOf": [
        {"type": "integer", "multipleOf": 3},
        {"multipleOf": 0.25},
        {"multipleOf": 0.01},
        {"type": "integer", "multipleOf": 7, "minimum": 0},
        {"type": "integer", "multipleOf": 0.5},
    ],
    "anyOf": [
        {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 2}]},
        {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {  # a key that one alternative names and the other does not
            "anyOf": [
                {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
            ]
        },
    ],
    "oneOf": [
        {"oneOf": [{"type": "string"}, {"type": "null"}]},
        {
            "oneOf": [
                {
                    "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}},
                    "required": ["kind", "lives"],
                },
                {
                    "properties": {"kind": {"const": "dog"}, "name": {"type": "string"}},
                    "required": ["kind", "name"],
                },
            ]
        },
        {"oneOf": [{"minimum": 2}, {"type": "integer"}]},
    ],
    "allOf": [
        {"allOf": [{"minimum": 2}, {"maximum": 10}]},
        {
            "allOf": [
                {"properties": {"a": {"type": "integer"}}},
                {"required": ["b"], "properties": {"b": {"minimum": 2}}},
            ]
        },
        {"allOf": [{"type": ["string", "integer"]}, {"type": ["integer", "null"]}]},
    ],
    "not": [
        {"not": {"type": "string"}},
        {"not": {"const": 1}},
        {"type": "string", "enum": ["a", "b"], "not": {"const": "a"}},
        {"anyOf": [{"type": "string", "not": True}, {"type": "null"}]},
    ],
    "$ref": [
        {
            "$ref": "#/$defs/n",
            "$defs": {
                "n": {
                    "type": "object",
                    "properties": {"v": {"type": "integer"}, "next": {"$ref": "#/$defs/n"}},
                }
            },
        },
        {"type": "array", "items": {"$ref": "#"}},
        {"definitions": {"s": {"type": "string"}}, "anyOf": [{"$ref": "#/definitions/s"}, {"type": "null"}]},
        {"properties": {"a": {"$ref": "#"}}, "additionalProperties": False},
        {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"$ref": "#"}, "minItems": 1},
    ],
}


def keep(score: Score, suite: str, other: int, request: pytest.FixtureRequest) -> None:
    """Records a score; ``other``: how many of the wrong ones are so on purpose."""
    record(
        request,
        "schemas",
        suite=suite,
        right=score.right,
        weak=score.weak,
        wrong=len(score.wrong) - other,
        other=other,
    )


def test_hand_made_cases(request: pytest.FixtureRequest) -> None:
    score = Score()
    for keyword, schemas in SCHEMAS.items():
        for index, schema in enumerate(schemas):
            judged: Any = schema
            if isinstance(schema, dict) and schema.get("nullable"):
                judged = {"anyOf": [schema, {"type": "null"}]}
            validator = jsonschema.Draft202012Validator(judged, format_checker=jsonschema.FormatChecker())
            asserted = isinstance(schema, dict) and "format" in schema
            values = [
                v
                for v in INSTANCES
                if not (asserted and isinstance(v, str) and schema["format"] in UNCHECKED)
            ]
            tests = [(value, validator.is_valid(canonical(value))) for value in values]
            score.case(keyword, f"{keyword} {index}", schema, tests)
    keep(score, "hand-made", 0, request)
    assert not score.wrong, "\n".join(score.wrong[:10])


UNCHECKED = frozenset({"time", "date-time", "uri"})
"""Formats that jsonschema checks with further packages alone; the grammar's strings of them are in the
official suite."""


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ({"type": "strin"}, "$.type"),
        ({"properties": []}, "$.properties"),
        ({"properties": {"a": {"minimum": "1"}}}, "$.properties.a.minimum"),
        ({"required": "a"}, "$.required"),
        ({"enum": 3}, "$.enum"),
        ({"type": "array", "items": {"type": "string", "pattern": "("}}, "$.items.pattern"),
        ({"anyOf": []}, "$.anyOf"),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, "$.properties.a.$ref"),
        ({"maxLength": -1}, "$.maxLength"),
        ({"properties": {"a": 3}}, "$.properties.a"),
        ({"multipleOf": 0}, "$.multipleOf"),
        ({"uniqueItems": 1}, "$.uniqueItems"),
        ({"enum": ["\ud800"]}, "$.enum"),
        ({"const": float("nan")}, "$.const"),
    ],
)
def test_invalid_schema(schema: Any, path: str) -> None:
    with pytest.raises(SchemaError) as raised:
        compiled(schema)
    assert raised.value.path == path
    for name in ("hermes-2-pro", "qwen3-coder"):
        with pytest.raises(SchemaError) as raised:
            get_format(name).bind(tools=[tool("f", {"a": schema}, [])], tool_choice="f").grammar()
        assert raised.value.path == f"$.tools.f.parameters.properties.a{path[1:]}"


def test_strings_of_any_characters_may_escape_them() -> None:
    for engine, judge in judges({"type": "string", "pattern": "^[^x]+$"}).items():
        assert judge.status(r'"\u00e4\ud83d\ude00"') == FULL, engine


@pytest.mark.parametrize(
    ("beside", "draft", "told"),
    [
        ({"description": "An id."}, "http://json-schema.org/draft-07/schema#", []),
        ({"maxItems": 2}, "https://json-schema.org/draft/2020-12/schema", []),
        ({"maxItems": 2}, "http://json-schema.org/draft-07/schema#", ["$.properties.a $ref"]),
        ({"$id": "http://a.b/c"}, "https://json-schema.org/draft/2020-12/schema", ["$.properties.a $id"]),
    ],
)
def test_keywords_beside_a_reference(beside: dict[str, Any], draft: str, told: list[str]) -> None:
    """Drafts up to 7 ignore them, so the grammar's reading of such a schema is reported."""
    reference = {"$ref": "#/$defs/list", **beside}
    defs = {"list": {"type": "array"}}
    schema = {"$schema": draft, "properties": {"a": reference}, "$defs": defs}
    _, _, weakened = compiled(schema)
    assert [f"{weak.path} {weak.keyword}" for weak in weakened] == told


NAMED: dict[str, Any] = {"properties": {"a": {}}}
SEALED = {**NAMED, "unevaluatedProperties": False}
KINDS: list[Any] = [
    {"properties": {"kind": {"const": name}}, "required": ["kind"]} for name in ("cat", "dog")
]


@pytest.mark.parametrize(
    ("schema", "told"),
    [
        (SEALED, []),
        ({"allOf": [NAMED], "unevaluatedProperties": False}, []),
        ({"$ref": "#/$defs/a", "$defs": {"a": NAMED}, "unevaluatedProperties": False}, []),
        ({"allOf": [SEALED]}, ["unevaluatedProperties"]),
        ({"properties": {"b": SEALED}, "patternProperties": {"^b": NAMED}}, ["unevaluatedProperties"]),
        ({"patternProperties": {"^b": NAMED}, "properties": {"b": SEALED}}, ["unevaluatedProperties"]),
        ({"type": "integer", "multipleOf": 0.5}, []),
        ({"type": "object", "patternProperties": {"^.{2000}$": {"type": "string"}}}, []),
        ({"type": "object", "oneOf": KINDS}, []),
        ({"$ref": "https://example.com/x"}, ["$ref"]),
        # Each of many alternatives is written, but of so many none is compared with another.
        ({"allOf": [{"anyOf": [{"minimum": 0}]}, {"anyOf": [{"maximum": n} for n in range(300)]}]}, []),
        ({"oneOf": [{"type": "number", "minimum": least} for least in range(70)]}, ["oneOf"]),
        # Ranges are apart if no number is in both.
        *(
            ({"oneOf": [{"type": "number", **bounds} for bounds in pair]}, told)
            for below, told in (
                ({"maximum": 4}, []),
                ({"exclusiveMaximum": 5}, []),
                ({"maximum": 5}, ["oneOf"]),
            )
            for pair in ([below, {"minimum": 5}], [{"minimum": 5}, below])
        ),
    ],
)
def test_only_what_is_not_enforced_is_reported(schema: dict[str, Any], told: list[str]) -> None:
    assert [weak.keyword for weak in compiled(schema)[2]] == told


def test_length_is_exact() -> None:
    for least, most in ((0, 3), (2, 2), (130, 150), (0, 300), (5, 200), (0, 128), (64, 129), (200, 5000)):
        counts = {"type": "string", "minLength": least, "maxLength": most}
        schemas = [counts, *({**counts, "pattern": "^[x\n😀]*$"} for _ in range(most < 2_000))]
        for schema in schemas:
            score = Score()
            tests = [
                (text * size, least <= size <= most)
                for size in {0, 1, least - 1, least, 63, 64, 65, most, most + 1}
                if size >= 0
                for text in ("x", "\n", "😀")
            ]
            score.case("length", "length", schema, tests)
            assert not score.wrong, score.wrong


def test_a_type_beside_a_reference_makes_no_value_of_its_own() -> None:
    """Each member was written anew, with all that it refers to: 2 seconds for a schema of 60 kB."""

    def size(member: dict[str, Any]) -> int:
        node = {"type": "object", "properties": {f"p{number}": {**member} for number in range(12)}}
        root, rules, _ = compiled({"$ref": "#/$defs/node", "$defs": {"node": node}})
        return len(write_gbnf(root, rules))

    reference = {"$ref": "#/$defs/node"}
    assert size({"type": "object", **reference}) < 2 * size(reference)


def test_a_pattern_that_counts_is_short() -> None:
    for count in ("{1000}", "{1,2000}", "{150,450}X", "{150,450}~"):
        root, rules, _ = compiled({"type": "string", "pattern": f"^-[a-z]{count}$"})
        assert len(write_gbnf(root, rules)) < 8_000, count


@pytest.fixture(scope="session")
def official_folder(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The official suite, which jsonschema's source distribution on PyPI carries; fetched in nightly runs."""
    if not pytestconfig.getoption("--nightly"):
        pytest.skip(
            "the official suite is fetched from PyPI (jsonschema's source distribution) with --nightly"
        )
    folder = tmp_path_factory.mktemp("json-schema-test-suite")
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "jsonschema"]
    wanted = f"jsonschema=={version('jsonschema')}"
    done = subprocess.run([*command, "-d", str(folder), wanted], capture_output=True, text=True, check=False)
    archive = next(folder.glob("jsonschema-*.tar.gz"), None)
    if archive is None:
        pytest.skip(f"the official suite could not be fetched: {done.stderr[-200:]}")
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    return next(folder.glob("*/json/tests"))


OTHER_MEANING = {
    (
        "draft2020-12",
        "format",
    ): "formats are asserted here; the suite's own assertions are in optional/format",
    ("draft2020-12", "vocabulary"): "a custom metaschema is not loaded",
    ("draft2019-09", "vocabulary"): "a custom metaschema is not loaded",
}
NARROWER = (
    "leap second",
    "quoted string",
    "IPv4-address-literal",
    "IPv6-address-literal",
    ":60",
    "192.168",
    '\\"joe',
    "@[",
    "[2001:",
    "overrides any sibling",
    "prevents a sibling $id",
    "content: validation of binary",
    "expected a type or a list of types, found a list of 2 items",
    "the reference '#foo' leads nowhere",
)
"""What valid strings of a format are not generated: seconds of 60, e-mail addresses with quotes or literals,
mixed IPv6; draft 7's rule that `$ref` hides its siblings, also `$id`; encodings of content, which are asserted here.
And what is an error: schemas among the types of draft 3, a name that draft 4 gives by `id`."""
DRAFTS = (
    "draft3",
    "draft4",
    "draft6",
    "draft7",
    "draft2019-09",
    "draft2020-12",
    "draft2020-12/optional/format",
)


@pytest.mark.parametrize("draft", DRAFTS)
def test_official_suite(draft: str, official_folder: Path, request: pytest.FixtureRequest) -> None:
    score = Score()
    for keyword, name, schema, tests in official(official_folder / draft):
        if (draft, keyword) not in OTHER_MEANING:
            try:
                score.case(keyword, name, schema, tests)
            except SchemaError as error:
                score.wrong.append(f"{name}: {error}")
    unexpected = [wrong for wrong in score.wrong if not any(mark in wrong for mark in NARROWER)]
    keep(score, draft, len(score.wrong) - len(unexpected), request)
    assert not unexpected, "\n".join(unexpected[:10])


def members(count: int, required: int) -> dict[str, Any]:
    names = [f"p{index}" for index in range(count)]
    return {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "required": names[:required],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("count", "required", "order", "accepted"),
    [
        (FREE, 2, [3, 1, 0, 2], True),
        (FREE, FREE, [*reversed(range(FREE))], True),
        (9, FREE_REQUIRED, [3, 2, 5, 0, 7, 1], True),
        (9, FREE_REQUIRED, [3, 2, 5, 0, 1, 5], False),
        (9, FREE_REQUIRED, [0, 1, 7, 5, 2, 3], False),
        (9, FREE_REQUIRED + 1, [5, 0, 1, 7, 2, 3, 4], True),
        (9, FREE_REQUIRED + 1, [1, 0, 2, 3, 4], False),
        (9, 0, [], True),
        (9, 0, [1, 3, 8], True),
        (9, 1, [1, 3, 8], False),
    ],
)
def test_order_of_members(count: int, required: int, order: list[int], accepted: bool) -> None:
    text = "{" + ", ".join(f'"p{index}": {index}' for index in order) + "}"
    for engine, judge in judges(members(count, required)).items():
        once = len({*order}) == len(order) and {*range(required)} <= {*order}
        assert (judge.status(text) == FULL) is (once if engine == "llguidance" else accepted), text


@pytest.mark.parametrize("required", [0, 3, 6, 9])
def test_members_sorted_by_name(required: int) -> None:
    """As templates write them that sort, also where not every order is generated."""
    names = ["to", "Body", "cc", "subject", "attach", "kind", "when", "id", "zone"]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "required": names[:required],
        "additionalProperties": False,
    }

    def written(some: list[str]) -> str:
        return "{" + ", ".join(f'"{name}": 1' for name in some) + "}"

    by_name = sorted(names, key=str.lower)
    needed = [name for name in by_name if name in names[:required]]
    for engine, judge in judges(schema).items():
        for some in (by_name, needed, names):
            assert judge.status(written(some)) == FULL, some
        assert judge.status(written([*by_name, by_name[0]])) != FULL
        assert (judge.status(written(by_name[::-1])) == FULL) is (engine == "llguidance")
