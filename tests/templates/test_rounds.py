"""An agent's texts after a result cost a round neither its thoughts nor the prompt that the engine holds."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from chatparsers.chat.chat import Chat
from chatparsers.chat.load import load
from chatparsers.templates.probe.stand_ins import NAME, TOOLS

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # some templates have no switch for thoughts

REMINDER = {"role": "user", "content": "needlereminder", "beside_result": True}
COUNTDOWN = {"role": "system", "content": "needlecountdown"}
LEFT_OUT = {
    "role": "user",
    "beside_result": True,
    "content": [{"type": "text", "text": text} for text in ("[image left out]", "needleplace")],
}
ADDED: list[list[dict[str, Any]]] = [
    [REMINDER],
    [REMINDER, REMINDER],
    [COUNTDOWN],
    [{**COUNTDOWN, "role": "developer"}],
    [REMINDER, COUNTDOWN],
    [COUNTDOWN, REMINDER],
    [LEFT_OUT],
    [{**REMINDER, "name": "needlename"}],
]
START: list[dict[str, Any]] = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi"},
    {"role": "user", "content": "Weather?"},
]


def step(number: int) -> list[dict[str, Any]]:
    function = {"name": NAME, "arguments": {"thing": "x"}}
    call = {"id": f"call0000{number}", "type": "function", "function": function}
    thought = f"needlethought{number}"
    return [
        {"role": "assistant", "content": "", "reasoning_content": thought, "tool_calls": [call]},
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "name": function["name"],
            "content": f"needleresult{number}",
        },
    ]


class Kept(NamedTuple):
    """Of a round of two calls: whether its first prompt shows the first thought, its second prompt both thoughts, and
    whether the first is a prefix of the second."""

    first: bool
    second: bool
    prefix: bool


def kept(chat: Chat, first: list[dict[str, Any]], second: list[dict[str, Any]], **options: Any) -> Kept:
    one = [*START, *step(1), *first]
    two = [*one, *step(2), *second]
    before, after = (chat.prepare(messages, tools=TOOLS, **options).prompt for messages in (one, two))
    for needle in ("reminder", "countdown", "place"):
        assert after.count(f"needle{needle}") == str([first, second]).count(f"needle{needle}")
    return Kept(
        "needlethought1" in before,
        "needlethought1" in after and "needlethought2" in after,
        after.startswith(before),
    )


@pytest.mark.parametrize("thinking", [None, True], ids=["default", "thinking"])
def test_reminders_keep_the_round(any_template: Path, thinking: bool | None) -> None:
    chat = load(any_template)
    plain = kept(chat, [], [], thinking=thinking)
    if not plain.first:
        pytest.skip("the template shows no running thought")
    for added, (first, second) in product(ADDED, [(True, False), (False, True), (True, True)]):
        found = kept(chat, added * first, added * second, thinking=thinking)
        lost = [part for part, was, stays in zip(Kept._fields, plain, found, strict=True) if was > stays]
        assert not lost, f"{added} after {'each' if first and second else 'one'} result: {lost}"
