"""transformers' own parser reads the same texts by the same response templates, and says the same."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest

from chatparsers import get_format, list_formats
from chatparsers.errors import ChatParsersError
from chatparsers.interop import read_response_template, write_response_template

from .test_read import ROWS, TOOLS

NAMES = [info.name for info in list_formats() if info.origin == "chatparsers"]
CALL = ("get_weather", {"city": "Oslo & 'Rome'", "days": 3})
MESSAGES: list[tuple[str, str, list[Any]]] = [
    ("", "It is raining.\n\n*Very* much: 1 < 2.", []),
    ("Hm.\n\nWell.", "It is raining.", []),
    ("", "", [CALL]),
    ("", "", [("get_time", {})]),
    ("", "", [CALL, ("get_time", {}), ("get_weather", {"city": "Paris"})]),
    ("", "I look.", [CALL]),
    ("Hm.", "", [CALL]),
]


@pytest.fixture(scope="module")
def parse_response() -> Any:
    try:
        return importlib.import_module("transformers.utils.chat_parsing").parse_response
    except ImportError:
        pytest.skip("transformers (5.23 or later) is not installed")


def theirs(message: dict[str, Any]) -> tuple[str, str, list[Any]]:
    functions = [call["function"] for call in message.get("tool_calls", ())]
    calls = [(function["name"], function["arguments"]) for function in functions]
    reasoning = message.get("reasoning_content", message.get("thinking", ""))
    return reasoning.strip(), message.get("content", "").strip(), calls


def ours(spec: dict[str, Any], text: str, stops: tuple[str, ...] = ()) -> tuple[str, str, list[Any]]:
    message = read_response_template(spec, stops=stops).bind(tools=TOOLS).parse(text)
    assert message.complete
    calls = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
    return message.reasoning.strip(), message.content.strip(), calls


@pytest.mark.parametrize(
    "row", [row for row in ROWS if "Use <tool_call>" not in row[1]], ids=lambda row: row[1][:30]
)
def test_what_is_read_is_what_they_read(row: Any, parse_response: Any) -> None:
    spec, text, *_ = row
    assert theirs(parse_response(text, spec, prefix="", tools=TOOLS)) == ours(spec, text)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_written_is_what_they_read(name: str, parse_response: Any) -> None:
    """They read a format's own messages by the template that is written from it."""
    format = get_format(name)
    written = write_response_template(format, "<|assistant|>")
    fields = written.spec["fields"]
    for reasoning, content, calls in MESSAGES:
        if (reasoning and "reasoning_content" not in fields) or (calls and "tool_calls" not in fields):
            continue
        message = {
            "role": "assistant",
            "content": content,
            **({"reasoning_content": reasoning} if reasoning else {}),
            "tool_calls": [
                {
                    "id": f"abcdefg{n:02d}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(args)},
                }
                for n, (name, args) in enumerate(calls)
            ],
        }
        try:
            text = format.render(message, TOOLS) + "".join(format.stops[:1])
        except ChatParsersError:
            continue
        found = theirs(parse_response(text, written.spec, prefix="", tools=TOOLS))
        assert found == (reasoning, content, calls)
        assert ours(written.spec, text, format.stops) == found
