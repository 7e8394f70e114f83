"""docs/tables/engines.md: the page is that of its data, and each column, ours or an engine's, is what is seen today."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import _engines as TABLE
import jsonschema
import pytest

TABLES = Path(__file__).parents[2] / "docs" / "tables"

DATA: dict[str, Any] = json.loads(TABLE.DATA.read_text("utf-8"))
CELLS: dict[str, list[list[str]]] = DATA["cells"]


def test_the_page_is_written_from_the_data() -> None:
    assert TABLE.main(["--check"]) == 0, "run python docs/tables/_engines.py"


@pytest.mark.parametrize("case", TABLE.SCHEMAS, ids=lambda case: case["name"])
def test_the_values_are_judged_by_jsonschema(case: dict[str, Any]) -> None:
    drafted = jsonschema.validators.validator_for(case["schema"], default=jsonschema.Draft202012Validator)
    drafted.check_schema(case["schema"])
    judge = drafted(case["schema"], format_checker=drafted.FORMAT_CHECKER)
    wrong = [value for value in case["valid"] if not judge.is_valid(value)]
    checked = case["schema"].get("format") in (None, "date", "email", "ipv4", "uuid")
    wrong += [value for value in case["invalid"] if checked and judge.is_valid(value)]
    assert not wrong


def stale(column: str, now: list[list[str]]) -> list[str]:
    """The cells of a column that are others now."""
    return [
        f"{case['name']}: {was} is {cell}"
        for case, was, cell in zip(TABLE.SCHEMAS, CELLS[column], now, strict=True)
        if was != cell
    ]


@pytest.mark.parametrize("column", TABLE.OURS)
def test_our_columns_are_true(column: str) -> None:
    dialect = TABLE.OURS[column]
    now = [TABLE.cell(case, lambda schema: TABLE.ours(dialect, schema)) for case in TABLE.SCHEMAS]
    wrong = stale(column, now)
    assert not wrong, "run python docs/tables/_engines.py --ours\n" + "\n".join(wrong)
    assert not [
        cell for cell in now if cell[0] in ("wrong", "refused") or (cell[0] == "ignored" and not cell[2])
    ]


@pytest.mark.parametrize("engine", TABLE.ENGINES)
def test_the_columns_of_engines_are_true(engine: str) -> None:
    package = (
        "xgrammar" if engine == "llama.cpp" else engine
    )  # it reads llama.cpp's grammars, which llama.json has
    try:
        found = version(package)
    except PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    if found != DATA["engines"][package]:
        pytest.skip(f"{package} {found}: the table was made with {DATA['engines'][package]}")
    wrong = stale(engine, TABLE.engine_cells(engine))
    assert not wrong, "run python docs/tables/_engines.py --run\n" + "\n".join(wrong)
