"""Cases of the leaderboard through the gateway, beside llama-server's own chat endpoint on the same weights."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the package starlette is not installed")
pytest.importorskip("jsonschema", reason="the package jsonschema is not installed")

from leaderboard import Leaderboard
from measure import read_rows
from processes import servers
from promises import broken
from roads import rows

MEASURED = Path(__file__).parent / "measured" / "after.jsonl.gz"
CASES = {
    "smollm2": {"simple_python": 2, "multiple": 2, "parallel": 1},
    "gemma270": {"simple_python": 2, "multiple": 1, "irrelevance": 1},
    "qwen05": {"simple_python": 2, "multiple": 2, "live_simple": 1, "parallel": 1, "irrelevance": 1},
    "qwen15": {"simple_python": 2, "multiple": 1, "parallel": 1},
}
"""How many cases of each kind a model has nightly: it runs on one core."""


@pytest.mark.parametrize("model", CASES)
def test_answers_end_are_valid_and_no_worse_than_llama_servers(
    model: str, real: Path, gguf_of: Callable[[str], Path], explained: dict[str, str], tmp_path: Path
) -> None:
    leaderboard = Leaderboard(real / "bfcl")
    with servers(real, gguf_of(model), tmp_path) as running:
        found = list(rows(running, leaderboard, leaderboard.cases(CASES[model]), model))
    assert not (wrong := broken(found, explained)), "\n".join(wrong)


def test_what_was_measured_holds(explained: dict[str, str]) -> None:
    """The rows under docs/tables/real.md, which are there without a model."""
    assert not (wrong := broken(read_rows(MEASURED), explained)), "\n".join(wrong)


def test_the_page_shows_what_was_measured() -> None:
    root = Path(__file__).parents[2]
    command = [sys.executable, str(root / "docs" / "_real.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr
