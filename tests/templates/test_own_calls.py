"""A call that the model had to make stands in the next prompt as the model wrote it.

A grammar that let it begin with white space which the template does not write would make the model read each of its own
calls anew, and an engine would compute it again.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from conversations import load_chat
from engines import compile_for, engines_of

import chatparsers
from chatparsers.answers.features import reasoning_spans
from chatparsers.core.tree import first

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": CITY}}]
QUESTION = {"role": "user", "content": "How is the weather?"}
CALL = {"name": "get_weather", "arguments": '{"city": "Oslo"}'}
CALLS = {"tool_calls": [{"id": "abcdefgh1", "type": "function", "function": CALL}]}
RESULT = {"role": "tool", "tool_call_id": "abcdefgh1", "name": "get_weather", "content": "Fine."}
SPACES = ("", "\n", "\n\n", " ")
NARROW = {"sarashina", "sarashina.jinja", "hyperclovax"}
"""They write a space before the first argument, and an empty answer before each call. No grammar does."""


def otherwise(text: str, at: int) -> list[str]:
    """The text with each other white space at a place."""
    begin, rest = text[:at], text[at:].lstrip()
    return [changed for space in SPACES if (changed := begin + space + rest) != text]


def test_the_next_prompt_goes_on(every_template: Path | str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of thinking without a switch, of unknown formats
        chat = load_chat(every_template)
        tried = 0
        for thinking, thought in ((None, ""), (None, "Hm."), (False, "")):
            said = {"reasoning_content": thought} if thought else {}
            answer: dict[str, Any] = {"role": "assistant", "content": "", **said, **CALLS}
            try:
                turn = chat.prepare([QUESTION], tools=TOOLS, tool_choice="required", thinking=thinking)
                later = chat.prepare([QUESTION, answer, RESULT], tools=TOOLS, thinking=thinking).prompt
            except chatparsers.ChatParsersError:
                continue
            own = later[len(turn.prompt) :].partition("Oslo")[0]
            spans = reasoning_spans(turn.tree)
            closers = [text.strip() for span in spans if span.close is not None for text in first(span.close)]
            thinks = [closer for closer in closers if closer in own]
            if not later.startswith(turn.prompt) or thought not in own or (thinks and thinking is False):
                continue  # the template cuts a thought out, or writes one that nobody has thought
            if Path(every_template).name in NARROW:
                continue
            tried += 1
            places = [own.rfind(closer) + len(closer) for closer in thinks]
            if turn.stream().state.kind != "reasoning":
                places.append(0)
            for dialect in ("lark", "structural_tag"):
                judge = compile_for(engines_of(dialect)[0], str(turn.grammar(dialect)), dialect)
                assert judge.status(own).kind == "prefix", (dialect, own)
                for changed in (changed for place in places for changed in otherwise(own, place)):
                    assert judge.status(changed).kind == "rejected", (dialect, changed)
    if not tried:
        pytest.skip("the template writes no answer of calls alone after the prompt")
