"""No call that the model broke goes out as a whole one, in any API, streamed or not; its text goes out as text."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from chatparsers import CallStart, Content, Format, get_format
from chatparsers.serving import AnthropicMessages, OpenAIChat, OpenAIResponses, WholeCalls, Writer
from chatparsers.testing import TOOLS, chunkings
from chatparsers.testing.wild import broken

WRITERS: list[Callable[[str], Writer[Any, Any]]] = [OpenAIChat, OpenAIResponses, AnthropicMessages]


def calls_of(answer: dict[str, Any]) -> list[tuple[str, Any]]:
    """The calls of an answer of any API; a chat's arguments as their text if they are no JSON."""
    if "choices" in answer:
        called = answer["choices"][0]["message"].get("tool_calls", [])
        return [(call["function"]["name"], call["function"]["arguments"]) for call in called]
    if "output" in answer:
        items = [item for item in answer["output"] if item["type"] == "function_call"]
        return [(item["name"], item["arguments"]) for item in items]
    blocks = [block for block in answer["content"] if block["type"] == "tool_use"]
    return [(block["name"], block["input"]) for block in blocks]


def text_of(answer: dict[str, Any]) -> str:
    if "choices" in answer:
        return answer["choices"][0]["message"]["content"] or ""
    if "output" in answer:
        return "".join(item["content"][0]["text"] for item in answer["output"] if item["type"] == "message")
    return "".join(block["text"] for block in answer["content"] if block["type"] == "text")


@pytest.mark.parametrize("early", [False, True], ids=["whole", "streamed"])
def test_a_broken_call_is_text(format: Format, early: bool, amount: Callable[..., int]) -> None:
    turn, number = format.bind(tools=TOOLS), amount(3, 20, 200)
    for index, text in enumerate(islice(broken(format, number), number)):
        (pieces,) = chunkings.random_cuts(text, 1, most=8, seed=index)
        for make in WRITERS:
            writer, stream = make("m"), turn.stream()
            calls = WholeCalls(stream.call_text, early=early and writer.early_calls, cut=writer.cut_calls)
            writer.start()
            for piece in pieces:
                for event in calls.take(stream.feed(piece)):
                    writer.event(event)
            for event in calls.take(stream.finish()):
                writer.event(event)
            writer.finish()
            message, answer = stream.message, writer.answer
            whole = [call for call in message.tool_calls if call.complete]
            said, out = text_of(answer), calls_of(answer)
            where = f"{format.name}, {text!r}: {answer}"
            for call in message.tool_calls:
                if not call.complete:
                    assert stream.call_text(call.index) in said or (early and writer.early_calls), where
            if isinstance(writer, AnthropicMessages):
                assert out == [(call.name, json.loads(call.arguments)) for call in whole], where
                assert answer["stop_reason"] == ("tool_use" if whole else "end_turn"), where
            elif not (early and writer.early_calls):
                assert out == [(call.name, call.arguments) for call in whole], where
            else:
                assert len(out) >= len(whole), where
                made = [(call.name, call.arguments) for call in whole]
                for name, arguments in out:
                    begun = [call for call in message.tool_calls if call.arguments.startswith(arguments)]
                    assert any(call.name == name for call in begun), where
                    assert (name, arguments) in made or not is_json(arguments), where


def is_json(text: str) -> bool:
    """Whether a client would read arguments, or take them for none."""
    try:
        json.loads(text or "{}")
    except ValueError:
        return False
    return True


def test_a_call_that_breaks_before_its_arguments_never_goes_out() -> None:
    turn = get_format("qwen3").bind(tools=TOOLS)
    stream = turn.stream()
    calls = WholeCalls(stream.call_text, early=True)
    text = '<tool_call>\n{"name": "get_weather", "arguments": oops}\n</tool_call>'
    events = [event for char in text for event in calls.take(stream.feed(char))]
    events += calls.take(stream.finish())
    assert not any(isinstance(event, CallStart) for event in events)
    assert "".join(event.text for event in events if isinstance(event, Content)).startswith('{"name"')


def test_a_call_that_is_cut_off_goes_out_where_the_api_can_say_so() -> None:
    turn = get_format("qwen3").bind(tools=TOOLS)
    text = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Os'
    for make in WRITERS:
        writer, stream = make("m"), turn.stream()
        calls = WholeCalls(stream.call_text, cut=writer.cut_calls)
        for event in [*calls.take(stream.feed(text)), *calls.take(stream.finish("length"), length=True)]:
            writer.event(event)
        writer.finish("length")
        if isinstance(writer, AnthropicMessages):
            assert not calls_of(writer.answer) and "Os" in text_of(writer.answer)
        else:
            assert calls_of(writer.answer) == [("get_weather", '{"city": "Os')]


def test_calls_are_counted_as_they_go_out() -> None:
    """Clients join the pieces of a stream by their index, and none knows a call before the first."""
    text = '<tool_call>\n{"name": "f", "arguments": [oops]}\n</tool_call>\n'
    text += '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    stream = get_format("qwen3").bind(tools=[{"name": "f", "parameters": {}}]).stream()
    calls, writer = WholeCalls(stream.call_text, early=True), OpenAIChat("m")
    sent = [
        chunk for piece in text for event in calls.take(stream.feed(piece)) for chunk in writer.event(event)
    ]
    sent += [chunk for event in calls.take(stream.finish()) for chunk in writer.event(event)]
    deltas = [chunk["choices"][0]["delta"].get("tool_calls", []) for chunk in sent]
    assert {call["index"] for found in deltas for call in found} == {0}
