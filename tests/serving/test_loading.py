"""Tools that load later, as clients send them: `loading.json` has their shapes, step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers.serving import OpenAIResponses, read_chat, read_messages, read_responses

CASES = json.loads((Path(__file__).parent / "loading.json").read_text(encoding="utf-8"))
READERS: dict[str, Any] = {"chat": read_chat, "responses": read_responses, "messages": read_messages}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_is_loaded_can_be_called_and_what_stood_before_stays(case: dict[str, Any]) -> None:
    chat = chatparsers.load(template="qwen3")
    field = "input" if case["api"] == "responses" else "messages"
    said: list[Any] = []
    before = ""
    for step in case["steps"]:
        said += step["add"]
        request = READERS[case["api"]]({"model": "m", "max_tokens": 9, **case["body"], field: said})
        turn = chat.prepare(**request.prepare)
        assert [*turn.tools.names()] == step["called"]
        assert turn.prompt.startswith(before.removesuffix("<|im_start|>assistant\n"))
        new = turn.prompt[len(before) - len("<|im_start|>assistant\n") :] if before else ""
        assert all(text in new for text in step.get("shown", ())), new
        assert step.get("warned", "") in "".join(turn.warnings) and bool(turn.warnings) == ("warned" in step)
        before = turn.prompt


def test_a_search_goes_out_as_its_own_item() -> None:
    request = read_responses({"input": "Bread?", **CASES[0]["body"]})
    stream = chatparsers.load(template="qwen3").prepare(**request.prepare).stream()
    text = '<tool_call>\n{"name": "tool_search", "arguments": {"query": "bread"}}\n</tool_call>'
    writer = OpenAIResponses("m", toolkit=request.toolkit)
    frames = writer.frames([*stream.feed(text[:60]), *stream.feed(text[60:]), *stream.finish("stop")])
    (item,) = writer.answer["output"]
    assert (item["type"], item["execution"], item["arguments"]) == (
        "tool_search_call",
        "client",
        {"query": "bread"},
    )
    assert [line[7:] for line in frames.splitlines() if line.startswith("event")] == [
        f"response.output_item.{name}" for name in ("added", "done")
    ]


def test_two_calls_under_one_id_both_stay() -> None:
    """But one that was cut off is replaced by the one that finishes it."""
    call = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
    for status, count in (("completed", 2), ("incomplete", 1)):
        found = read_responses(
            {"input": [{"role": "user", "content": "Hi"}, {**call, "status": status}, call]}
        )
        assert len(found.messages[-1]["tool_calls"]) == count
