"""`Chat.encode`: the mask counts what a model would have to write, and every id has its kind."""

from __future__ import annotations

import copy
import math
import pickle
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from making import bytewise

import chatparsers
from chatparsers import Chat, Kind, RequestError, Sample

sys.path.insert(0, str(Path(__file__).parent))

from dialogues import TOOLS
from played import chat_of

OWN = Path(__file__).parents[1] / "templates_own"
QUESTION = {"role": "user", "content": "Is it cold in Oslo?"}
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": "",
    "reasoning_content": "I look it up.",
    "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Oslo"}'}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "4 degrees"}
ANSWER = {"role": "assistant", "content": "Rather.", "reasoning_content": "4 is cold."}
AGENT = [QUESTION, CALL, RESULT, ANSWER]


def qwen3() -> Chat:
    special = ("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>")
    return chatparsers.load(OWN / "qwen3.jinja", tokenizer=bytewise(*special))


def spelt(chat: Chat, sample: Sample, value: int = 1) -> str:
    ids = [id for id, mask in zip(sample.ids, sample.loss_mask, strict=True) if mask == value]
    text: str = chat.tokenizer.decode(ids, skip_special_tokens=False)
    return text


def test_all_that_the_model_wrote_counts_with_its_stop() -> None:
    chat = qwen3()
    sample = chat.encode(AGENT, tools=TOOLS)
    assert (
        sample.ids
        == chat.tokenizer.encode(chat.prepare(AGENT, tools=TOOLS, add_generation_prompt=False).prompt).ids
    )
    assert spelt(chat, sample) == (
        '<think>\nI look it up.\n</think>\n\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n'
        "</tool_call><|im_end|><think>\n4 is cold.\n</think>\n\nRather.<|im_end|>"
    )
    assert [place for place, label in enumerate(sample.labels()) if label != -100] == [
        place for place, mask in enumerate(sample.loss_mask) if mask
    ]
    assert all(map(math.isnan, sample.logprobs)) and len(sample.logprobs) == len(sample)
    by_character = chatparsers.load(OWN / "qwen3.jinja").encode(AGENT, tools=TOOLS)
    marks = zip(by_character.text, by_character.loss_mask, strict=True)
    counted = "".join(character for character, mask in marks if mask)
    assert by_character.unit == "character" and counted == spelt(chat, sample)


def test_a_dropped_thought_makes_an_answer_context() -> None:
    chat = qwen3()
    messages = [*AGENT, {"role": "user", "content": "Thanks"}, {"role": "assistant", "content": "Bye."}]
    sample = chat.encode(messages, tools=TOOLS)
    assert sample.left_out == {1: "thought", 3: "thought"}
    assert spelt(chat, sample) == "Bye.<|im_end|>"  # what the template writes for no thought does not count
    turns = chat.encode(messages, tools=TOOLS, split_turns=True)
    assert [spelt(chat, turn) for turn in turns] == [
        spelt(chat, chat.encode(AGENT, tools=TOOLS)),
        spelt(chat, sample),
    ]
    counted = chat.encode(messages, tools=TOOLS, rewritten=True)
    assert counted.left_out == {} and spelt(chat, counted).count("<|im_end|>") == 3


def said(content: str, **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **more}


