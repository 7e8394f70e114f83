"""A message is continued: in content or in reasoning, in every template, whatever the template drops."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from test_nothing_lost import folders

import chatparsers
from chatparsers import Chat, TemplateError
from chatparsers.templates.builtins import builtin_names

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


def check(chat: Chat, name: str) -> None:
    for history in ([USER], LONGER):
        try:
            assert goes_on(chat, history, content="It is rai") or name in REFUSED
        except TemplateError:
            assert name in REFUSED
        if chat.format.features.reasoning and name not in ANSWERS_AT_ONCE:
            assert goes_on(chat, history, reasoning_content="Let me see")


def test_real_and_own_templates(any_template: Path) -> None:
    check(chatparsers.load(any_template, bos_token="<BOS>", eos_token="</s>"), any_template.stem)


def test_templates_as_people_have_them(real_template: Path) -> None:
    mine = sorted(real_template.parent.glob("*.jinja"))
    others = [
        file
        for folder in folders(real_template)
        if folder != real_template.parent
        for file in sorted(folder.glob("*.jinja"))
    ]
    for path in others[mine.index(real_template) :: len(mine)]:
        check(chatparsers.load(path, bos_token="<BOS>", eos_token="</s>"), path.stem)


@pytest.mark.parametrize("name", builtin_names())
def test_built_in_templates(name: str) -> None:
    check(chatparsers.load(template=name, eos_token="</s>"), name)


def test_content_behind_a_thought_that_the_prompt_opened(own_folder: Path) -> None:
    chat = chatparsers.load(own_folder / "minimax-m2.jinja")
    final = {"role": "assistant", "content": "It is rai", "reasoning_content": "Hm."}
    turn = chat.prepare([USER, final], continue_final_message=True)
    assert turn.prefix == "<think>\nHm.\n</think>\n\nIt is rai"
    assert turn.parse("ning.").content == "ning."


def test_content_where_the_template_leaves_its_thought_open() -> None:
    source = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ '<think>\n' if m.role == 'assistant' }}{{ m.content }}"
        "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}"
    )
    chat = chatparsers.load(source, format="qwen3")
    turn = chat.prepare([USER, {"role": "assistant", "content": "It is rai"}], continue_final_message=True)
    assert turn.prefix == "<think>\n\n</think>\n\nIt is rai" and turn.prompt.endswith(turn.prefix)
    assert turn.parse("ning.").content == "ning."
