"""A thought is generated only for a model that writes some: the request, prompt, template or tokenizer tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engines import FULL, compile_for, engines_of
from samples import TOOLS
from test_matrix import DIALECTS
from toy import toy_tokenizer

import chatparsers

OWN = Path(__file__).parents[1] / "templates_own"
CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
THOUGHT = f"<think>\nHm.\n</think>\n\n{CALL}"
QWEN3 = chatparsers.get_format("qwen3")
ASKED: dict[str, Any] = {"tools": TOOLS, "tool_choice": "required"}


def check(turn: chatparsers.Turn, reasoning: bool) -> None:
    for dialect in DIALECTS:
        grammar = turn.grammar(dialect, token_references=False if turn.tokenizer else None)
        assert grammar is not None and grammar.reasoning is reasoning
        judge = compile_for(engines_of(dialect)[0], str(grammar), dialect)
        assert judge.status(CALL) == FULL
        assert (judge.status(THOUGHT) == FULL) is reasoning
    assert turn.parse(THOUGHT).reasoning.strip() == "Hm."  # the parser reads it in any case


@pytest.mark.parametrize(
    ("template", "thinking", "reasoning"),
    [
        ("qwen3", None, True),
        ("qwen3", False, False),
        ("hermes-2-pro", None, False),  # as Qwen2.5's: the same calls, and no word of thoughts
        ("hermes-2-pro", True, True),
    ],
)
@pytest.mark.filterwarnings(
    "ignore:thinking=True. .* has no switch for it", "ignore:the grammar has .* as text"
)
def test_the_template_tells(template: str, thinking: bool | None, reasoning: bool) -> None:
    chat = chatparsers.load(OWN / f"{template}.jinja", format="qwen3")
    turn = chat.prepare([{"role": "user", "content": "Now?"}], thinking=thinking, **ASKED)
    if turn.prefix:  # a closed thought: nothing is left of it
        turn = chat.bind(thinking=thinking, **ASKED)
    check(turn, reasoning)
    check(chat.bind(thinking=thinking, **ASKED), reasoning)


@pytest.mark.filterwarnings("ignore:the grammar has .* as text")
def test_the_prompt_or_the_tokenizer_tells() -> None:
    check(QWEN3.bind(**ASKED), True)  # nothing is known
    check(QWEN3.bind(tokenizer=toy_tokenizer(QWEN3, True), **ASKED), True)
    other = toy_tokenizer(chatparsers.get_format("hermes-2-pro"), True)
    check(QWEN3.bind(tokenizer=other, **ASKED), False)
    opened = QWEN3.bind(tokenizer=other, reasoning=False, prefix="<think>\n", **ASKED).grammar()
    assert opened is not None and opened.reasoning
    closed = QWEN3.bind(reasoning=False, prefix="<think>\n\n</think>\n\n", **ASKED).grammar()
    assert closed is not None and not closed.reasoning and "think" not in str(closed)