BESIDE = {**CALL, "content": "Let me see", "reasoning_content": ""}
ENDS_WITH_ITS_ID = [{**CALL["tool_calls"][0], "id": "Xy9Xy9Xy9"}]
ASSISTANTS = [{"role": "system", "content": "You are an assistant"}, {"role": "user", "content": "assistant"}]
APERTUS_CALL = '<|tools_prefix|>[{"get_weather": {"city": "Oslo"}}]<|tools_suffix|><|assistant_end|>'
NEMO_CALL = '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}, "id": "%s"}]<EOS>'
MOVES = (
    "{% for m in messages %}{% set before = messages[loop.index0 - 1] %}{% if m.role == 'user' %}"
    "<|turn>user\n{{ m.content }}<turn|>\n{% elif m.tool_calls %}"
    "<|turn>model\n<|tool_call>call:{{ m.tool_calls[0].function.name }}{}<tool_call|>{% elif m.role == 'tool' %}"
    "<|tool_response>response:get_weather{value:{{ m.content }}}<tool_response|>{{ before.content }}<turn|>\n"
    "{% else %}{{ '<|turn>model\n' if before.role == 'user' }}{{ m.content }}<turn|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt and messages[-1].role != 'tool' %}<|turn>model\n{% endif %}"
)
COHERE2 = (
    "{% for m in messages %}<|START_OF_TURN_TOKEN|>{% if m.role == 'user' %}<|USER_TOKEN|>{{ m.content }}"
    "<|END_OF_TURN_TOKEN|>{% else %}<|CHATBOT_TOKEN|><|START_RESPONSE|>{{ m.content }}<|END_RESPONSE|>"
    "<|END_OF_TURN_TOKEN|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_RESPONSE|>{% endif %}"
)

INSTRUCTED = "{% for m in messages %}{{ m.content }}{{ '[/INST]' if m.role == 'user' }}{% endfor %}"
COHERE2_MARKERS = ("<|END_RESPONSE|>", "<|END_OF_TURN_TOKEN|>", "<|START_RESPONSE|>")


def loaded(source: str, *markers: str, **options: Any) -> Callable[[], Chat]:
    return lambda: chatparsers.load(source, tokenizer=bytewise(*markers), **options)


# A template of ours or another, the messages, the switch of thinking, what counts of all answers, what is left out.
COUNTED: dict[str, tuple[str | Callable[[], Chat], list[Any], bool | None, str, dict[int, str]]] = {
    "answers after which the template writes nothing": (
        loaded(INSTRUCTED),
        [QUESTION, said("No."), QUESTION, said("Still no.")],
        None,
        "No.Still no.",
        {},
    ),
    # Gemma's template writes the text beside a call after the call's result.
    "a text that the template moved is no other answer's": (
        loaded(MOVES, "<turn|>", format="gemma-4", polyfills=False),
        [QUESTION, BESIDE, RESULT, said("It is cold")],
        None,
        "It is cold<turn|>",
        {1: "content"},
    ),
    # Cohere 2 ends an answer with a marker of the response and one of the turn: a model is taught both.
    **{
        f"the true end of a turn, {how}": (
            loaded(COHERE2, *COHERE2_MARKERS, **files),
            [QUESTION, said("It is cold.")],
            None,
            "It is cold.<|END_RESPONSE|><|END_OF_TURN_TOKEN|>",
            {},
        )
        for how, files in {"alone": {}, "with an eos_token": {"eos_token": "<|END_OF_TURN_TOKEN|>"}}.items()
    },
    "the prompt's empty thought does not count": (
        "qwen3",
        [QUESTION, said("No.")],
        False,
        "No.<|im_end|>",
        {},
    ),
    "words that other messages end with": (
        "qwen3",
        [*ASSISTANTS, said("assistant", reasoning_content="assistant")],
        None,
        "<think>\nassistant\n</think>\n\nassistant<|im_end|>",
        {},
    ),
    "a dropped thought whose words stand in the answer": (
        "qwen3",
        [
            QUESTION,
            said("It is 4.", reasoning_content="4"),
            QUESTION,
            said("It is 4.", reasoning_content="4"),
        ],
        None,
        "<think>\n4\n</think>\n\nIt is 4.<|im_end|>",
        {1: "thought"},
    ),
    "an answer after a result that ends with its id": (
        "mistral-nemo",
        [
            QUESTION,
            said("", tool_calls=ENDS_WITH_ITS_ID),
            {**RESULT, "tool_call_id": "Xy9Xy9Xy9"},
            said("Rather."),
            QUESTION,
            said("Rather."),
        ],
        None,
        NEMO_CALL % "Xy9Xy9Xy9" + "Rather.<EOS>" * 2,
        {},
    ),
    "words that begin as the prompt ends": (  # in `Here are my reasoning steps:`
        "apriel-1-6",
        [QUESTION, said("Here we go"), QUESTION, said("Hi")],
        None,
        "Here we go\n<|end|>Hi\n<|end|>",
        {},
    ),
    "a history without the prompt's switch": (  # prompts end in `/think_on ASSISTANT:`, histories lack `/think_on`
        "longcat",
        [QUESTION, said("It is cold.", reasoning_content="So it is"), QUESTION],
        True,
        "So it is\n</longcat_think>\nIt is cold.</longcat_s>",
        {},
    ),
    **{  # its template writes results between brackets after the call, and the answer goes on behind them
        f"an answer behind {what}": (
            "apertus",
            [QUESTION, {**CALL, "reasoning_content": ""}, {**RESULT, "content": content}, said("It is cold")],
            None,
            APERTUS_CALL + "It is cold<|assistant_end|>",
            {},
        )
        for what, content in {"a result": "4", "an empty result": ""}.items()
    },
    "an answer without words": (
        "qwen3",
        [QUESTION, said(""), QUESTION, said("No.")],
        False,
        "No.<|im_end|>",
        {1: "empty"},
    ),
    "an answer that is written as two turns": (
        "mistral-nemo",
        [QUESTION, BESIDE, RESULT, said("Cold.")],
        None,
        "Let me see" + NEMO_CALL % "call00000" + "Cold.<EOS>",
        {},
    ),
    "an answer as two turns, with the name in the header": (
        "mistral-small-3-2",
        [QUESTION, BESIDE, RESULT, said("Cold.")],
        None,
        'Let me see[TOOL_CALLS]get_weather[CALL_ID]c1[ARGS]{"city": "Oslo"}<EOS>Cold.<EOS>',
        {},
    ),
}


