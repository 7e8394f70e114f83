"""docs/tables/clients.md: the page is that of its data, and the gateway sends what its last column says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import _clients as TABLE
import pytest

import chatparsers
from chatparsers.serving import AnthropicMessages, OpenAIChat, Usage, Writer

TABLES = Path(__file__).parents[2] / "docs" / "tables"

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in ("weather", "ping")
]
WEATHER = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
PING = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
ANSWERS = {
    "text": "Hello",
    "thought": "<think>\nHm.\n</think>\n\nHello",
    "calls": f"<think>\nHm.\n</think>\n\nI look.\n{WEATHER}\n{PING}",
    "cut": f"I look.\n{WEATHER[:-18]}",
    "nothing": "",
}


def frames(writer: Writer[Any, Any], text: str, reason: Any) -> list[dict[str, Any]]:
    """What the gateway's writer sends of an answer, read three characters at a time."""
    stream = chatparsers.get_format("qwen3").bind(tools=TOOLS).stream()
    sent: list[dict[str, Any]] = list(writer.start(7))
    for at in range(0, len(text), 3):
        for event in stream.feed(text[at : at + 3]):
            sent += writer.event(event)
    for event in stream.finish(reason):
        sent += writer.event(event)
    return [*sent, *writer.finish(reason, Usage.of(stream.message, 7, completion=9))]


def test_the_page_is_written_from_the_data() -> None:
    assert TABLE.main(["--check"]) == 0, "run python docs/tables/_clients.py"


@pytest.mark.parametrize("name", ANSWERS)
def test_chat_chunks_are_of_the_shapes_that_are_sent(name: str) -> None:
    reason = "length" if name == "cut" else "stop"
    chunks = frames(OpenAIChat("m", include_usage=True), ANSWERS[name], reason)
    *shown, usage = chunks
    assert usage["choices"] == [] and usage["usage"]["total_tokens"]
    assert all(chunk["choices"] and not chunk.get("usage") for chunk in shown)
    deltas = [chunk["choices"][0]["delta"] for chunk in shown]
    assert ["role" in delta for delta in deltas] == [True] + [False] * (len(deltas) - 1)
    ends = [chunk["choices"][0]["finish_reason"] for chunk in shown]
    assert ends[:-1] == [None] * (len(ends) - 1) and deltas[-1] == {}
    assert ends[-1] == {"cut": "length", "calls": "tool_calls"}.get(name, "stop")
    assert all(delta.get("reasoning") == delta.get("reasoning_content") for delta in deltas)
    assert not any("refusal" in delta for delta in deltas)
    indexes: list[int] = []
    for delta in deltas:
        for call in delta.get("tool_calls", []):
            assert len(delta["tool_calls"]) == 1
            if (
                not indexes or call["index"] != indexes[-1]
            ):  # a call begins: its id, its name and an empty text
                assert call["id"] and call["function"]["name"] and call["function"]["arguments"] == ""
            else:
                assert set(call) == {"index", "function"} and set(call["function"]) == {"arguments"}
            indexes.append(call["index"])
    assert indexes == sorted(indexes) and set(indexes) == set(range(len(set(indexes))))
    if name == "calls":
        parts = [call for delta in deltas for call in delta.get("tool_calls", []) if call["index"] == 1]
        assert "".join(call["function"]["arguments"] for call in parts) == "{}"


@pytest.mark.parametrize("name", ANSWERS)
def test_message_events_are_of_the_shapes_that_are_sent(name: str) -> None:
    events = frames(AnthropicMessages("m"), ANSWERS[name], "length" if name == "cut" else "stop")
    begun = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    assert all(block["input"] == {} for block in begun if block["type"] == "tool_use")
    for index, block in enumerate(begun):
        deltas = [
            event["delta"]
            for event in events
            if event["type"] == "content_block_delta" and event["index"] == index
        ]
        if block["type"] == "tool_use":
            text = "".join(delta["partial_json"] for delta in deltas)
            assert text and (name == "cut" or isinstance(json.loads(text), dict))
        if block["type"] == "thinking":
            assert {delta["type"] for delta in deltas[:-1]} == {"thinking_delta"}
            assert deltas[-1]["type"] == "signature_delta" and deltas[-1]["signature"]
    order = [event["index"] for event in events if "index" in event]
    assert order == sorted(order), "blocks are not interleaved"


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"calls": [["f", '{"a": 1}']]}, ""),
        ({"calls": []}, "calls: none"),
        ({"calls": [["f", '{"a": 2}']]}, 'calls: `f {"a": 2}`'),
        ({"calls": [["f", '{"a":1}']], "finish": "stop"}, "ends with stop"),
        ({"raises": "IndexError: list index out of range"}, "raises IndexError"),
    ],
)
def test_what_a_client_held_is_judged(held: dict[str, Any], said: str) -> None:
    want = {"content": "", "reasoning": "", "calls": [["f", '{"a": 1}']], "finish": "tool_calls"}
    whole = {"content": "", "reasoning": "", "finish": "tool-calls", **held}
    assert TABLE.judged(want, whole) == said
