"""Answers that are known as messages, spoken into rollouts; and rollouts of a changed past."""

from __future__ import annotations

import gc
import sys
import warnings
import weakref
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from dialogues import TOOLS, as_read, conversation, request_of
from making import bytewise
from played import chat_of

import chatparsers
from chatparsers.errors import ChatParsersError
from chatparsers.tokens.vocabulary import Vocabulary

OWN = sorted((Path(__file__).parents[1] / "templates_own").glob("*.jinja"))


def counted_texts(chat: Any, sample: Any, *, whole: bool = False) -> dict[int, str]:
    """What counts of each answer, by the index of its message. ``whole``: all of these answers."""
    marks = zip(sample.message_indices, sample.loss_mask, sample.ids, strict=True)
    found: dict[int, str] = {}
    for index, run in groupby(marks, lambda mark: mark[0]):
        ids = [(id, counts) for _, counts, id in run]
        if any(counts for _, counts in ids):
            shown = [id for id, counts in ids if counts or whole]
            found[index] = chat.tokenizer.decode(shown, skip_special_tokens=False)
    return found


def check_as_sampled(path: Path, number: int, count: Counter[str]) -> None:
    """Each answer counts once, after the prompt that asks for it, as a text that is read as that answer."""
    chat = chat_of(path)
    for seed in range(number):
        random = Random(seed)
        thoughts = chat.format.features.reasoning and seed % 2 == 0
        messages = conversation(random, tools=seed % 4 != 0, several=seed % 3 == 0, thoughts=thoughts)
        request = {**request_of(chat, True if thoughts else None), **({"tools": TOOLS} if seed % 4 else {})}
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                samples = chat.encode(messages, as_sampled=True, **request)
                plain = chat.encode(messages, **request)
        except ChatParsersError:
            count["refused"] += 1
            continue
        if not samples:  # of which a warning tells
            count["unwritten"] += 1
            continue
        answers = {index for index, message in enumerate(messages) if message["role"] == "assistant"}
        left_out = {index: why for sample in samples for index, why in sample.left_out.items()}
        texts = Counter[int]()
        for sample in samples:
            for index, text in counted_texts(
                chat, sample, whole=True
            ).items():  # an empty thought does not count
                texts[index] += 1
                read = chat.prepare(messages[:index], **request).parse(text)
                assert as_read(read.to_openai()) == as_read(messages[index]), (path.stem, seed, index)
        assert set(left_out.values()) <= {"unwritten"}, (path.stem, seed, left_out)
        assert texts == Counter(answers - left_out.keys()), (path.stem, seed, left_out)
        count["answers"] += len(answers)
        count["as sampled"] += len(texts)
        count["plain"] += len(answers) - len(plain.left_out)


def test_every_answer_counts_once(
    real_templates: list[Path], amount: Callable[[int, int, int], int], request: pytest.FixtureRequest
) -> None:
    count: Counter[str] = Counter()
    for paths in (OWN, real_templates):
        for path in Random(8).sample(paths, amount(2, 6, len(paths))):
            check_as_sampled(path, amount(2, 4, 30), count)
    assert count["as sampled"] > 0.9 * count["answers"] and count["plain"] <= count["as sampled"], count


QWEN = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>")
ASK = {"role": "user", "content": "Is it cold?"}
MORE = {"role": "user", "content": "And in Rome?"}


@pytest.fixture
def chat() -> Any:
    return chatparsers.load(template="qwen3", tokenizer=bytewise(*QWEN))


def test_thoughts_need_not_count(chat: Any) -> None:
    answer = {"role": "assistant", "reasoning_content": "Hm.", "content": "Yes."}
    for counts, text in ((True, "<think>\nHm.\n</think>\n\nYes.<|im_end|>"), (False, "Yes.<|im_end|>")):
        (sample,) = chat.encode([ASK, answer], as_sampled=True, reasoning=counts)
        said = counted_texts(chat, sample)[1]
        assert said == text
    first, second = chat.encode([ASK, answer, MORE, answer], as_sampled=True)
    assert [*counted_texts(chat, first)] == [1] and [*counted_texts(chat, second)] == [3]
    (last,) = chat.encode([ASK, answer, MORE, answer], as_sampled=True, train_on="last")
    assert [*counted_texts(chat, last)] == [3]


