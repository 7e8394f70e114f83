"""A message is continued: in content or in reasoning, in every template, whatever the template drops."""

from __future__ import annotations

import json
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from conversations import load_chat
from tool_schemas import WRITE_FILE

import chatparsers
from chatparsers import Chat, Kind, TemplateError
from chatparsers.templates.builtins import builtin_names, builtin_source

USER = {"role": "user", "content": "Is it raining?"}
LONGER = [{"role": "system", "content": "S"}, USER, {"role": "assistant", "content": "a"}, USER]
# Templates that render only one turn or need a variable; and a model whose channels no format reads.
REFUSED = {"granite3-guardian_2b", "shieldgemma_27b", "Kimi-K3"}
# Their generation prompt opens the answer, so no thought can come before it.
ANSWERS_AT_ONCE = {"command-a_111b", "command-r7b_7b"}


def goes_on(chat: Chat, history: list[dict[str, Any]], **half: str) -> bool:
    """Whether the prompt ends in ``half`` and the stream reads what follows as more of the same."""
    (text,) = half.values()
    final = {"role": "assistant", "content": "", **half}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        thinking = True if "reasoning_content" in half else None
        turn = chat.prepare([*history, final], continue_final_message=True, thinking=thinking)
    message = turn.parse(" more")
    said = (
        (message.reasoning, message.content)
        if "reasoning_content" in half
        else (message.content, message.reasoning)
    )
    return turn.prompt.endswith(text) and turn.prefix.endswith(text) and said == (" more", "")


def test_every_template(every_template: Path | str) -> None:
    chat, name = load_chat(every_template), Path(every_template).stem
    for history in ([USER], LONGER):
        try:
            assert goes_on(chat, history, content="It is rai") or name in REFUSED
        except TemplateError:
            assert name in REFUSED
        if chat.format.features.reasoning and name not in ANSWERS_AT_ONCE:
            assert goes_on(chat, history, reasoning_content="Let me see")


OPENS = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ '<think>\n' if m.role == 'assistant' }}{{ m.content }}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
)
TRIMS = (
    "{% for m in messages %}<|start|>{{ m.role }}<|sep|>\n{{ m.content | trim }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant<|sep|>\n{% endif %}"
)
COMMAND = (
    "{% for m in messages %}<|START_OF_TURN_TOKEN|>"
    "{{ '<|USER_TOKEN|>' if m.role == 'user' else '<|CHATBOT_TOKEN|>' }}"
    "{{ m.content }}<|END_OF_TURN_TOKEN|>{% endfor %}"
    "<|START_OF_TURN_TOKEN|><|SYSTEM_TOKEN|>Act.<|END_OF_TURN_TOKEN|>"
    "{% if add_generation_prompt %}<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>{% endif %}"
)


