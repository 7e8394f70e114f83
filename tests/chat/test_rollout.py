"""Rollouts: the promises R1 to R6 over the templates, with random conversations."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from dialogues import TOOLS
from played import chat_of, plays

from chatparsers.errors import ChatParsersError

OWN = sorted((Path(__file__).parents[1] / "templates_own").glob("*.jinja"))


def test_the_promises_hold_over_our_templates(amount: Callable[[int, int, int], int]) -> None:
    count: Counter[str] = Counter()
    found: list[str] = []
    for path in Random(5).sample(OWN, amount(3, 14, len(OWN))):
        plays(path, amount(2, 4, 60), count, found)
    assert not count["violations"], "\n".join(found)
    assert count["conversations"] >= 5 and count["kept"] > count["answers"] // 3, count


def test_the_promises_hold_over_real_templates(
    real_templates: list[Path], amount: Callable[[int, int, int], int]
) -> None:
    count: Counter[str] = Counter()
    found: list[str] = []
    for path in Random(5).sample(real_templates, amount(2, 8, len(real_templates))):
        plays(path, amount(2, 4, 60), count, found)
    assert not count["violations"], "\n".join(found)
    assert count["conversations"] >= 3, count


TOKENIZERS = (
    *("deepseek-v3x", "gemma-4", "llama3.1", "mistral-spm-v7"),
    *("o200k_harmony", "qwen3", "tekken-v13"),
)


def test_the_promises_hold_over_real_tokenizers(
    real_templates: list[Path], tokenizer: Callable[[str], Any], amount: Callable[[int, int, int], int]
) -> None:
    """Also with those of other models. One that cannot spell an answer of the format is counted and does not play."""
    count: Counter[str] = Counter()
    found: list[str] = []
    for name in Random(6).sample(TOKENIZERS, amount(1, 3, len(TOKENIZERS))):
        for path in Random(name).sample(real_templates, amount(2, 6, len(real_templates))):
            plays(path, amount(2, 2, 5), count, found, tokenizer=tokenizer(name))
    assert not count["violations"], "\n".join(found)
    assert count["conversations"] > 3 * count["the tokenizer cannot spell the answer"], count


def test_a_step_that_loads_a_tool_is_as_any_step(amount: Callable[[int, int, int], int]) -> None:
    """It breaks no rollout that a result in words keeps, and the tool can be called in all turns after it."""
    *shown, late = TOOLS
    name, first = late["function"]["name"], shown[0]["function"]["name"]
    asked = [{"role": "user", "content": "Bread?"}]
    call = {"id": "abcdefgh1", "type": "function", "function": {"name": first, "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": "abcdefgh1", "name": first}
    played = 0
    for path in Random(7).sample(OWN, amount(4, 12, len(OWN))):
        chat, breaks = chat_of(path), []
        for content in ("found", [{"type": "tool_reference", "tool_name": name}]):
            rollout = chat.rollout(asked, tools=shown, loaded=[late])
            assert name not in rollout.turn.tools.names()
            try:
                rollout.said({"role": "assistant", "content": "", "tool_calls": [call]})
            except ChatParsersError:  # the format has no text for this answer
                break
            rollout.append({**result, "content": content})
            breaks.append([one.reason for one in rollout.breaks])
        else:
            played += 1
            assert breaks[0] == breaks[1], path.stem
            assert rollout.turn.tools.names()[-1] == name, path.stem
            assert chat.prepare(rollout.messages, tools=shown, loaded=[late]).tools.names()[-1] == name
            rollout.sampled(chat.tokenizer.encode("Yes.").ids)  # type: ignore[union-attr]
            rollout.append({"role": "user", "content": "And?"})
            assert rollout.turn.tools.names()[-1] == name, path.stem
    assert played
