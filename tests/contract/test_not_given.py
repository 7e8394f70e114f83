"""A call in a turn without tools is content, and a diagnostic names what was called: in any cut, by ids and after a
prompt. test_unread.py has the promise for every format."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

import chatparsers
from chatparsers import Diagnostic, Message

pytestmark = pytest.mark.one_in(1, quick=64)


def noted(message: Message) -> list[Diagnostic]:
    return [one for one in message.diagnostics if one.code == "tools-not-given"]


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
def test_for_all_cuts_and_pickles(name: str, call: str) -> None:
    turn = chatparsers.get_format(name).bind(prefix="<think>\n")
    text = "Hm</think>\n\n" + call
    expected = turn.parse(text)
    assert len(noted(expected)) == 1 and expected.reasoning == "Hm"
    for cut in range(0, len(text), 3):
        stream = turn.stream()
        stream.feed(text[:cut])
        other = pickle.loads(pickle.dumps(stream)) if cut % 2 else stream.fork()
        other.feed(text[cut:])
        other.finish()
        assert other.message == expected


def test_ids_that_spell_a_marker_call_nothing(tokenizer: Callable[[str], Any]) -> None:
    qwen = tokenizer("qwen3")
    turn = chatparsers.get_format("qwen3").bind(tokenizer=qwen)
    text = '<tool_call>\n{"name": "f", "arguments": {}}\n</tool_call>'
    ids = qwen.encode(text, add_special_tokens=False).ids
    assert len(noted(turn.parse(ids))) == 1
    spelt = [
        id
        for part in ("<tool", "_call>", text[11:-12], "</tool", "_call>")
        for id in qwen.encode(part, add_special_tokens=False).ids
    ]
    message = turn.parse(spelt)
    assert message.content == text and noted(message) == []


def test_the_prompt_began_the_call() -> None:
    """Where a call's header begins in the prompt, it is the model's; where the prompt has its name, it is not."""
    text = "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"
    format = chatparsers.get_format("gpt-oss")
    for prefix, places in (("<|start|>assistant", [0]), (text[: text.index(" <|constrain|>")], [])):
        found = noted(format.bind(prefix=prefix).parse(text.removeprefix(prefix)))
        assert [one.position for one in found] == places
