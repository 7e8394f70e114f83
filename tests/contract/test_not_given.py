"""A call in a turn without tools is content, and a diagnostic names what was called: in any cut, by ids and after a
prompt. test_unread.py has the promise for every format."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import chatparsers
from chatparsers.watch import tools_not_given

pytestmark = pytest.mark.one_in(1, quick=64)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("qwen3", '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'),
        (
            "deepseek-r1",
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>f\n```json\n{}\n``",
        ),
    ],
    ids=["whole", "cut off"],
)
def test_a_call_is_named_and_the_message_is_as_it_was(name: str, call: str) -> None:
    turn = chatparsers.get_format(name).bind(prefix="<think>\n")
    message = turn.parse("Hm</think>\n\n" + call)
    (found,) = tools_not_given(turn, message)
    assert found.expected == "tools, of which one is 'f'" and message.text[found.position :].startswith(
        found.found
    )
    assert message.reasoning == "Hm" and message.content.endswith(call[-6:]) and not message.tool_calls


def test_ids_that_spell_a_marker_call_nothing(tokenizer: Callable[[str], Any]) -> None:
    qwen = tokenizer("qwen3")
    turn = chatparsers.get_format("qwen3").bind(tokenizer=qwen)
    text = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    ids = qwen.encode(text, add_special_tokens=False).ids
    assert len(tools_not_given(turn, turn.parse(ids), ids)) == 1
    spelt = [
        id
        for part in ("<tool", "_call>", text[11:-12], "</tool", "_call>")
        for id in qwen.encode(part, add_special_tokens=False).ids
    ]
    message = turn.parse(spelt)
    assert message.content == text and tools_not_given(turn, message, spelt) == []


def test_the_prompt_began_the_call() -> None:
    """Where a call's header begins in the prompt, it is the model's; where the prompt has its name, it is not."""
    text = "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"
    format = chatparsers.get_format("gpt-oss")
    for prefix, places in (("<|start|>assistant", [0]), (text[: text.index(" <|constrain|>")], [])):
        turn = format.bind(prefix=prefix)
        found = tools_not_given(turn, turn.parse(text.removeprefix(prefix)))
        assert [one.position for one in found] == places
