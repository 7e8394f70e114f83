"""A thought is found once, where it is: a row with its thought in the text is the row with a field for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from played import chat_of

import chatparsers
from chatparsers import Chat
from chatparsers.chat.inline import USUAL, marks_of, with_thought
from chatparsers.errors import TemplateError
from chatparsers.templates.probe.edges import edges_of
from chatparsers.writer.around import written_around

FOLDER = Path(__file__).parents[1] / "templates_own"
OWN = sorted(FOLDER.glob("*.jinja"))
ASK, MORE = {"role": "user", "content": "Is it cold?"}, {"role": "user", "content": "And in Rome?"}
ROW = [
    ASK,
    {"role": "assistant", "content": "Needlecold.", "reasoning_content": "Needleoslo."},
    MORE,
    {"role": "assistant", "content": "Needlewarm.", "reasoning_content": "Needlerome."},
]
PLAIN = [{key: value for key, value in message.items() if key != "reasoning_content"} for message in ROW]

pytestmark = pytest.mark.filterwarnings(
    "ignore::UserWarning"
)  # of templates without a switch, of no id that counts


def own(chat: Chat, thought: str, words: str) -> str:
    before, between, after = written_around(chat.format)
    return (
        f"{before}{thought}{between}{words}{after}"
        if before and between
        else f"<think>{thought}</think>{words}"
    )


INLINE: dict[str, Callable[[Chat, str, str], str]] = {
    "lines": lambda chat, thought, words: f"<think>\n{thought}\n</think>\n\n{words}",
    "one line": lambda chat, thought, words: f"<think>{thought}</think>{words}",
    "a closer alone": lambda chat, thought, words: f"{thought}\n</think>\n\n{words}",
    "the format's own": own,
}


def inline(chat: Chat, how: str) -> list[dict[str, Any]]:
    return [
        {"role": "assistant", "content": INLINE[how](chat, m["reasoning_content"], m["content"])}
        if "reasoning_content" in m
        else m
        for m in ROW
    ]


@pytest.fixture
def every(real_templates: list[Path], amount: Callable[[int, int, int], int]) -> list[Chat]:
    found = [*Random(3).sample(OWN, amount(3, 8, len(OWN)))]
    found += Random(4).sample(real_templates, amount(3, 8, len(real_templates)))
    return [chat_of(path) for path in found]


@pytest.fixture
def chats(every: list[Chat]) -> list[Chat]:
    """Chats of templates whose models think."""
    return [chat for chat in every if chat._reasons(chat.format, chat.template())]


def counted(chat: Chat, samples: Any) -> dict[int, str]:
    """What counts of each answer."""
    found: dict[int, str] = {}
    for sample in samples if isinstance(samples, list) else [samples]:
        marks = zip(sample.message_indices, sample.loss_mask, sample.ids, strict=True)
        for (index, counts), run in groupby(marks, lambda mark: mark[:2]):
            if counts:
                ids = [id for *_, id in run]
                found[index] = found.get(index, "") + chat.tokenizer.decode(ids, skip_special_tokens=False)
    return found


@pytest.mark.parametrize(
    "options", [{}, {"as_sampled": True}, {"reasoning": False}, {"thinking": False}], ids=str
)
@pytest.mark.parametrize("how", INLINE)
def test_a_row_is_the_split_row(chats: list[Chat], how: str, options: Mapping[str, Any]) -> None:
    for chat in chats:
        wanted, found = (chat.encode(row, id_seed="", **options) for row in (ROW, inline(chat, how)))
        pairs = [(wanted, found)] if not isinstance(wanted, list) else zip(wanted, found, strict=True)
        for one, other in pairs:
            same = (
                one.ids == other.ids and one.loss_mask == other.loss_mask and one.left_out == other.left_out
            )
            assert same, (chat.name, one.text, other.text)


def test_prompts_and_conversations_too(chats: list[Chat]) -> None:
    for chat in chats:
        for how in INLINE:
            wanted, given = ([*row, MORE] for row in (ROW, inline(chat, how)))
            assert chat.prepare(given).prompt == chat.prepare(wanted).prompt, (chat.name, how)
            grown = chat.conversation()
            for message in given:
                grown.append(message)
            assert grown.text == chat.prepare(wanted).prompt, (chat.name, how)


def test_what_does_not_count(chats: list[Chat]) -> None:
    """Neither what the template writes for no thought, nor a thought's marks if it does not count."""
    for chat in chats:
        ends = [one.end for one in marks_of(chat.format)]
        for row, options in ((PLAIN, {}), (ROW, {"reasoning": False})):
            for as_sampled in (False, True):
                made = chat.encode(row, id_seed="", as_sampled=as_sampled, **options)
                for index, text in counted(chat, made).items():
                    words = str(ROW[index]["content"])
                    assert words in text and text.count("Needle") == 1, (chat.name, options, text)
                    assert not any(one in text for one in ends), (chat.name, options, text)


