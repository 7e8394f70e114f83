"""A column is read by its Arrow type at every depth, whoever reads the table: no value changes in silence."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import _columns as TABLE
import pytest

pa = pytest.importorskip("pyarrow")

from chatparsers.data import Normalize, Parse, Render
from chatparsers.data.typed import RowReport, column_values

ROOT = Path(__file__).parents[2]

TYPES, READERS, ARGUMENTS, ERROR = TABLE.TYPES, TABLE.READERS, TABLE.ARGUMENTS, TABLE.ERROR


@pytest.mark.parametrize("name", TYPES)
def test_each_type_is_its_value_or_its_columns_error(name: str) -> None:
    array, wanted, loss = TYPES[name]
    table = TABLE.called_with(array)
    row = Normalize()(table).to_pylist()[0]
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        rendered = Render("hermes-2-pro")(table).select(["text", "error"]).to_pylist()[0]
        made = Parse("hermes-2-pro")(TABLE.declared_with(array))
        parsed = made.select(["content", "error"]).to_pylist()[0]
    kept = Normalize()(pa.table({"messages": [[{"role": "user", "content": "Hi"}]], "x": array})).to_pylist()[
        0
    ]
    assert kept["error"] is None
    if wanted == ERROR:
        for error in (row["error"], rendered["error"]):
            assert (
                error.startswith("messages[0].tool_calls[0].function.arguments.x")
                and "expected a value" in error
            )
        assert parsed["error"].startswith("tools[0].function.parameters.default")
        assert kept["losses"] == ["as-text"] and isinstance(json.loads(kept["extra"])["x"], str)
        return
    assert row["error"] is None and row["losses"] == ([] if loss is None else [loss])
    arguments = row["messages"][0]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"x": wanted}
    assert kept["losses"] == row["losses"]
    assert wanted in (None, {}) or json.loads(kept["extra"])["x"] == wanted
    if loss == "not-finite":
        assert rendered["error"].startswith("messages[0]") and parsed["error"].startswith("tools[0]")
        return
    assert rendered["error"] is None and json.dumps(wanted) in rendered["text"]
    assert parsed["error"] is None and parsed["content"] == "Hello."


@pytest.mark.parametrize("name", [name for name in TYPES if "union" not in name])
def test_slices_chunks_and_nulls_are_read_where_they_stand(name: str) -> None:
    array, _, _ = TYPES[name]
    column = pa.chunked_array([pa.concat_arrays([array, pa.nulls(1, array.type), array]), array])
    report = RowReport("x")
    found = report.settled("x", column_values(column.slice(1)))
    one = report.settled("x", column_values(array))[0]
    assert found == [None, one, one]


@pytest.mark.parametrize(
    "reader", [pytest.param(name, marks=[pytest.mark.nightly] * (name == "ray")) for name in READERS]
)
def test_rows_say_the_same_through_every_reader(reader: str, tmp_path: Path) -> None:
    try:
        table = READERS[reader](tmp_path)
    except ModuleNotFoundError as error:
        pytest.skip(f"{error.name} is not installed")
    normal = Normalize()(table).to_pylist()
    assert [row["error"] for row in normal] == [None] * len(ARGUMENTS)
    assert [row["losses"] for row in normal] == [[]] * len(ARGUMENTS)
    assert [row["messages"][0]["content"] for row in normal] == ["W?"] * len(ARGUMENTS)
    found = [json.loads(row["messages"][1]["tool_calls"][0]["function"]["arguments"]) for row in normal]
    assert found == ARGUMENTS
    tools = [set(json.loads(row["tools"])[0]["function"]["parameters"]["properties"]) for row in normal]
    assert tools == [set(arguments) for arguments in ARGUMENTS]
    rendered = Render("hermes-2-pro")(table)
    assert rendered["error"].to_pylist() == [None] * len(ARGUMENTS)
    for text, arguments in zip(rendered["text"].to_pylist(), ARGUMENTS, strict=True):
        assert json.dumps(arguments) in text and "user\nW?<" in text


def test_a_row_blames_the_columns_type() -> None:
    error = Render("hermes-2-pro")(pa.table({"messages": [[1]]}))["error"].to_pylist()[0]
    assert "list<item: int64>" in error and "template" not in error


def test_the_page_shows_what_the_operations_do() -> None:
    """Each type's row is made anew; no cell of it changes a value without a code."""
    for name, cells in TABLE.types().items():
        for code in ("as-text", "rounded", "not-finite"):
            named = [cell.endswith(f", {code}") for cell in cells if cell != "error"]
            assert len(set(named)) < 2, (name, cells)
    assert TABLE.main(["--check"]) == 0, "run python docs/tables/_columns.py"
    through = json.loads(TABLE.DATA.read_text("utf-8"))["readers"]
    assert through.keys() == READERS.keys()
    assert {cell for cells in through.values() for cell in cells.values()} == {"equal"}