def headed_once(before: str) -> str:
    """A template that writes no header, or white space before it, for an answer after an answer."""
    return (
        "{% for m in messages %}{% if m.role == 'user' or loop.previtem.role == 'user' %}<|{{ m.role }}|>{% else %}"
        + before
        + "{% endif %}{{ m.content }}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )


ANSWERED = [USER, {"role": "assistant", "content": "a"}]
COMMAND_HEADER = "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>"
EMPTY_THOUGHT = "<think>\n\n</think>\n\nIt is rai"
# A template, its format, the messages before, what is begun, how the prompt ends, and the prefix.
BEGUN: dict[str, tuple[str, str, list[Any], dict[str, Any], str, str]] = {
    "behind a thought that the prompt opened": (
        builtin_source("minimax-m2"),
        "minimax-m2",
        [USER],
        {"content": "It is rai", "reasoning_content": "Hm."},
        "<think>\nHm.\n</think>\n\nIt is rai",
        "<think>\nHm.\n</think>\n\nIt is rai",
    ),
    **{
        f"the template leaves its thought open, {name}": (
            OPENS,
            "qwen3",
            [USER],
            {"content": content},
            EMPTY_THOUGHT,
            EMPTY_THOUGHT,
        )
        for name, content in {"text": "It is rai", "parts": [{"type": "text", "text": "It is rai"}]}.items()
    },
    "white space that the template strips": (
        TRIMS,
        "content-only",
        [USER],
        {"content": " "},
        "<|start|>assistant<|sep|>\n ",
        " ",
    ),
    # The words are put after the prompt for a new answer, also where the format cannot write them.
    **{
        f"{name} after an answer, {format}": (
            headed_once(before),
            format,
            ANSWERED,
            {"content": begun, "reasoning_content": thought},
            f"a<|end|><|assistant|>{begun}",
            begun,
        )
        for name, before in {"no header": "", "white space": " <|assistant|>"}.items()
        for format, thought, begun in (
            ("qwen3", "", "<think>Half"),
            ("content-only", "whole", "It is rai"),
        )
    },
    # What the prompt has of the answer is all of its header: it stays before words that the format cannot write.
    "a header that is the prompt's own beginning": (
        COMMAND,
        "command-r-plus",
        [USER],
        {"content": "It is rai", "reasoning_content": "Hm."},
        f"Act.<|END_OF_TURN_TOKEN|>{COMMAND_HEADER}It is rai",
        f"{COMMAND_HEADER}It is rai",
    ),
}


@pytest.mark.parametrize("case", BEGUN)
def test_what_is_begun_ends_the_prompt_and_goes_on(case: str) -> None:
    source, format, before, begun, ends, prefix = BEGUN[case]
    chat = chatparsers.load(source, format=format)
    turn = chat.prepare([*before, {"role": "assistant", **begun}], continue_final_message=True)
    assert turn.prompt.endswith(ends) and turn.prefix == prefix
    assert prefix.startswith("<think>Half") or turn.parse("ning.").content == "ning."


def test_no_generation_prompt_is_needed() -> None:
    """`Chat.encode` asks for none, and its answer begins where it does for a model."""
    chat = chatparsers.load(template="hermes-2-pro")
    final = {"role": "assistant", "content": "It is rai"}
    turn = chat.prepare([USER, final], continue_final_message=True, add_generation_prompt=False)
    assert turn.prefix == "It is rai"
    sample = chat.encode([USER, final], continue_final_message=True)
    assert sample.text.endswith("assistant\nIt is rai") and sample.kinds.count(Kind.CONTENT) == len(
        "It is rai"
    )


WRITE = {"type": "function", "function": WRITE_FILE}
ARGUMENTS = {"path": "a.py", "lines": 12, "text": 'def f():\n    return "x"\n', "tags": ["p", "q r"]}


def calling(*arguments: str) -> list[dict[str, Any]]:
    return [
        {"type": "function", "id": f"abcdefgh{index}", "function": {"name": "write_file", "arguments": given}}
        for index, given in enumerate(arguments)
    ]


@pytest.mark.parametrize("name", builtin_names())
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_calls_go_on_wherever_they_are_cut_off(name: str, amount: Any) -> None:
    """With the rest of what the format writes, the last call is whole; the grammar goes on there too."""
    chat = chatparsers.load(template=name, eos_token="</s>")
    if not chat.format.features.tools:
        pytest.skip("a format without calls")
    whole = json.dumps(ARGUMENTS)
    tried = 0
    for before, said in product(
        ([], ['{"path": "z"}']), ({}, {"content": "Ok."}, {"content": "Ok.", "reasoning": "Hm."})
    ):

        def at(cut: int, before: Any = before, said: Any = said) -> Any:
            final = {"role": "assistant", "content": "", **said, "tool_calls": calling(*before, whole[:cut])}
            return chat.prepare([USER, final], tools=[WRITE], continue_final_message=True)

        try:
            full = at(len(whole)).prefix
        except TemplateError as error:
            assert "has no place for" in str(error)
            continue
        for cut in range(tried % 7, len(whole), amount(24, 7, 1)):
            turn = at(cut)
            assert full.startswith(turn.prefix) and turn.prompt.endswith(turn.prefix), whole[:cut]
            message = turn.parse(full[len(turn.prefix) :])
            assert [call.parsed_arguments for call in message.tool_calls] == [ARGUMENTS], whole[:cut]
            assert not message.content and not message.reasoning
            assert turn.grammar() is not None
        tried += 1
    assert tried


def test_a_call_stays_as_the_model_spelt_it() -> None:
    """But half a character is left to the model."""
    chat = chatparsers.load(template="qwen3")
    halves: dict[str, dict[str, Any]] = {
        f'"arguments": {given}': {"tool_calls": calling(given)}
        for given in ('{"path":"a', '{ "path" :"a", "li', '{"path":"a", "lines": 1e', '{"path":"\\u00e9\\u00')
    }
    halves |= {"Caf": {"content": "Caf\ufffd"}, '"Caf': {"tool_calls": calling('{"path": "Caf\ufffd')}}
    for end, half in halves.items():
        final = {"role": "assistant", "content": None, **half}
        turn = chat.prepare([USER, final], tools=[WRITE], continue_final_message=True)
        assert turn.prefix.endswith(end)


@pytest.mark.parametrize("given", ["oops", '{"path": oops}', '{"a" "b', "[1, 2"])
def test_what_begins_no_object_is_refused(given: str) -> None:
    final = {"role": "assistant", "content": None, "tool_calls": calling(given)}
    with pytest.raises(TemplateError, match="cannot go on with the call 'write_file'"):
        chatparsers.load(template="qwen3").prepare([USER, final], tools=[WRITE], continue_final_message=True)
