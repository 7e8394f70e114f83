"""Nested elements: text, lists and lists of lists stand between the same markers, and every engine tells them apart."""

from __future__ import annotations

from typing import Any

import pytest
from engines import FULL, PREFIX, compile_for, engines_of
from samples import tool
from test_matrix import DIALECTS

import chatparsers

MARK = "]<]minimax[>["
VALUES = ("", "x", "]<]min", "<item>x</item>", "<item></item><item>x</item>", "<item><item>x</item></item>")
SCHEMAS: dict[str, Any] = {
    "any items": {"type": "array", "items": {}},
    "a reference": {"$ref": "#/$defs/nested"},
    "a union": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/nested"}}]},
}


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_text_and_lists_are_told_apart(schema: str, dialect: str) -> None:
    asked = tool("now", {"e": SCHEMAS[schema]}, ["e"])
    asked["function"]["parameters"]["$defs"] = {"nested": SCHEMAS["a union"]}
    turn = chatparsers.get_format("minimax-m3").bind(
        tools=[asked], tool_choice="required", prefix="</mm:think>"
    )
    judge = compile_for(engines_of(dialect)[0], str(turn.grammar(dialect)), dialect)
    for value in VALUES:
        if schema == "any items" and value and not value.startswith("<item>"):
            continue
        marked = value.replace("<item>", f"{MARK}<item>").replace("</item>", f"{MARK}</item>")
        call = f"{MARK}<e>{marked}{MARK}</e>"
        text = f'{MARK}<tool_call>\n{MARK}<invoke name="now">{call}{MARK}</invoke>\n{MARK}</tool_call>'
        assert judge.status(text) == FULL, (value, text[judge.status(text).at :])
        assert judge.status(text[:-1]) == PREFIX


def test_what_is_not_generated_is_named_by_its_place() -> None:
    """No name can be written twice that the schema does not list: an object that lists none is empty."""
    schema = {"type": "object", "properties": {"o": {"type": "object"}, "l": {"items": {"type": "object"}}}}
    turn = chatparsers.get_format("minimax-m3").bind(tools=[{"name": "f", "parameters": schema}])
    told = {weak.path for weak in turn.grammar().weakened if weak.keyword == "additionalProperties"}
    below = "$.tools.f.parameters.properties"
    assert f"{below}.o" in told and all(path.startswith(below) for path in told), told


@pytest.mark.parametrize("dialect", DIALECTS)
def test_listed_values_are_elements_too(dialect: str) -> None:
    asked = tool("now", {"e": {"enum": [{"a": 1, "b": ["x", {"c": True}]}]}}, ["e"])
    format = chatparsers.get_format("minimax-m3")
    turn = format.bind(tools=[asked], tool_choice="required", prefix="</mm:think>")
    call = {"name": "now", "arguments": '{"e": {"a": 1, "b": ["x", {"c": true}]}}'}
    text = format.render(
        {"role": "assistant", "content": "", "tool_calls": [{"id": "1", "function": call}]}, [asked]
    )
    judge = compile_for(engines_of(dialect)[0], str(turn.grammar(dialect)), dialect)
    text = text.removeprefix("<mm:think></mm:think>").removeprefix("</mm:think>").lstrip("\n")
    assert judge.status(text) == FULL, text[judge.status(text).at :]