def test_a_rollout_has_the_empty_thought_of_the_template(chats: list[Chat]) -> None:
    """What the template writes for an answer without a thought is in the conversation and in its rollout."""
    for chat in chats:
        end = marks_of(chat.format)[0].end
        sample = chat.encode(PLAIN, id_seed="")
        samples = chat.encode(PLAIN, id_seed="", as_sampled=True)
        whole, turns = (text.rpartition(str(MORE["content"]))[2] for text in (sample.text, samples[-1].text))
        assert whole.count(end) <= turns.count(end) <= 1, (chat.name, whole, turns)


def test_thoughts_that_the_prompt_does_not_ask_for_are_named() -> None:
    chat = chat_of(FOLDER / "qwen3.jinja")
    sample = chat.encode(ROW, thinking=False)
    assert sample.left_out == {1: "thinking-off", 3: "thinking-off"}
    assert counted(chat, sample) == {1: "Needlecold.<|im_end|>", 3: "Needlewarm.<|im_end|>"}
    (turns,) = chat.encode(ROW, thinking=False, as_sampled=True)
    assert turns.left_out == sample.left_out and counted(chat, turns) == counted(chat, sample)
    assert "Needleoslo." not in sample.text + turns.text


def test_a_text_read_back_has_no_marks_of_no_thought(chats: list[Chat]) -> None:
    """What `parse_prompt` says the model wrote leaves out what `encode` does not count."""
    for chat in chats:
        ends = [one.end for one in marks_of(chat.format)]
        text = chat.encode(PLAIN, rewritten=True, final_stop=False).text
        try:
            found = [text[one.start : one.end] for one in chat.parse_prompt(text) if one.written]
        except TemplateError:  # it marks no roles
            continue
        assert not any(end in words for end in ends for words in found), (chat.name, found)


def named(made: Any) -> dict[int, str]:
    samples = made if isinstance(made, list) else [made]
    return {index: why for sample in samples for index, why in sample.left_out.items()}


@pytest.mark.parametrize("as_sampled", [False, True])
def test_the_default_may_be_without_thoughts(every: list[Chat], as_sampled: bool) -> None:
    """Where a prompt closes an empty thought, no thought counts after it, and that is said."""
    off = [chat_of(FOLDER / f"{name}.jinja") for name in ("deepseek-v3-1", "gemma-4")]
    for chat in [*off, *every]:
        end = edges_of(chat.format).end_of(chat.prepare([ASK]).prefix)
        assert chat not in off or end == "closed"
        made = chat.encode(ROW, id_seed="", as_sampled=as_sampled)
        if end == "closed":
            texts = [sample.text for sample in made] if isinstance(made, list) else [made.text]
            assert named(made) == {1: "thinking-off", 3: "thinking-off"}, chat.name
            assert not any("Needleoslo." in text for text in texts), chat.name
            assert [*counted(chat, made)] == [1, 3], chat.name
        else:
            assert "thinking-off" not in named(made).values(), chat.name


