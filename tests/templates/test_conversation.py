"""A growing conversation gives the new text, says how much of the old is valid, and costs one rendering a step."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from making import bytewise

import chatparsers
from chatparsers import Chat, TemplateError
from chatparsers.templates import Template
from chatparsers.templates.code import Code
from chatparsers.templates.messages import Wants
from chatparsers.templates.messages import shape as messages_as
from chatparsers.templates.rewrite import history as history_module
from chatparsers.templates.rewrite.history import History
from chatparsers.templates.rewrite.outline import Survey
from chatparsers.templates.rewrite.polyfills import POLYFILLS, apply
from chatparsers.templates.rewrite.results import MISSING, ORDER, settled
from chatparsers.tokens.growing import GrowingIds

sys.path.insert(0, str(Path(__file__).parent))

from conversations import SHAPES, Shape

OWN = Path(__file__).parent.parent / "templates_own"
GROWING = [
    "turns",
    "call, result, answer",
    "text beside parallel",
    "reasoning",
    "reasoning, call",
    "developer",
    "users",
]
# Real tokenizers by the templates whose markers they have.
REAL = {
    "qwen3": "qwen3",
    "llama3.1": "llama-3-x",
    "o200k_harmony": "gpt-oss",
    "deepseek-v3x": "deepseek-v3-1",
}


def grow(chat: Chat, shape: Shape) -> bool:
    """Appends the shape's messages one by one, checks each step; whether a step rewrote anything."""
    request: dict[str, Any] = {"tools": list(shape.tools) or None, "now": datetime(2025, 1, 1)}
    conversation = chat.conversation(**request)
    held, rewrote = "", False
    for number, message in enumerate(shape.messages, 1):
        grown = conversation.append(message)
        generate = message["role"] in ("user", "tool")
        whole = chat.prepare(shape.messages[:number], add_generation_prompt=generate, **request).prompt
        assert held[: grown.kept] + grown.text == whole == conversation.text
        assert grown.rewritten is not whole.startswith(held)
        held, rewrote = whole, rewrote or grown.rewritten
    return rewrote


def test_appended_one_by_one_is_rendered_at_once(any_template: Path) -> None:
    chat = chatparsers.load(any_template, bos_token="<BOS>", eos_token="<EOS>")
    for name in GROWING:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            grow(chat, SHAPES[name])


def test_what_rewrites_history_is_said() -> None:
    plain = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    last_only = (
        "{% for m in messages %}<{{ m.role }}>{% if loop.last and m.reasoning_content %}({{ m.reasoning_content }})"
        "{% endif %}{{ m.content }}{% endfor %}"
    )
    assert not grow(chatparsers.load(plain, format="generic"), SHAPES["reasoning"])
    assert grow(chatparsers.load(last_only, format="generic"), SHAPES["reasoning"])


def test_what_the_model_wrote_is_kept() -> None:
    chat = chatparsers.load(OWN / "qwen3.jinja", tokenizer=bytewise("<|im_start|>", "<|im_end|>", "<think>"))
    conversation = chat.conversation([{"role": "user", "content": "Hi"}])
    assert conversation.turn is not None
    prompt, ids = conversation.text, conversation.ids
    wire = "Hello.<|im_end|>"
    answer = conversation.turn.parse(wire).to_openai()
    for wrote in (wire, chat.tokenizer.encode(wire, add_special_tokens=False).ids):
        conversation.replace([{"role": "user", "content": "Hi"}])
        grown = conversation.append(answer, {"role": "user", "content": "Bye"}, wrote=wrote)
        assert (grown.rewritten, grown.kept) == (False, len(prompt + wire))
        assert grown.text == "\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"
        assert grown.kept_ids is not None and grown.ids is not None
        assert grown.kept_ids == len(ids) + len(chat.tokenizer.encode(wire, add_special_tokens=False).ids)
        assert conversation.ids == chat.tokenizer.encode(conversation.text, add_special_tokens=False).ids
    conversation.replace([{"role": "user", "content": "Hi"}])
    other = {"role": "assistant", "content": "Hullo."}  # not what was written
    grown = conversation.append(other, {"role": "user", "content": "Bye"}, wrote=wire)
    assert grown.rewritten and "Hello." not in conversation.text
    assert conversation.text == chat.prepare(conversation.messages).prompt


