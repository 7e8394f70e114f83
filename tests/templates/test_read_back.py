"""A rendered conversation is read back into the messages that it was rendered from."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from conversations import SHAPES, Shape, load_chat

import chatparsers
from chatparsers import Chat, TemplateError

# The turns of these templates cannot be distinguished: classifiers, a base model's prompt, and the tool templates of
# Command R, which write instructions after the last user message. Hunyuan A13B marks the end of a user's message alone.
UNREADABLE = {
    "granite3-guardian_2b", "shieldgemma_27b", "llama-guard3_1b", "CohereForAI-c4ai-command-r-plus-tool_use",
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use", "hunyuan-a13b",
}  # fmt: skip
READ = ("turns", "reasoning")
Said = tuple[str, str, tuple[str, ...]]


def said(messages: list[dict[str, Any]]) -> list[Said]:
    """What users and the assistant say: role, text, the calls' names."""
    return [
        (m["role"], m.get("content") or "", tuple(c["function"]["name"] for c in m.get("tool_calls") or ()))
        for m in messages
        if m["role"] in ("user", "assistant")
    ]


def agree(chat: Chat, shape: Shape) -> bool:
    """Whether the text is read back as what was rendered; system texts may have been put before a user's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        prompt = chat.prepare(list(shape.messages), tools=list(shape.tools) or None).prompt
    found = chat.parse_prompt(prompt)
    assert all(0 <= item.start <= item.end <= len(prompt) for item in found)
    have, wanted = said([item.message for item in found]), said(list(shape.messages))
    if have[:1] == [("user", shape.messages[0]["content"], ())] != wanted[:1]:
        have = have[1:]  # a template that writes the system text as a user's message
    return len(have) == len(wanted) and all(
        mine[0] == theirs[0] and mine[1].endswith(theirs[1]) and mine[2] == theirs[2]
        for mine, theirs in zip(have, wanted, strict=True)
    )


# Apertus' template writes results into the answer, without a header. No format explains the generic one.
# A fault of ours: of GigaChat 3 and 3.1 the end of a header is read as the answer's.
OTHER_MARKS = {"Apertus-8B-Instruct", "gigachat-3", "gigachat-3-1"}


def same_marks(chat: Chat, shape: Shape) -> bool:
    """Whether the spans of the answers are those that `encode` counts; a text does not say how the switch was set."""
    thinking = True if chat.template().probe().thinking_switches else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        sample = chat.encode(
            list(shape.messages),
            tools=shape.tools or None,
            thinking=thinking,
            rewritten=True,
            final_stop=False,
        )
    found = chat.parse_prompt(sample.text, thinking=thinking)
    marked = {place for item in found if item.written for place in range(item.start, item.end)}
    counted = {place for place, mask in enumerate(sample.loss_mask) if mask}
    beside = "".join(sample.text[place] for place in sorted(marked - counted))
    return counted <= marked and not beside.strip()


def test_round_trip(every_template: Path | str) -> None:
    chat, name = load_chat(every_template), Path(every_template).stem
    try:
        wrong = [shape for shape in READ if not agree(chat, SHAPES[shape])]
    except TemplateError:
        wrong = list(READ)
    assert bool(wrong) is (name in UNREADABLE), wrong
    if not wrong and isinstance(every_template, Path):
        other = [shape for shape in (*READ, "call, result, answer") if not same_marks(chat, SHAPES[shape])]
        assert bool(other) is (name in OTHER_MARKS), other


def test_calls_and_results_come_back(own_folder: Path) -> None:
    chat = chatparsers.load(own_folder / "hermes-2-pro.jinja")
    shape = SHAPES["call, result, answer"]
    found = chat.parse_prompt(chat.prepare(list(shape.messages), tools=list(shape.tools)).prompt)
    messages = [item.message for item in found]
    assert [m["role"] for m in messages] == [
        "system",
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    call = messages[3]["tool_calls"][0]
    assert call["function"] == {"name": "zqweather", "arguments": '{"zqcity": "zqoslo", "zqday": "zqmonday"}'}
    assert messages[4] == {
        "role": "tool", "content": "It is zqcold there.", "tool_call_id": call["id"], "name": "zqweather",
    }  # fmt: skip


def test_text_without_marks_is_refused() -> None:
    with pytest.raises(TemplateError, match="no message can be found in its text"):
        chatparsers.load("{% for m in messages %}{{ m.content }}{% endfor %}").parse_prompt("HiHo")


ROUNDS = [
    {"role": "user", "content": "Zqone?"},
    {"role": "assistant", "content": "Zqtwo."},
    {"role": "system", "content": "Zqthree."},
    {"role": "user", "content": "Zqfour?"},
    {"role": "assistant", "content": "Zqfive."},
]
LATE = ["glm-4-5", "hermes-2-pro", "kimi-k2", "llama-3-x", "qwen3", "smollm3"]


@pytest.mark.parametrize("name", LATE)
def test_a_late_system_message_is_one(own_folder: Path, name: str) -> None:
    chat = load_chat(own_folder / f"{name}.jinja")
    found = [item.message for item in chat.parse_prompt(chat.encode(ROUNDS).text)]
    assert [(m["role"], m["content"]) for m in found[-5:]] == [(m["role"], m["content"]) for m in ROUNDS]


def test_an_answer_that_kept_its_own_stop_ends_there(own_folder: Path) -> None:
    """gpt-oss' template closes the answers of a history with another marker than the model's."""
    chat = load_chat(own_folder / "gpt-oss.jinja")
    text = chat.encode([*ROUNDS[:2], *ROUNDS[3:]]).text
    kept = text.replace("Zqtwo.<|end|>", "Zqtwo.<|return|>")
    assert kept != text
    for one in (text, kept):
        found = chat.parse_prompt(one)
        assert [item.message["content"] for item in found[-4:]] == ["Zqone?", "Zqtwo.", "Zqfour?", "Zqfive."]


def test_a_text_before_its_call_is_one_answer(own_folder: Path) -> None:
    """gpt-oss writes a header before the text, and another before the call."""
    chat, shape = load_chat(own_folder / "gpt-oss.jinja"), SHAPES["text beside call"]
    found = chat.parse_prompt(chat.encode(list(shape.messages), tools=shape.tools).text)
    said = [item.message for item in found if item.written]
    assert [(m["content"], len(m.get("tool_calls") or ())) for m in said] == [
        ("Looking zqup.", 1),
        ("Answer zqone.", 0),
    ]


def test_a_text_may_be_cut_anywhere(every_template: Path | str) -> None:
    """Also in a call that a polyfill wrote, before a header, and before anything."""
    chat, shape = load_chat(every_template), SHAPES["call, result, answer"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            text = chat.encode(list(shape.messages), tools=shape.tools, rewritten=True).text
            start = text.index("zqask")
            for end in (0, *range(start, len(text), 23)):
                found = chat.parse_prompt(text[:end])
                assert all(0 <= item.start <= item.end <= end for item in found)
        except TemplateError:
            assert Path(every_template).stem in UNREADABLE