@pytest.mark.parametrize("how", ["lines", "one line", "a closer alone"])
def test_no_thought_counts_as_text_in_silence(every: list[Chat], how: str) -> None:
    """An answer counts as if its thought were in a field of its own, or the sample names it."""
    for chat in [chat_of(FOLDER / "hermes-2-pro.jinja"), *every]:
        for as_sampled in (False, True):
            split, inlined = (
                chat.encode(row, id_seed="", as_sampled=as_sampled) for row in (ROW, inline(chat, how))
            )
            wanted, found = counted(chat, split), counted(chat, inlined)
            for index in (1, 3):
                same = wanted.get(index) == found.get(index)
                assert same is (named(inlined).get(index) != "thought-as-text"), (chat.name, wanted, found)
                assert same or str(ROW[index]["reasoning_content"]) in found[index], (chat.name, found)


def test_a_weight_of_nothing_does_not_count() -> None:
    chat = chat_of(FOLDER / "qwen3.jinja")
    row = [ASK, {**PLAIN[1], "weight": 0}, MORE, {**PLAIN[3], "weight": 1}]
    for options in ({}, {"as_sampled": True}, {"train_on": lambda message, index: True}):
        assert [*counted(chat, chat.encode(row, **options))] == [3]


THINK = chatparsers.get_format("qwen3")
SPLIT: dict[str, tuple[Any, Any, str]] = {
    "a pair": ("<think>T</think>A", "A", "T"),
    "white space": (" \n<think>\nT\n</think>\n\nA\n", "A\n", "T"),
    "an empty pair": ("<think>\n\n</think>\n\nA", "A", ""),
    "a closer": ("T</think>A", "A", "T"),
    "no words": ("<think>T</think>", "", "T"),
    "not closed": ("<think>T", "<think>T", ""),
    "quoted": ("Write `</think>` there.", "Write `</think>` there.", ""),
    "mentioned": ("The tag </think> ends it.", "The tag </think> ends it.", ""),
    "in brackets": ("It ends (</think>).", "It ends (</think>).", ""),
    "in a fence": ("```\nx</think>\n```", "```\nx</think>\n```", ""),
    "twice": ("a</think>b</think>c", "a</think>b</think>c", ""),
    "later": ("A <think>T</think>", "A <think>T</think>", ""),
    "parts": ([{"type": "text", "text": "<think>T</think>A"}], [{"type": "text", "text": "A"}], "T"),
}


@pytest.mark.parametrize("case", SPLIT)
def test_what_is_a_thought(case: str) -> None:
    content, rest, thought = SPLIT[case]
    message = {"role": "assistant", "content": content}
    found = with_thought(message, marks_of(THINK))
    assert found["content"] == rest and found.get("reasoning_content", "") == thought
    assert (found is message) == (rest == content)
    assert with_thought(found, USUAL) is found
    other = {**message, "reasoning_content": "Another."}
    assert with_thought(other, USUAL).get("reasoning_content") == "Another."


@pytest.mark.filterwarnings("error")
def test_a_format_without_thoughts_has_none() -> None:
    """There a thought is text, as the row says, and a warning tells it."""
    assert marks_of(chatparsers.get_format("hermes-2-pro")) == ()
    chat = chat_of(FOLDER / "hermes-2-pro.jinja")
    for options in ({}, {"as_sampled": True}):
        chat._warned.clear()
        with pytest.warns(UserWarning, match="has a thought.*counts as text"):
            chat.encode(inline(chat, "lines"), **options)
        chat.encode(PLAIN, **options)
    sample = chat.encode(inline(chat, "lines"))
    assert named(sample) == {1: "thought-as-text", 3: "thought-as-text"}
    assert counted(chat, sample)[1] == "<think>\nNeedleoslo.\n</think>\n\nNeedlecold.<|im_end|>"
