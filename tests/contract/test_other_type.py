"""A value of another JSON type than declared, one rule in every syntax: what has types on the wire stays as written,
what has none is converted by the schema, and what is then of no declared type is told, once for each argument."""

from __future__ import annotations

import json
from typing import Any

import pytest
from making import tool

from chatparsers import Format, get_format
from chatparsers.schema.document import is_of, type_of
from chatparsers.watch import observe, other_type

WRITTEN = {
    "integer": 3,
    "number": 1.5,
    "string": "3",
    "boolean": True,
    "null": None,
    "array": [1],
    "object": {"a": 1},
}


def turn_of(format: Format, kind: str) -> Any:
    return format.bind(tools=[tool("f", {"x": {"type": kind}}, ["x"])])


def texts(format: Format) -> dict[str, str]:
    """The call with each value, as the format writes it where the value is of its type."""
    found = {}
    for kind, value in WRITTEN.items():
        function = {"name": "f", "arguments": json.dumps({"x": value})}
        answer = {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"type": "function", "id": "call00000", "function": function}],
        }
        found[kind] = format.render(answer, [tool("f", {"x": {"type": kind}}, ["x"])])
    return found


@pytest.mark.one_in(8, quick=64)
def test_types_on_the_wire_stay_and_others_are_the_schemas(format: Format) -> None:
    if not format.features.tools:
        return
    written = texts(format)
    (call,) = turn_of(format, "integer").parse(written["string"]).tool_calls
    typed = call.parsed_arguments == {"x": "3"}
    for kind, text in written.items():
        for declared in WRITTEN:
            turn = turn_of(format, declared)
            message = turn.parse(text)
            (call,) = message.tool_calls
            assert call.parsed_arguments is not None, (text, declared)
            value, types = call.parsed_arguments["x"], frozenset({declared})
            if typed:
                assert (value, type_of(value)) == (WRITTEN[kind], type_of(WRITTEN[kind])), (text, declared)
            elif declared == "string" or is_of(WRITTEN[kind], types):
                assert is_of(value, types), (text, declared)
            told = [one for one in observe(turn, message) if one.code == "other-type"]
            assert len(told) == (not is_of(value, types)), (text, declared)
            for one in told:
                assert one.expected == f"{declared} at $.x, not {type_of(value)}" and one.call == 0, text
                assert "f" in message.text[one.position :], text


def test_both_kinds_of_syntaxes_are_there() -> None:
    """Else the rule above would say nothing of one."""
    typed, other = ("qwen3", "lfm2", "gemma-4", "deepseek-v3-2"), ("qwen3-coder", "glm-4-5", "minimax-m3")
    for value, names in (("3", typed), (3, other)):
        for format in map(get_format, names):
            (call,) = turn_of(format, "integer").parse(texts(format)["string"]).tool_calls
            assert call.parsed_arguments == {"x": value}, format.name


DEEP = {"type": "object", "properties": {"days": {"type": "array", "items": {"type": "integer"}}}}
UNION = {"anyOf": [{"type": "integer"}, {"type": "null"}]}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        pytest.param(
            DEEP, {"days": [1, "2", "3"]}, "integer at $.x.days[1], not string", id="first of a list"
        ),
        pytest.param(DEEP, {"days": [1, 2.0]}, "", id="no fraction"),
        pytest.param(DEEP, {"days": [1, 2.5]}, "integer at $.x.days[1], not number", id="fraction"),
        pytest.param(DEEP, {"other": "2"}, "", id="undeclared member"),
        pytest.param(UNION, None, "", id="one of a union"),
        pytest.param(UNION, "3", "integer or null at $.x, not string", id="none of a union"),
        pytest.param(True, "3", "", id="no type"),
    ],
)
def test_where_it_is(schema: Any, value: Any, expected: str) -> None:
    turn = get_format("qwen3").bind(tools=[tool("f", {"x": schema, "y": {"type": "string"}}, [])])
    first, second = ({"name": "f", "arguments": each} for each in ({"y": "a"}, {"x": value, "y": 5}))
    text = "".join(f"<tool_call>\n{json.dumps(call)}\n</tool_call>\n" for call in (first, second))
    message = turn.parse(text, strict=True)
    found = other_type(turn, message)
    assert [one.expected for one in found if "$.x" in one.expected] == ([expected] if expected else [])
    assert [one.expected for one in found if "$.y" in one.expected] == ["string at $.y, not number"]
    assert {(one.position, one.call) for one in found} == {(text.index('{"name": "f"', 20), 1)}