COMPACT = '<tool_call>\n{"name": "look", "arguments": {"a":1}}\n</tool_call><|im_end|>'
LOOK = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def test_ids_of_an_answer_stay_as_they_were_sampled() -> None:
    """The template writes the arguments with a space; the ids stay through later steps, until a message is edited."""
    marks = ("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>")
    chat = chatparsers.load(OWN / "qwen3.jinja", tokenizer=bytewise(*marks))
    conversation = chat.conversation([{"role": "user", "content": "Hi"}], tools=LOOK)
    assert conversation.turn is not None
    asked, held = conversation.text, conversation.ids
    wrote = chat.tokenizer.encode(COMPACT, add_special_tokens=False).ids
    message = conversation.turn.parse(wrote)
    grown = conversation.append(message, wrote=wrote)  # nothing stands behind it yet
    assert (grown.text, grown.ids, grown.rewritten) == ("", [], False)
    assert conversation.ids == held + wrote and conversation.text == asked + COMPACT
    call = message.tool_calls[0].id
    for content in ("one", "two"):
        before = conversation.ids
        grown = conversation.append({"role": "tool", "tool_call_id": call, "content": content})
        assert conversation.ids[: len(held) + len(wrote)] == held + wrote
        assert conversation.text.startswith(asked + COMPACT) and grown.kept_ids is not None
        assert grown.rewritten is (content == "two")  # only the generation prompt
        assert conversation.turn is not None and conversation.turn.prompt == conversation.text
    assert before[: grown.kept_ids] + (grown.ids or []) == conversation.ids
    edited = [*conversation.messages]
    edited[1] = {**edited[1], "content": "Let me look."}
    grown = conversation.replace(edited)
    assert grown.rewritten and len(asked) <= grown.kept < len(asked + COMPACT)
    assert conversation.text == chat.prepare(edited, tools=LOOK).prompt
    assert conversation.ids == chat.tokenizer.encode(conversation.text, add_special_tokens=False).ids


def test_an_edit_says_how_much_still_stands() -> None:
    chat = chatparsers.load(OWN / "hermes-2-pro.jinja", tokenizer=bytewise("<|im_start|>", "<|im_end|>"))
    messages = [
        {"role": "user", "content": "One"},
        {"role": "assistant", "content": "Two"},
        {"role": "user", "content": "X"},
    ]
    conversation = chat.conversation(messages)
    held, ids = conversation.text, conversation.ids
    grown = conversation.replace([*messages[:2], {"role": "user", "content": "Y"}])
    assert (
        grown.rewritten
        and grown.kept == held.index("X")
        and held[: grown.kept] + grown.text == conversation.text
    )
    assert grown.kept_ids is not None and grown.ids is not None
    assert ids[: grown.kept_ids] + grown.ids == conversation.ids
    assert 0 < grown.kept_ids < len(ids)


@pytest.mark.parametrize("name", REAL)
def test_ids_are_those_of_the_whole_prompt(name: str, tokenizer: Callable[[str], Any]) -> None:
    real = tokenizer(name)
    chat = chatparsers.load(OWN / f"{REAL[name]}.jinja", tokenizer=real)
    for shape in map(SHAPES.__getitem__, GROWING):
        conversation = chat.conversation(tools=list(shape.tools) or None)
        had: list[int] = []
        for message in shape.messages:
            grown = conversation.append(message)
            assert conversation.ids == real.encode(conversation.text, add_special_tokens=False).ids
            assert grown.ids is not None and grown.kept_ids is not None
            assert had[: grown.kept_ids] + grown.ids == conversation.ids
            had = conversation.ids


def test_no_text_is_encoded_twice_from_its_start() -> None:
    class Counting:
        """A tokenizer that counts the characters it is given."""

        def __init__(self) -> None:
            self.real, self.seen = bytewise("<|im_start|>", "<|im_end|>"), 0

        def encode(self, text: str, **options: Any) -> Any:
            self.seen += len(text)
            return self.real.encode(text, **options)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

    counting = Counting()
    growing, text = GrowingIds(counting), ""
    for number in range(50):
        kept, text = len(text), text + f"<|im_start|>user\n{number}" + "word " * 40 + "<|im_end|>\n"
        growing.update(text, kept)
    assert growing.ids == counting.real.encode(text, add_special_tokens=False).ids
    assert counting.seen < 1.2 * len(text)


def test_a_step_is_one_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = chatparsers.load(OWN / "qwen3.jinja").warm()
    conversation = chat.conversation()
    shape = SHAPES["turns"]
    for message in shape.messages:  # what these kinds of messages need is found out once
        conversation.append(message)
    count = 0
    write = Code.write

    def counted(self: Code, *given: Any) -> str:
        nonlocal count
        count += 1
        return write(self, *given)

    monkeypatch.setattr(Code, "write", counted)
    again = chat.conversation()
    for message in shape.messages:
        again.append(message)
    assert count == len(shape.messages)


def any_message(random: Random, number: int) -> dict[str, Any]:
    """A message of any kind, for conversations that no sensible caller would send."""

    def call(letter: str) -> dict[str, Any]:
        function = {"name": "f", "arguments": '{"a": "b"}'}
        return {"id": f"c{number}{letter}", "type": "function", "function": function}

    role = random.choice(
        ["user", "user", "assistant", "assistant", "system", "developer", "tool", "tool", "tool"]
    )
    message: dict[str, Any] = {"role": role, "content": random.choice([f"x{number}", "y", ""])}
    if role == "assistant":
        calls = [call(letter) for letter in "ab"[: random.choice([0, 0, 1, 2])]]
        message |= {"tool_calls": calls} if calls else {}
    elif role == "tool" and random.random() < 0.8:
        message["tool_call_id"] = f"c{number - random.randint(1, 3)}{random.choice('ab')}"
    return message


