"""Rollouts: the promises R1 to R6 over the templates, with random conversations."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from played import plays

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
