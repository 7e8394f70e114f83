"""Rollouts: the promises R1 to R6 over all templates, with random conversations."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from played import plays

OWN = sorted((Path(__file__).parents[1] / "templates_own").glob("*.jinja"))


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_the_promises_hold(path: Path, amount: Callable[[int, int, int], int]) -> None:
    count: Counter[str] = Counter()
    found: list[str] = []
    plays(path, amount(2, 3, 60), count, found)
    assert not count["violations"], "\n".join(found)
    assert count["conversations"] or count["unwritten"] or count["refused"]
