"""Rollouts: the promises R1 to R6 over the templates, with random conversations."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parent))

from played import plays

OWN = sorted((Path(__file__).parents[1] / "templates_own").glob("*.jinja"))


def test_the_promises_hold_over_our_templates(amount: Callable[[int, int, int], int]) -> None:
    count: Counter[str] = Counter()
    found: list[str] = []
    for path in Random(5).sample(OWN, amount(6, 14, len(OWN))):
        plays(path, amount(3, 4, 60), count, found)
    assert not count["violations"], "\n".join(found)
    assert count["conversations"] > 10 and count["kept"] > count["answers"] // 3, count


def test_the_promises_hold_over_real_templates(
    real_templates: list[Path], amount: Callable[[int, int, int], int]
) -> None:
    count: Counter[str] = Counter()
    found: list[str] = []
    for path in Random(5).sample(real_templates, amount(3, 8, len(real_templates))):
        plays(path, amount(3, 4, 60), count, found)
    assert not count["violations"], "\n".join(found)
    assert count["conversations"] > 5, count
