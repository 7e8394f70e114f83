"""Parser and grammar read one schema alike: a value that the grammar lets through is read back as itself.

A tagged format writes strings without quotes, so only the schema tells ``5`` from ``"5"``. The tests make random
schemas with references of every kind. If the grammar takes the text of a value, the parser must read that value.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
from engines import FULL, Llguidance, compile_for
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import chatparsers
from chatparsers.grammar import Weakened
from chatparsers.schema.document import SPELLINGS, Document, type_of
from chatparsers.schema.tools import Argument

pytestmark = pytest.mark.filterwarnings("ignore:tools. expected JSON's names of types")

VALUES: list[Any] = [
    "", "a", "ab", "5", "-5", "1.5", "1e3", "007", "true", "True", "null", "None", "{", "[1]", '{"a": 1}', "a <b> c",
    "<", "nul", 5, -5, 0, 12, 1.5, -0.25, True, False, None, [], [1], ["a"], [[1]], {}, {"a": 1}, {"b": "x"},
    {"a": {"a": 2}},
]  # fmt: skip
DEFS = {
    "one": "#/$defs/one",
    "a b": "#/$defs/a%20b",
    "x/y~z": "#/$defs/x~1y~0z",
    "anchored": "#here",
    "named": "named.json",
}

names = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array", *SPELLINGS])
leaves = st.one_of(
    st.just({}),
    st.just(True),
    st.builds(lambda name: {"type": name}, names),
    st.builds(lambda several: {"type": several}, st.lists(names, min_size=1, max_size=3, unique=True)),
    st.builds(lambda ref: {"$ref": ref}, st.sampled_from(list(DEFS.values()))),
    st.builds(lambda name, ref: {"type": name, "$ref": ref}, names, st.sampled_from(list(DEFS.values()))),
    st.builds(lambda values: {"enum": values}, st.lists(st.sampled_from(VALUES), min_size=1, max_size=4)),
    st.builds(lambda value: {"const": value}, st.sampled_from(VALUES)),
    st.builds(
        lambda pattern: {"type": "string", "pattern": pattern}, st.sampled_from(["^[0-9]+$", "^a", "e$"])
    ),
    st.builds(lambda most: {"type": ["string", "integer"], "maxLength": most}, st.integers(0, 4)),
    st.builds(lambda low: {"type": ["number", "string"], "minimum": low}, st.integers(-2, 12)),
    st.just({"type": "string", "nullable": True}),
    st.just({"properties": {"a": {"type": "integer"}}}),
)


def _larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(
            lambda keyword, parts: {keyword: parts}, st.sampled_from(["anyOf", "oneOf", "allOf"]), several
        ),
        st.builds(
            lambda part, parts: {**part, "anyOf": parts} if part is not True else {"anyOf": parts},
            leaves,
            several,
        ),
        st.builds(lambda part: {"type": "object", "properties": {"a": part}}, inner),
        st.builds(lambda part: {"type": "array", "items": part}, inner),
        st.builds(
            lambda name, part: {"not": {"type": name}, "allOf": [part]},
            st.sampled_from(["string", "null"]),
            inner,
        ),
    )


schemas = st.recursive(leaves, _larger, max_leaves=5)


def _document(schema: Any, parts: list[Any]) -> dict[str, Any]:
    """The parameters of a tool whose argument ``v`` has the schema; its references lead to ``parts``."""
    one, spaced, escaped, anchored, named = parts
    return {
        "type": "object",
        "properties": {"v": schema},
        "required": ["v"],
        "$defs": {
            "one": one,
            "a b": spaced,
            "x/y~z": escaped,
            "anchored": {"$anchor": "here", "allOf": [anchored]},
            "named": {"$id": "named.json", "allOf": [{"$ref": "#/$defs/inner"}], "$defs": {"inner": named}},
        },
    }


def _plain(schema: Any) -> Any:
    """The schema in words that jsonschema knows."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: part if name in ("enum", "const") else _plain(part) for name, part in schema.items()}
    if "type" in found and not isinstance(found["type"], dict):
        listed = [found["type"]] if isinstance(found["type"], str) else found["type"]
        found["type"] = [SPELLINGS.get(name, name) for name in listed]
        if found.pop("nullable", False) is True:
            found["type"].append("null")
    return found


