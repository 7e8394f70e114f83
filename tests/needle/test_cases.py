"""What models wrote, as data: cases/<format>/*.json (wild and golden) and found/*.json (frozen finds), in all cuts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chatparsers import get_format, list_formats
from chatparsers.testing import load_cases, run_case, update_golden
from chatparsers.testing.cases import bound, check_case, observe
from chatparsers.testing.plugin import CUTS, add_record

_HERE = Path(__file__).parent
_FOLDERS = sorted(folder for folder in (_HERE / "cases").iterdir() if folder.is_dir())


def _cases() -> list[tuple[str, Path, dict[str, Any]]]:
    cases = [(folder.name, path, case) for folder in _FOLDERS for path, case in load_cases(folder)]
    return cases + [(case["format"], path, case) for path, case in load_cases(_HERE / "found")]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case_file" not in metafunc.fixturenames:
        return
    only = metafunc.config.getoption("--chatparsers-format")
    chosen = [one for one in _cases() if only is None or one[0] == get_format(only).name]
    metafunc.parametrize("case_file", [pytest.param(one, id=f"{one[0]}-{one[1].stem}") for one in chosen])


@pytest.mark.one_in(4, quick=64)
def test_case(case_file: tuple[str, Path, dict[str, Any]], request: pytest.FixtureRequest) -> None:
    name, path, case = case_file
    option = request.config.getoption
    format = get_format(name)
    assert format.name == name, f"the folder is not named as the format: {format.name}"
    if path.name.startswith("golden-") and option("--update-goldens"):
        update_golden(format, path)
        case = json.loads(path.read_text(encoding="utf-8"))
    counts = run_case(format, case, cuts=request.config.stash[CUTS])
    add_record(request, {"case": counts})


def test_each_case_is_read_whole_in_each_run() -> None:
    """In a quick run too, which draws one of many cases for the test above: a promise that is taken out shows here."""
    wrong = []
    for name, path, case in _cases():
        if "expect" in case or "message" in case:
            turn = bound(get_format(name), case)
            message = turn.parse(case["text"])
            try:
                check_case(case, message, observe(turn, message))
            except AssertionError as error:
                wrong.append(f"{name}, {path.name}: {error}")
    assert not wrong, "\n".join(wrong)


def test_every_format_has_cases_and_goldens() -> None:
    assert {folder.name for folder in _FOLDERS} <= {info.name for info in list_formats()}
    for info in list_formats():
        if info.origin == "chatparsers":
            names = [path.name for path in (_HERE / "cases" / info.name).glob("*.json")]
            goldens = sum(name.startswith("golden-") for name in names)
            assert goldens >= 2, f"{info.name}: two golden cases are wanted, there are {goldens}"
            assert len(names) > goldens, f"{info.name}: a case of what models write in the wild is wanted"