@pytest.mark.parametrize("case", COUNTED)
def test_what_counts_of_all_answers(case: str) -> None:
    name, messages, thinking, counted, left_out = COUNTED[case]
    chat = chat_of(OWN / f"{name}.jinja") if isinstance(name, str) else name()
    shown = isinstance(name, str) and any("tool_calls" in message for message in messages)
    tools = TOOLS if shown else None
    sample = chat.encode(messages, tools=tools, thinking=thinking)
    assert (spelt(chat, sample), sample.left_out) == (counted, left_out)


def test_what_is_found_for_one_variable_is_not_taken_for_another() -> None:
    """Of a template, facts are kept by its variables; a `Decimal` is no plain data, so there nothing is kept."""
    ended = "{% if m.role == 'user' or not loop.last %}{{ '<|a|>' if n == 1 else '<|b|>' }}{% endif %}"
    source = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}" + ended + "{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    chat = chatparsers.load(source)
    for number, stop in ((Decimal(1), "<|a|>"), (Decimal(2), "<|b|>"), (1, "<|a|>")):
        fresh, messages = chatparsers.load(source), [QUESTION, said("No.")]
        found = chat.encode(messages, template_kwargs={"n": number})
        assert found.text == fresh.encode(messages, template_kwargs={"n": number}).text
        assert found.text.endswith(f"No.{stop}") and found.counted == len(f"No.{stop}")
        followed = chat.encode([*messages, QUESTION], template_kwargs={"n": number})
        assert followed.text.startswith(found.text) and followed.counted == found.counted


def test_which_answers_count() -> None:
    chat = qwen3()
    last = chat.encode(AGENT, tools=TOOLS, train_on="last")
    assert spelt(chat, last).endswith("Rather.<|im_end|>") and "tool_call" not in spelt(chat, last)
    calls = chat.encode(AGENT, tools=TOOLS, train_on=lambda message, index: "tool_calls" in message)
    assert "tool_call" in spelt(chat, calls) and "Rather" not in spelt(chat, calls)
    no_thoughts = spelt(chat, chat.encode(AGENT, tools=TOOLS, reasoning=False))
    assert "cold" not in no_thoughts and "Rather.<|im_end|>" in no_thoughts
    with pytest.raises(RequestError, match="train_on"):
        chat.encode(AGENT, train_on="first")  # type: ignore[call-overload]


def test_every_id_has_its_kind_and_its_message() -> None:
    chat = qwen3()
    sample = chat.encode(AGENT, tools=TOOLS)

    def of(kind: Kind) -> str:
        ids = [id for id, found in zip(sample.ids, sample.kinds, strict=True) if found == kind]
        text: str = chat.tokenizer.decode(ids, skip_special_tokens=False)
        return text

    assert of(Kind.USER) == QUESTION["content"] and of(Kind.RESULT) == RESULT["content"]
    assert of(Kind.REASONING) == "I look it up.4 is cold." and of(Kind.CONTENT) == "Rather."
    assert of(Kind.CALL) == "get_weather" and of(Kind.ARGUMENT) == '{"city": "Oslo"}'
    assert of(Kind.STOP) == "<|im_end|>" * 2
    assert spelt(chat, sample[1]).startswith("<think>") and spelt(chat, sample[-1]).endswith(
        "Rather.<|im_end|>"
    )
    assert chat.tokenizer.decode(sample[2].ids) == RESULT["content"]
    assert len(sample[1:4]) > len(sample[1]) + len(sample[2]) + len(sample[3])
    with pytest.raises(IndexError):
        sample[9]


def test_a_sample_is_copied_padded_and_read_by_numpy() -> None:
    numpy = pytest.importorskip("numpy")
    sample = qwen3().encode(AGENT, tools=TOOLS)
    for twin in (pickle.loads(pickle.dumps(sample)), copy.deepcopy(sample)):
        assert twin == sample and repr(twin) == repr(sample) and twin.kinds == sample.kinds
    for column in ("ids", "loss_mask", "kinds", "message_indices"):
        array = sample.numpy(column)
        assert array.tolist() == getattr(sample, column)
        assert numpy.shares_memory(array, sample.numpy(column))
    padded = sample.padded(len(sample) + 3, id=7)
    assert padded.ids == [*sample.ids, 7, 7, 7] and padded.kinds[-3:] == [Kind.PADDING] * 3
    assert padded.loss_mask[-3:] == [0, 0, 0] and padded != sample
    with pytest.raises(RequestError, match="length of at least"):
        sample.padded(3)


def test_a_prompt_read_back_marks_the_same() -> None:
    chat = qwen3()
    for thinking in (True, False):
        answer = {"role": "assistant", "content": "No."}
        sample = chat.encode([QUESTION, answer], thinking=thinking)
        asked = chat.prepare([QUESTION], thinking=thinking).prompt
        text = asked + ("No.<|im_end|>" if not thinking else "<think>\nHm.\n</think>\n\nNo.<|im_end|>")
        found = chat.parse_prompt(text, thinking=thinking)[-1]
        assert found.written and text[found.start : found.end] == text[len(asked) :]
        ids, tokens = chat.tokenizer.encode(text).ids, slice(*found.tokens or ())
        assert chat.tokenizer.decode(ids[tokens], skip_special_tokens=False) == text[len(asked) :]
        assert thinking or text[found.start : found.end] == spelt(chat, sample)


def test_a_short_system_text_is_where_the_template_writes_it() -> None:
    source = (
        "<|system|>\nKnowledge: December 2023\n\n{{ messages[0].content }}<|end|>{% for m in messages[1:] %}"
        "<|{{ m.role }}|>\n{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
    )
    chat = chatparsers.load(source, tokenizer=bytewise("<|end|>"))
    sample = chat.encode(
        [{"role": "system", "content": "2"}, QUESTION, {"role": "assistant", "content": "Yes"}]
    )
    assert sample.kinds.index(Kind.SYSTEM) == sample.text.index("\n\n2<|end|>") + 2