def _valid(arguments: Any, parameters: dict[str, Any]) -> bool:
    try:
        return bool(jsonschema.Draft202012Validator(_plain(parameters)).is_valid(arguments))
    except RecursionError:  # a schema that leads back to itself says nothing there
        return True


def _wire(text: str) -> str:
    return f"<tool_call>\n<function=f>\n<parameter=v>\n{text}\n</parameter>\n</function>\n</tool_call>"


def _check(schema: Any, parts: list[Any], chance: random.Random) -> int:
    """How many values the grammar lets through. Each must be read as it was meant."""
    parameters = _document(schema, parts)
    turn = chatparsers.get_format("qwen3-coder").bind(
        tools=[{"name": "f", "parameters": parameters}], tool_choice="required", parallel_tool_calls=False
    )
    try:
        grammar = turn.grammar("lark")
    except chatparsers.SchemaError:
        return 0
    judge = Llguidance(str(grammar))
    through = 0
    for value in VALUES:
        text = _wire(value if isinstance(value, str) else json.dumps(value))
        if judge.status(text) != FULL:
            continue
        through += 1
        message = turn.parse(text, strict=True)
        assert message.tool_calls[0].complete
        read = json.loads(message.tool_calls[0].arguments)
        assert _allowed(value, read["v"], parameters, grammar.weakened), f"{text!r} is read as {read}"
        stream = turn.stream(strict=True)
        at = 0
        while at < len(text):
            size = chance.randint(1, 9)
            stream.feed(text[at : at + size])
            at += size
        stream.finish()
        assert stream.message.tool_calls[0].arguments == message.tool_calls[0].arguments
    return through


def _allowed(value: Any, read: Any, parameters: dict[str, Any], weakened: tuple[Weakened, ...]) -> bool:
    """Whether the text of ``value`` may be read as ``read``: a valid value of another type as itself, and a string as
    itself unless it says such a value."""
    if _same(read, value):
        return bool(weakened) or _valid({"v": value}, parameters)
    if isinstance(value, str):
        return not isinstance(read, str) and (bool(weakened) or _valid({"v": read}, parameters))
    guessed = any("no type is given" in weak.why for weak in weakened)
    return read == json.dumps(value) and (guessed or not _valid({"v": value}, parameters))


def _same(left: Any, right: Any) -> bool:
    return type(left) is type(right) and bool(left == right)


