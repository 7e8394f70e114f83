"""Mistakes that fuzzing found and that are not about one text of one format."""

from __future__ import annotations

import json
from typing import Any

import pytest
from making import bytewise

from chatparsers import Turn, get_format
from chatparsers.testing import TOOLS
from chatparsers.values import json as scanner


def of_ids(name: str, text: str, **more: Any) -> Any:
    format = get_format(name)
    tokenizer = bytewise(*(*format.preserved_tokens, *format.stops))
    turn: Turn = format.bind(tools=TOOLS, tokenizer=tokenizer, **more)
    return turn.parse(tokenizer.encode(text, add_special_tokens=False).ids)


def test_special_tokens_are_spelt() -> None:
    """In arguments that are no JSON, in content that is a JSON string, and in diagnostics."""
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city"<think> oops</tool_call>'
    [call] = of_ids("qwen3", text).tool_calls
    assert call.arguments == '{"city"<think> oops'
    assert of_ids("generic", '{"response": "a<|x|>b"}').content == "a<|x|>b"
    for name, text, expected in (
        ("hermes-2-pro", '<tool_call>\n{"name": "get_time", "arguments": {}} oops', "'</tool_call>'"),
        ("glm-4-5", "<tool_call>get_weather\n<arg_key>city</arg_key>\n<arg_value>Os", "'</arg_value>'"),
    ):
        [wrong] = of_ids(name, text).diagnostics
        assert expected in wrong.expected.split(" or "), wrong


def test_many_broken_values_in_one_piece_cost_as_much_as_they_are_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The interpreter's JSON error counts the lines before it. So a value is tried only on a part of the text."""
    counted = 0

    class Counting(json.JSONDecoder):
        def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
            nonlocal counted
            try:
                return super().raw_decode(s, idx)
            except json.JSONDecodeError as error:
                counted += error.pos
                raise

    monkeypatch.setattr(scanner, "_decoder", Counting())
    calls = 5000
    broken = '<tool_call>{"name": "get_time", "arguments": {oops'
    message = get_format("hermes-2-pro").bind(tools=TOOLS).parse(broken * calls)
    assert len(message.tool_calls) == calls
    assert counted < 5000 * calls
