"""Schemas of tools that, taken literally, allow nothing: what their authors mean is generated and read, and named."""

from __future__ import annotations

import json
from typing import Any

import pytest
from engines import FULL, compile_for, engines_of
from samples import tool
from test_matrix import DIALECTS, TOOL_FORMATS

import chatparsers

ENUMS: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "boolean", "enum": ["True", "False", "dontcare"]}, ["dontcare", True, False], ["no", 1]),
    ({"type": "integer", "enum": ["low", "high"]}, ["low", 3], ["middle"]),
    ({"type": "array", "items": {"type": "string"}, "enum": ["a", "b"]}, [["a", "b"], []], ["a", ["c"]]),
    ({"type": "array", "enum": ["a", "b"]}, [["b"]], [["c"]]),
]


@pytest.mark.parametrize(("schema", "right", "wrong"), ENUMS)
@pytest.mark.parametrize("name", ["qwen3", "qwen3-coder", "glm-4-5", "lfm2", "llama-3-x", "minimax-m3"])
def test_an_enum_without_a_value_of_its_type(
    name: str, schema: dict[str, Any], right: list[Any], wrong: list[Any]
) -> None:
    format = chatparsers.get_format(name)
    tools = [tool("f", {"a": schema}, ["a"])]
    turn = format.bind(tools=tools, tool_choice="required", thinking=False)
    for dialect in DIALECTS:
        grammar = turn.grammar(dialect)
        assert grammar is not None
        assert [weak.keyword for weak in grammar.weakened if weak.path.endswith(".a")][:1] == ["enum"]
        judge = compile_for(engines_of(dialect)[0], str(grammar), dialect)
        for index, value in enumerate((*right, *wrong)):
            arguments = json.dumps({"a": value})
            call = {"id": "abcdefgh1", "type": "function", "function": {"name": "f", "arguments": arguments}}
            try:
                text = format.render({"tool_calls": [call]}, tools)
            except chatparsers.RequestError:  # the format cannot write a wrong value so that it is read back
                assert index >= len(right)
                continue
            assert (judge.status(text) == FULL) is (index < len(right)), (dialect, value, text)
            if index < len(right):
                assert turn.parse(text).tool_calls[0].parsed_arguments == {"a": value}


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_one_unusable_tool(name: str) -> None:
    """One of no valid call is left out under auto, and named. Where a call is required, or no tool is left, it is
    an error."""
    format = chatparsers.get_format(name)
    good = tool("good", {"a": {"type": "string"}}, ["a"])
    bad = tool("unusable", {"a": {"type": "integer", "minimum": 5, "maximum": 2}}, ["a"])
    for dialect in DIALECTS:
        grammar = format.bind(tools=[good, bad]).grammar(dialect)
        assert grammar is not None and "good" in str(grammar) and "unusable" not in str(grammar)
        assert any(weak.path == "$.tools.unusable" and "left out" in weak.why for weak in grammar.weakened)
        for asked in ({"tool_choice": "required"}, {"tool_choice": "unusable"}):
            with pytest.raises(chatparsers.SchemaError):
                format.bind(tools=[good, bad], **asked).grammar(dialect)
        with pytest.raises(chatparsers.SchemaError):
            format.bind(tools=[bad]).grammar(dialect)


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_a_malformed_schema_fails_no_request_that_does_not_force_its_tool(name: str) -> None:
    format = chatparsers.get_format(name)
    good = tool("good", {"a": {"type": "string"}}, ["a"])
    bad = tool("malformed", {"a": {"$ref": "#/$defs/none"}}, ["a"])
    for tools in ([good, bad], [bad]):
        grammar = format.bind(tools=tools).grammar()
        assert grammar is not None and "malformed" in str(grammar)
        assert any(weak.path == "$.tools.malformed" and "any object" in weak.why for weak in grammar.weakened)
    assert format.bind(tools=[good, bad], tool_choice="required").grammar() is not None
    with pytest.raises(chatparsers.SchemaError):
        format.bind(tools=[good, bad], tool_choice="malformed").grammar()


OLD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(
        ({"type": "object", "properties": {"a": {"type": "string"}}, keyword: None}, {})
        for keyword in ("required", "$ref", "anyOf", "enum", "minProperties", "$defs", "additionalProperties")
    ),
    ({"type": "object", "properties": None, "required": None}, {"type": "object"}),
    *(
        ({"type": "object", "properties": {"a": {"type": "string", keyword: None}}}, {})
        for keyword in ("enum", "pattern", "minLength", "format", "items", "oneOf")
    ),
    (
        {"type": "object", "properties": {"a": {"type": "any"}}},
        {"type": "object", "properties": {"a": {}}},
    ),
    (
        {"type": "object", "properties": {"a": {"type": "string", "required": True}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    ),
    (
        {"type": "object", "properties": {"a": {"type": "integer", "divisibleBy": 5}}},
        {"type": "object", "properties": {"a": {"type": "integer", "multipleOf": 5}}},
    ),
    (
        {"type": "object", "properties": {"a": {"extends": {"type": "string"}}}},
        {"type": "object", "properties": {"a": {"allOf": [{"type": "string"}]}}},
    ),
    (
        {"type": "object", "properties": {"a": {"disallow": "string"}}},
        {"type": "object", "properties": {"a": {"not": {"type": "string"}}}},
    ),
]
"""A schema, and what it means in today's words; {}: that of one text."""


@pytest.mark.parametrize(("old", "new"), OLD)
def test_nulls_and_the_words_of_draft_3_are_read(old: dict[str, Any], new: dict[str, Any]) -> None:
    new = new or {"type": "object", "properties": {"a": {"type": "string"}}}
    for name in ("qwen3", "qwen3-coder"):
        bind = chatparsers.get_format(name).bind
        found, wanted = (bind(tools=[{"name": "f", "parameters": s}], tool_choice="f") for s in (old, new))
        assert str(found.grammar()) == str(wanted.grammar())


def test_a_whole_number_is_admitted_in_both_spellings() -> None:
    for schema in ({"enum": [1.0]}, {"const": 1.0}):
        turn = chatparsers.get_format("qwen3").bind(tools=[tool("f", {"a": schema}, ["a"])], tool_choice="f")
        judge = compile_for(engines_of("gbnf")[0], str(turn.grammar("gbnf")), "gbnf")
        for value in ("1.0", "1", "2"):
            text = f'<tool_call>\n{{"name": "f", "arguments": {{"a": {value}}}}}\n</tool_call>'
            assert (judge.status(text) == FULL) is (value != "2"), value


@pytest.mark.parametrize("name", ["qwen3", "qwen3-coder", "kimi-k3", "glm-4-5"])
def test_a_tool_that_is_not_strict_is_guided_to_its_name_alone(name: str) -> None:
    """The grammar is that of the same tool with any object; without the word it is that of the schema."""
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    free, strict, plain, loose = (
        str(chatparsers.get_format(name).bind(tools=[{"name": "f", **given}], tool_choice="f").grammar())
        for given in (
            {"parameters": {"type": "object"}},
            {"parameters": schema, "strict": True},
            {"parameters": schema},
            {"parameters": schema, "strict": False},
        )
    )
    assert loose == free != plain == strict