def test_what_cannot_be_said_is_context(chat: Any) -> None:
    """A stop among the words: as text the model could not have written on."""
    wrong = {"role": "assistant", "content": "Yes.<|im_end|>No."}
    (sample,) = chat.encode([ASK, wrong, MORE, {"role": "assistant", "content": "No."}], as_sampled=True)
    assert sample.left_out == {1: "unwritten"} and [*counted_texts(chat, sample)] == [3]
    with pytest.warns(UserWarning, match="no answer counts"):
        assert chat.encode([ASK, wrong], as_sampled=True) == []
    rollout = chat.rollout([ASK])
    with pytest.raises(chatparsers.RequestError, match="no text that is read as this answer"):
        rollout.said(wrong)
    rollout.said({"role": "assistant", "content": "No."})
    with pytest.raises(chatparsers.RequestError, match="append the next message"):
        rollout.said({"role": "assistant", "content": "No."})


CALL = '<tool_call>\n{"name":"get_weather", "arguments":{"city":"Oslo"}}\n</tool_call><|im_end|>'


def test_texts_in_parts_are_said_as_templates_join_them(chat: Any) -> None:
    parts = [{"type": "text", "text": "Yes,"}, {"type": "text", "text": "cold."}]
    (sample,) = chat.encode([ASK, {"role": "assistant", "content": parts}], as_sampled=True)
    assert counted_texts(chat, sample) == {1: "Yes,\ncold.<|im_end|>"} and not sample.left_out
    assert counted_texts(chat, sample) == counted_texts(
        chat, chat.encode([ASK, {"role": "assistant", "content": parts}])
    )
    with pytest.raises(chatparsers.RequestError, match="no text that is read as this answer"):
        chat.rollout([ASK]).said({"role": "assistant", "content": [*parts, {"type": "image"}]})


@pytest.mark.parametrize(
    "value",
    ["<|im_end|>", "a</tool_call>", {"in": ["\n<|endoftext|>", "<|im_start|>"]}, '</tool_call>"<think>'],
)
def test_markers_in_the_words_of_a_said_call_are_text(chat: Any, value: Any) -> None:
    """A stop in an argument ended the answer, and its other calls were lost."""
    calls = [
        {
            "id": f"call0000{place}",
            "type": "function",
            "function": {"name": "get_weather", "arguments": given},
        }
        for place, given in enumerate(({"city": value}, {"city": "Rome"}))
    ]
    answer = {"role": "assistant", "content": "See <|im_start|>:", "tool_calls": calls}
    made = chat.rollout([ASK], tools=TOOLS)
    message = made.said(answer)
    assert [call.parsed_arguments for call in message.tool_calls] == [{"city": value}, {"city": "Rome"}]
    assert message.content == "See <|im_start|>:" and not made.differs
    whole = chat.encode([ASK, answer], tools=TOOLS)
    counted = [id for id, counts in zip(whole.ids, whole.loss_mask, strict=True) if counts]
    special = {chat.tokenizer.token_to_id(one) for one in QWEN}
    sampled = made.ids[-len(made.begun()[0].ids) :]
    assert [id for id in sampled if id in special] == [id for id in counted if id in special]


def test_rebased_keeps_the_ids_of_answers_that_stand(chat: Any) -> None:
    """Odd ids of an answer stay where its text stands; they count in the row in which they were sampled."""
    rollout = chat.rollout([ASK])
    odd = chat.tokenizer.encode("It is").ids + chat.tokenizer.encode(" cold.<|im_end|>").ids
    rollout.sampled(odd)
    rollout.append(MORE)
    rollout.sampled(chat.tokenizer.encode("Mild.<|im_end|>").ids)
    told = {"role": "assistant", "content": [{"type": "text", "text": " It is cold. "}]}
    other = rollout.rebased([{"role": "user", "content": "Summary."}, told, ASK])
    assert other.messages[1]["content"] == "It is cold." and not other.breaks
    assert other.text == chat.prepare(other.messages).prompt
    other.sampled(chat.tokenizer.encode("Yes.<|im_end|>").ids)
    assert [sample.counted for sample in rollout.samples(other)] == [len(odd) + 6, 5]
    edited = rollout.rebased([ASK, {"role": "assistant", "content": "It is warm."}, MORE])
    assert edited.messages[1]["content"] == "It is warm."
    with pytest.raises(chatparsers.RequestError, match="at least one message"):
        rollout.rebased([])