def test_rewriting_part_by_part_is_rewriting_the_whole() -> None:
    """For every set of polyfills: messages before a cut do not depend on those after it."""
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    syntax = chatparsers.get_format("hermes-2-pro")
    parts = 0
    for seed in range(1500):
        random = Random(seed)
        names = [name for name in POLYFILLS if random.random() < 0.4 and name not in (ORDER, MISSING)]
        messages = [any_message(random, number) for number in range(random.randint(1, 12))]
        wants = Wants(call_ids=random.choice(["keep", "fill", "short", "function"]))
        template = Template("{{ messages }}")

        def rewrite(part: list[Any], first: int, names: list[str] = names) -> list[Any]:
            nonlocal parts
            parts += first > 0
            return apply([name for name in names if not first or name != "tools"], part, tools, syntax)

        def ordered(given: list[Any], seed: int = seed) -> Any:
            return settled(given, Survey(given).steps).messages if seed % 2 else given

        history = History()
        for message in messages:
            history.append(message)
            given = history.rewritten(ordered(history), "key", rewrite)
            shaped = history.shaped(given, template, template.name, wants)
        if seed % 4 == 0:  # an old message is replaced, and another is added
            messages.append(any_message(random, len(messages)))
            history.append(messages[-1])
            at = random.randrange(len(messages))
            messages[at] = history[at] = any_message(random, at)
            given = history.rewritten(ordered(history), "key", rewrite)
            shaped = history.shaped(given, template, template.name, wants)
        whole = apply(names, ordered(messages), tools, syntax)
        assert list(given) == whole, (seed, names)
        assert shaped == messages_as(whole, wants), (seed, names)
    assert parts > 3000


@pytest.mark.parametrize(
    "reasoning_as", ["part", "blocks", "reasoning", "reasoning_content", "thinking", None]
)
def test_a_message_without_a_thought_gets_no_place_for_it(reasoning_as: Any) -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Yes", "reasoning_content": ""},
    ]
    shaped = messages_as(messages, Wants(reasoning_as=reasoning_as))
    assert "thinking" not in str(shaped) and "thoughts" not in str(shaped) and "reasoning" not in str(shaped)


def test_old_messages_are_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = chatparsers.load(OWN / "qwen3.jinja").warm()
    conversation = chat.conversation()
    looked: list[int] = []
    add, shape = Survey.add, history_module.shape
    monkeypatch.setattr(Survey, "add", lambda self, some: (looked.append(len(some)), add(self, some))[1])
    monkeypatch.setattr(
        history_module, "shape", lambda some, *rest: (looked.append(len(some)), shape(some, *rest))[1]
    )
    for number in range(60):
        looked.clear()
        conversation.append({"role": "user", "content": f"question {number}"})
        conversation.append({"role": "assistant", "content": f"answer {number}"})
        assert sum(looked) <= 12, (number, looked)
    assert conversation.text == chat.prepare(conversation.messages, add_generation_prompt=False).prompt


def test_what_the_caller_changes_and_what_is_refused_is_not_in_it() -> None:
    chat = chatparsers.load(OWN / "qwen3.jinja")
    message = {"role": "user", "content": "One"}
    conversation = chat.conversation([message])
    message["content"] = "Two"
    conversation.append({"role": "assistant", "content": "Three"})
    assert "One" in conversation.text and "Two" not in conversation.text
    text = conversation.text
    with pytest.raises(TemplateError, match=r"messages\[2\]: expected an object with a role"):
        conversation.append({"content": "x"})
    assert (len(conversation.messages), conversation.text) == (2, text)


def test_a_template_that_changes_lists_changes_copies() -> None:
    """It takes calls from its messages and adds to the tools; in each step and each request they are whole again."""
    chat = chatparsers.load(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}"
        "{% if m.tool_calls %}{{ m.tool_calls.pop().function.name }}{{ m.tool_calls | length }}{% endif %}\n"
        "{% endfor %}{{ tools.append(1) if tools }}{{ tools if tools }}{{ tools | length if tools }}",
        format="hermes-2-pro",
        polyfills=False,
    )
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    conversation = chat.conversation(messages, tools=tools)
    for _ in range(3):
        conversation.append({"role": "tool", "content": "seen", "tool_call_id": "a"})
        assert "<|assistant|>look0" in conversation.text and conversation.text.endswith(", 1]2")
    assert (len(tools), len(messages[1]["tool_calls"])) == (1, 1)
