"""The campaign of `chatparsers.testing.fuzz`: a few cases of each target, and a broken promise that it must find."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from chatparsers import get_format, list_formats
from chatparsers.core.machine.instructions import CONTENT, MARKUP
from chatparsers.streams.transcript import Transcript
from chatparsers.testing import fuzz

NAMES = [info.name for info in list_formats() if info.origin == "chatparsers"]


@pytest.mark.slow
@pytest.mark.parametrize("target", sorted(fuzz.TARGETS))
def test_a_few_cases_of_each_target(target: str, amount: Callable[[int, int, int], int]) -> None:
    """Two cases for each format, and ten times as many nightly."""
    number = amount(len(NAMES) // 6, 2 * len(NAMES), 20 * len(NAMES))
    report = fuzz.campaign(NAMES, [target], seed=1, number=number)
    assert report.cases[target] == number
    assert not report.finds, "\n".join(f"{find.wrong}\n  {json.dumps(find.case)}" for find in report.finds)


@pytest.mark.pure
@pytest.mark.slow
def test_what_is_found_is_made_small_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    apply = Transcript.apply

    def lost(transcript: Transcript, items: Any, events: Any) -> None:
        apply(transcript, items, events)
        transcript.runs[:] = [(at, MARKUP if kind == CONTENT else kind) for at, kind in transcript.runs]

    monkeypatch.setattr(Transcript, "apply", lost)
    options = [
        "--minutes",
        "0.015",
        "--format",
        "hermes-2-pro",
        "--target",
        "texts",
        "--folder",
        str(tmp_path),
    ]
    assert fuzz.main(options) == 1
    assert "found" in capsys.readouterr().out.splitlines()[-1]
    written = sorted(tmp_path.glob("*.json"))
    assert written and all(len(json.loads(path.read_text())["text"]) < 60 for path in written)


FOUND = sorted((Path(__file__).parents[1] / "needle" / "fuzzed").glob("*.json"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_what_was_found_of_other_targets(path: Path) -> None:
    case = json.loads(path.read_text(encoding="utf-8"))
    assert fuzz.fault(case["target"], case["case"]) == ""


@pytest.mark.parametrize("target", sorted(set(fuzz.TARGETS) - {"texts"}))
def test_what_is_found_of_other_targets_is_written_and_read_again(
    target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = fuzz.TARGETS[target].draw(random.Random("3"), get_format("qwen3"))
    find = fuzz.Find(target, 3, case, "RuntimeError: too bad\nmore")
    paths = [fuzz.write(find, tmp_path / "found", "here") for _ in range(2)]
    assert [path.relative_to(tmp_path).as_posix() for path in paths] == [
        f"fuzzed/000{number}-{target}.json" for number in (1, 2)
    ]
    read = json.loads(paths[1].read_text(encoding="utf-8"))
    assert (read["title"], read["source"], read["target"]) == ("RuntimeError: too bad", "here", target)
    assert read["case"] == case


def compute(case: fuzz.Case) -> None:
    while "x" in case["text"]:
        pass


def wait(case: fuzz.Case) -> None:
    if "x" in case["text"]:
        Event().wait(60)


@pytest.mark.parametrize("hang", [compute, wait])
def test_a_case_that_does_not_end_is_ended(
    hang: Callable[[fuzz.Case], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fuzz, "PATIENCE", 0.05)
    target = fuzz.Target(lambda chance, format: {"format": format.name, "text": "aaxbb"}, hang)
    monkeypatch.setitem(fuzz.TARGETS, "hang", target)
    [find] = fuzz.campaign(["qwen3"], ["hang"], seed=0, number=1).finds
    assert find.wrong == "Hang: not done after 0.05 seconds" and find.case["text"] == "x"
    assert fuzz.fault("hang", find.case).startswith("Hang")


def test_the_same_seed_gives_the_same_cases() -> None:
    for target in fuzz.TARGETS.values():
        first, second = (target.draw(random.Random("7"), get_format("qwen3")) for _ in range(2))
        assert first == second