def test_options_of_the_answer_begin_no_segment(chat: Any) -> None:
    """What no template sees, and tools that are equal as JSON, change no text; other tools do."""
    rollout = chat.rollout([ASK], tools=TOOLS)
    message = rollout.sampled(chat.tokenizer.encode(CALL).ids)
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "4 degrees"}
    given = rollout.ids
    for changes in ({"tool_choice": "required"}, {"tools": [dict(reversed(tool.items())) for tool in TOOLS]}):
        fork = rollout.fork()
        fork.append(result, **changes)
        assert not fork.breaks and fork.ids[: len(given)] == given
    fork = rollout.fork()
    fork.append(result, tool_choice="required")
    assert fork.turn.options.mode == "required"
    rollout.append(result, tools=TOOLS[:1])
    assert [found.reason for found in rollout.breaks] == ["variables"]


def test_a_tokenizer_goes_with_what_was_found_of_it() -> None:
    def use() -> list[weakref.ref[Any]]:
        tokenizer = bytewise(*QWEN)
        chat = chatparsers.load(template="qwen3", tokenizer=tokenizer)
        rollout = chat.rollout([ASK])
        rollout.said({"role": "assistant", "content": "Yes <|im_start|>."})
        rollout.append({**MORE, "content": "<think>"})
        chat.encode([ASK, {"role": "assistant", "content": "Yes."}])
        return [weakref.ref(tokenizer), weakref.ref(Vocabulary.bare(tokenizer))]

    found = use()
    gc.collect()
    assert [one() for one in found] == [None, None]


def test_a_said_call_ends_as_one_whatever_the_history_needs() -> None:
    """The template of gpt-oss shows one call of a turn, so two are told by a polyfill, as a final answer."""
    chat = chat_of(OWN[0].parent / "gpt-oss.jinja")
    made = chat.rollout([{"role": "user", "content": "Is it cold?"}], tools=TOOLS)
    for number in (1, 2, 1):
        calls = [
            {"id": f"call0000{place}", "function": {"name": "get_weather", "arguments": {"city": "Oslo"}}}
            for place in range(number)
        ]
        made.said({"role": "assistant", "content": "", "tool_calls": calls})
        assert chat.tokenizer.decode(made.ids[-2:], skip_special_tokens=False).endswith("<|call|>")
        ids = [call["id"] for call in made.messages[-1]["tool_calls"]]
        made.append(*({"role": "tool", "tool_call_id": id, "content": "4"} for id in ids))


@pytest.mark.parametrize("history", ["template", "exact"])
def test_the_stop_that_a_variable_makes_ends_answers(history: Any) -> None:
    """In a prompt's turn, in a rollout and as it is said."""
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{{ end or '<|e|>' }}{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    chat = chatparsers.load(source, tokenizer=bytewise("<|user|>", "<|assistant|>", "<|e|>", "<|other|>"))
    question, options = {"role": "user", "content": "Q"}, {"template_kwargs": {"end": "<|other|>"}}
    assert chat.prepare([question]).stops == ("<|e|>",)
    assert chat.prepare([question], **options).stops == ("<|other|>", "<|e|>")
    said, sampled, cut = (chat.rollout([question], history=history, **options) for _ in range(3))
    said.said({"role": "assistant", "content": "A"})
    for rollout, text in ((sampled, "A<|other|>"), (cut, "A")):
        rollout.sampled(chat.tokenizer.encode(text).ids, finish_reason="stop")
    for rollout in (said, sampled, cut):
        rollout.append(question)
        wanted = "<|user|>Q<|other|><|assistant|>A<|other|><|user|>Q<|other|><|assistant|>"
        assert rollout.text == wanted and not rollout.differs and not rollout.breaks
