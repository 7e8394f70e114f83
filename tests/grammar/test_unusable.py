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
    """Under auto it is left out and named. Where a call is required, or no tool is left, it is an error."""
    format = chatparsers.get_format(name)
    good = tool("good", {"a": {"type": "string"}}, ["a"])
    for properties in (
        {"a": {"type": "integer", "minimum": 5, "maximum": 2}},
        {"a": {"$ref": "#/$defs/none"}},
    ):
        bad = tool("unusable", properties, ["a"])
        for dialect in DIALECTS:
            grammar = format.bind(tools=[good, bad]).grammar(dialect)
            assert grammar is not None and "good" in str(grammar) and "unusable" not in str(grammar)
            assert any(
                weak.path == "$.tools.unusable" and "left out" in weak.why for weak in grammar.weakened
            )
            for asked in ({"tool_choice": "required"}, {"tool_choice": "unusable"}):
                with pytest.raises(chatparsers.SchemaError):
                    format.bind(tools=[good, bad], **asked).grammar(dialect)
            with pytest.raises(chatparsers.SchemaError):
                format.bind(tools=[bad]).grammar(dialect)
