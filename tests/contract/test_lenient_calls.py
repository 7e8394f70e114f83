"""``lenient_calls``: a whole answer of JSON calls is read in every format, in every cut, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest

import chatparsers
from chatparsers import Format
from chatparsers.testing import check_conservation, check_cuts, check_message
from chatparsers.testing.tiny import tiny_model

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
                "additionalProperties": False,
            },
        },
    }
]
OSLO: dict[str, Any] = {"name": "get_weather", "arguments": {"city": "Oslo"}}
ROME: dict[str, Any] = {"name": "get_weather", "arguments": {"city": "Rome", "days": 2}}
WRAPPERS = {
    "a fence": "```json\n…\n```",
    "a fence of no language": "```\n…\n```\n",
    "tags": "<tools>\n…\n</tools>",
    "nothing": "…",
    "line breaks": "\n…\n",
}
CALLS = {
    "one": (json.dumps(OSLO), 1),
    "one over lines": (json.dumps(OSLO, indent=2), 1),
    "a list": (json.dumps([OSLO, ROME]), 2),
    "two lines": (f"{json.dumps(OSLO)}\n{json.dumps(ROME)}", 2),
    "two with a comma": (f"{json.dumps(OSLO)}, {json.dumps(ROME)}", 2),
    "OpenAI's": (json.dumps({"type": "function", "function": OSLO}), 1),
    "parameters": (json.dumps({"name": "get_weather", "parameters": OSLO["arguments"]}), 1),
}
NO_CALLS = {
    "text after": "…\nThat is how one asks.",
    "text before": "Write this:\n…",
    "no closer": "```json\n…",
    "another tool": json.dumps({**OSLO, "name": "get_time"}),
    "a wrong type": json.dumps({"name": "get_weather", "arguments": {"city": 5}}),
    "a missing argument": json.dumps({"name": "get_weather", "arguments": {}}),
    "an unknown argument": json.dumps({"name": "get_weather", "arguments": {"city": "Oslo", "where": 1}}),
    "no arguments": json.dumps({"name": "get_weather"}),
    "data": '{"city": "Oslo"}',
    "a list of one call and data": json.dumps([OSLO, {"city": "Oslo"}]),
    "a call and data": f'{json.dumps(OSLO)}\n{{"city": "Oslo"}}',
    "a list and a call": f"{json.dumps([OSLO])}\n{json.dumps(ROME)}",
    "two fences": "```json\n…\n```\n```json\n…\n```",
}


def test_a_whole_answer_of_calls_is_read(format: Format) -> None:
    turn = format.bind(tools=TOOLS, lenient_calls=True)
    for named, wrapper in WRAPPERS.items():
        for kind, (text, count) in CALLS.items():
            answer = wrapper.replace("…", text)
            message = turn.parse(answer)
            where = f"{format.name}, {kind} in {named}: {message!r}"
            assert [call.parsed_arguments for call in message.tool_calls] == [
                OSLO["arguments"],
                ROME["arguments"],
            ][:count], where
            assert message.complete and not message.content.strip(), where
            assert {one.code for one in message.diagnostics} <= {"unopened-call"}, (
                where
            )  # by the format itself
            check_cuts(turn, answer, [list(answer)])
            check_conservation(message, turn)


UNSEEN = ("{}…", "\n{}\n…", "…{}\n", "{}{}…{}")
"""Where special tokens may be that the format does not name."""


def test_special_tokens_around_it_show_nothing(format: Format) -> None:
    """Qwen2.5-Coder writes ``<|im_start|>`` before a bare call, and llama-server's text has nothing of it."""
    tokenizer = tiny_model(format, template="").tokenizer
    asked: dict[str, Any] = {"tools": TOOLS, "tokenizer": tokenizer, "id_seed": ""}
    lenient, plain = (format.bind(**asked, lenient_calls=on) for on in (True, False))
    for around in (text.replace("{}", "<|tiny_pad|>") for text in UNSEEN):
        others = {} if around.count("<") == 1 else NO_CALLS
        for named, wrapper in {**WRAPPERS, **others}.items():
            answer = around.replace("…", wrapper.replace("…", json.dumps(OSLO)))
            ids = tokenizer.encode(answer, add_special_tokens=False).ids
            message, stream = lenient.parse(ids), lenient.stream()
            if named in WRAPPERS:
                where = f"{format.name}, {answer!r}: {message!r}"
                assert [call.parsed_arguments for call in message.tool_calls] == [OSLO["arguments"]], where
                told = {found.code for found in message.diagnostics} - {
                    "unopened-call"
                }  # some read such calls anyway
                assert message.complete and not message.content.strip() and not told, where
                check_message(message, lenient)
            else:
                assert message == plain.parse(ids), f"{format.name}, {answer!r}"
            for id in ids:
                stream.feed(id)
            stream.finish()
            assert stream.message == message, f"{format.name}, {answer!r}"


def test_nothing_else_is_read(format: Format) -> None:
    """What is no call with the option is what it is without."""
    lenient, plain = (format.bind(tools=TOOLS, lenient_calls=on, id_seed="") for on in (True, False))
    for kind, wrapper in NO_CALLS.items():
        answer = wrapper.replace("…", json.dumps(OSLO))
        assert lenient.parse(answer) == plain.parse(answer), f"{format.name}, {kind}"
        check_cuts(lenient, answer, [list(answer)])


def test_the_formats_own_calls_still_stream() -> None:
    turn = chatparsers.get_format("qwen3").bind(tools=TOOLS, lenient_calls=True)
    events = turn.stream().feed('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os')
    assert [type(event).__name__ for event in events] == ["CallStart", "CallArguments"]


@pytest.mark.parametrize("request_", [{"tool_choice": "none"}, {"response_format": {"type": "json_object"}}])
def test_not_where_no_call_is_wanted(request_: dict[str, Any]) -> None:
    turn = chatparsers.get_format("qwen3").bind(tools=TOOLS, lenient_calls=True, **request_)
    assert turn.parse(json.dumps(OSLO)).content == json.dumps(OSLO)