def test_values_are_read_as_the_grammar_writes_them(amount: Callable[[int, int, int], int]) -> None:
    through = []

    @settings(
        max_examples=amount(30, 120, 2_000),
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(
        schemas, st.lists(schemas, min_size=len(DEFS), max_size=len(DEFS)), st.randoms(use_true_random=False)
    )
    def check(schema: Any, parts: list[Any], chance: random.Random) -> None:
        through.append(_check(schema, parts, chance))

    check()
    assert sum(map(bool, through)) > len(through) / 2, "too few of the schemas let a value through"


@pytest.mark.parametrize(
    ("schema", "types"),
    [
        ({"$ref": "#/$defs/one", "type": ["integer", "null"]}, {"integer"}),
        ({"$dynamicRef": "#here"}, {"boolean"}),
        ({"$ref": "#/$defs/a%20b"}, {"null"}),
        ({"$ref": "#/$defs/x~1y~0z"}, {"array"}),
        ({"$ref": "named.json"}, {"string"}),
        ({"$ref": "named.json#/$defs/inner"}, {"string"}),
        ({"$ref": "http://elsewhere/x.json"}, set(Document(True).types(True))),
        ({"anyOf": [{"$ref": "#/$defs/one"}, {"$ref": "#here"}]}, {"integer", "boolean"}),
        ({"type": "float"}, {"number"}),
        ({"type": ["integer", "number"]}, {"number"}),
        ({"enum": [1, 2.5]}, {"number"}),
        ({"enum": [1, 2.0]}, {"integer"}),
        ({"properties": {}}, {"object"}),
        ({"properties": {}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"object"}),
        ({"properties": {}, "type": ["object", "string"]}, {"object", "string"}),
        ({"anyOf": [{"properties": {}}, {"type": "string"}]}, {"object", "string"}),
        ({"items": {}}, {"array"}),
        ({"allOf": [{"type": ["string", "number"]}, {"type": ["integer", "null"]}]}, {"integer"}),
        ({"type": "string", "nullable": True}, {"string", "null"}),
    ],
)  # fmt: skip
def test_types(schema: Any, types: set[str]) -> None:
    kinds = [
        {"type": "integer"},
        {"type": "null"},
        {"type": "array"},
        {"type": "boolean"},
        {"type": "string"},
    ]
    document = Document(_document(schema, kinds))
    assert Argument("v", document.root["properties"]["v"], True, document).types == types


def test_a_schema_that_leads_back_to_itself_is_visited_once() -> None:
    chain: dict[str, Any] = {f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(5_000)}
    chain["d5000"] = {"anyOf": [{"$ref": "#/$defs/d0"}, {"type": "string"}]}
    around: dict[str, Any] = {"$defs": chain, "type": "object", "properties": {"v": {"$ref": "#/$defs/d0"}}}
    document = Document(around)
    assert document.types(around["properties"]["v"]) == document.types(True)
    chain["d5000"] = {"allOf": [{"$ref": "#/$defs/d0"}, {"type": "string"}]}
    document = Document(around)
    assert document.types(around["properties"]["v"]) == {"string"}


def test_references_that_lead_nowhere() -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"v": {"$ref": "#/$defs/none"}}}}
    format = chatparsers.get_format("qwen3-coder")
    with pytest.raises(chatparsers.SchemaError, match="leads nowhere") as raised:
        format.bind(tools=[tool], tool_choice={"type": "function", "function": {"name": "f"}}).grammar()
    assert raised.value.path.endswith(".v.$ref")
    turn = format.bind(tools=[tool])  # nobody forces the tool, so it is guided to its name and an object
    grammar = turn.grammar()
    assert grammar is not None and any("leads nowhere" in each.why for each in grammar.weakened)
    assert json.loads(turn.parse(_wire("3")).tool_calls[0].arguments) == {"v": 3}
    assert type_of(3) == "number"


@pytest.mark.parametrize("dialect", ["gbnf", "lark", "structural_tag"])
def test_white_space_of_models(dialect: str) -> None:
    """A space before a colon, CRLF and a deep indent are taken inside arguments as around them, and no deeper one: a
    model could write blanks for ever."""
    inner = {
        "type": "object",
        "properties": {"b": {"type": "integer"}},
        "additionalProperties": {"type": "integer"},
    }
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": inner}, "required": ["a"]}}
    turn = chatparsers.get_format("hermes-2-pro").bind(tools=[tool], tool_choice="required")
    grammar = turn.grammar(dialect)
    assert grammar is not None
    judge = compile_for("llguidance" if dialect == "lark" else "xgrammar", str(grammar), dialect)
    deepest = 20 if dialect == "structural_tag" else 64
    for end in ("\n", "\r\n"):
        for indent in (4, deepest, deepest + 1):
            line = end + " " * indent
            arguments = f'{{{line}"a" : {{{line}"b" : 1,{line}"c" : 2{line}}}{end}}}'
            text = f'<tool_call>\n{{"name": "f", "arguments" : {arguments}}}\n</tool_call>'
            assert (judge.status(text) == FULL) is (indent <= deepest), (end, indent)
            assert json.loads(turn.parse(text).tool_calls[0].arguments) == {"a": {"b": 1, "c": 2}}
    assert len(repr(grammar)) < 100 < len(str(grammar))
