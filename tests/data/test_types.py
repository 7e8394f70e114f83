"""A column is read by its Arrow type at every depth, whoever reads the table: no value changes in silence."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow")

from chatparsers.data import Normalize, Parse, Render
from chatparsers.data.typed import RowReport, column_values

WHEN = datetime.datetime(2026, 1, 2, 3, 4, 5, 600000)
ERROR = "error"
"""In place of a value: the row is an error that names the column."""


def of(kind: Any, value: Any) -> Any:
    return pa.array([value], kind)


def json_of(text: str, storage: Any) -> Any:
    return pa.ExtensionArray.from_storage(pa.json_(storage), pa.array([text], storage))


NESTED = '{"b": null, "c": [1, null, {"d": "x"}]}'
SAID = {"b": None, "c": [1, None, {"d": "x"}]}
UNION_PARTS = [pa.array([7]), pa.array(["x"])]
UNION_CODE = pa.array([1], pa.int8())
TYPES: Mapping[str, tuple[Any, Any, str | None]] = {
    "bool": (of(pa.bool_(), True), True, None),
    **{
        str(kind): (of(kind, 7), 7, None)
        for kind in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32())
    },
    "uint64": (of(pa.uint64(), 2**63 + 5), 2**63 + 5, None),
    **{str(kind): (of(kind, 1.5), 1.5, None) for kind in (pa.float16(), pa.float32(), pa.float64())},
    "nan": (of(pa.float64(), float("nan")), None, "not-finite"),
    "infinity": (of(pa.float32(), float("inf")), None, "not-finite"),
    **{
        str(kind): (of(kind, decimal.Decimal("1.50")), 1.5, None)
        for kind in (
            pa.decimal32(5, 2),
            pa.decimal64(5, 2),
            pa.decimal128(5, 2),
            pa.decimal256(5, 2),
        )
    },
    "whole decimal": (of(pa.decimal128(38, 0), decimal.Decimal(2**100)), 2**100, None),
    "long decimal": (
        of(pa.decimal128(30, 20), decimal.Decimal("0.12345678901234567891")),
        0.12345678901234567891,
        "rounded",
    ),
    **{str(kind): (of(kind, "x"), "x", None) for kind in (pa.string(), pa.large_string(), pa.string_view())},
    **{
        str(kind): (of(kind, b"abc"), ERROR, None)
        for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(3))
    },
    **{
        f"timestamp {unit}": (of(pa.timestamp(unit), WHEN), "2026-01-02T03:04:05.6", "as-text")
        for unit in ("ms", "us", "ns")
    },
    "timestamp s": (of(pa.timestamp("s"), 0), "1970-01-01T00:00:00", "as-text"),
    "timestamp zone": (
        of(pa.timestamp("ns", "+02:00"), 1_000_000_001),
        "1970-01-01T02:00:01.000000001+02:00",
        "as-text",
    ),
    "timestamp beyond": (of(pa.timestamp("s"), 2**50), ERROR, None),
    "date32": (of(pa.date32(), WHEN.date()), "2026-01-02", "as-text"),
    "date64": (of(pa.date64(), WHEN.date()), "2026-01-02", "as-text"),
    "time32": (of(pa.time32("s"), 3661), "01:01:01", "as-text"),
    "time64": (of(pa.time64("ns"), 1_500_000_000), "00:00:01.5", "as-text"),
    "duration": (of(pa.duration("ms"), -1500), "-PT1.5S", "as-text"),
    "interval": (of(pa.month_day_nano_interval(), (1, 2, 3_000_000_000)), "P1M2DT3S", "as-text"),
    "list": (of(pa.list_(pa.int64()), [1, None]), [1, None], None),
    "large list": (of(pa.large_list(pa.int64()), [1]), [1], None),
    "list view": (of(pa.list_view(pa.int64()), [1]), [1], None),
    "large list view": (of(pa.large_list_view(pa.int64()), [1]), [1], None),
    "fixed-size list": (of(pa.list_(pa.int64(), 2), [1, 2]), [1, 2], None),
    "struct": (of(pa.struct([("a", pa.int64()), ("b", pa.int64())]), {"a": 1}), {"a": 1}, None),
    "struct twice": (
        pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"]),
        ERROR,
        None,
    ),
    "map": (of(pa.map_(pa.string(), pa.int64()), [("a", 1), ("b", None)]), {"a": 1, "b": None}, None),
    "empty map": (of(pa.map_(pa.string(), pa.int64()), []), {}, None),
    "map by numbers": (of(pa.map_(pa.int64(), pa.string()), [(1, "x")]), {"1": "x"}, "as-text"),
    "map twice": (of(pa.map_(pa.string(), pa.int64()), [("a", 1), ("a", 2)]), ERROR, None),
    "map of dates": (
        of(pa.map_(pa.string(), pa.list_(pa.date32())), [("a", [WHEN.date()])]),
        {"a": ["2026-01-02"]},
        "as-text",
    ),
    "dictionary": (pa.array(["x"]).dictionary_encode(), "x", None),
    "run-end": (pa.RunEndEncodedArray.from_arrays(pa.array([1], pa.int32()), pa.array(["x"])), "x", None),
    "sparse union": (pa.UnionArray.from_sparse(UNION_CODE, UNION_PARTS), "x", None),
    "dense union": (
        pa.UnionArray.from_dense(UNION_CODE, pa.array([0], pa.int32()), UNION_PARTS),
        "x",
        None,
    ),
    "json": (json_of(NESTED, pa.string()), SAID, None),
    "large json": (json_of(NESTED, pa.large_string()), SAID, None),
    "json with NaN": (json_of('{"n": NaN}', pa.string()), {"n": None}, "not-finite"),
    "json beyond": (json_of('{"n": 1e400}', pa.string()), {"n": None}, "not-finite"),
    "no json": (json_of("{", pa.string()), ERROR, None),
    "uuid": (
        pa.ExtensionArray.from_storage(pa.uuid(), of(pa.binary(16), uuid.UUID(int=5).bytes)),
        str(uuid.UUID(int=5)),
        "as-text",
    ),
    "bool8": (pa.ExtensionArray.from_storage(pa.bool8(), of(pa.int8(), 1)), True, None),
    "tensor": (
        pa.ExtensionArray.from_storage(
            pa.fixed_shape_tensor(pa.int32(), [2]), of(pa.list_(pa.int32(), 2), [1, 2])
        ),
        [1, 2],
        None,
    ),
}
"""An array of one value, the value that it is, and the code of its loss."""


def struct(**fields: Any) -> Any:
    return pa.StructArray.from_arrays(list(fields.values()), names=list(fields))


def one_list(array: Any) -> Any:
    return pa.ListArray.from_arrays(pa.array([0, len(array)], pa.int32()), array)


def called_with(value: Any) -> Any:
    """A table of one call, with the value among the arguments."""
    function = struct(name=pa.array(["f"]), arguments=struct(x=value))
    call = struct(type=pa.array(["function"]), function=function)
    message = struct(role=pa.array(["assistant"]), content=pa.array([""]), tool_calls=one_list(call))
    return pa.table({"messages": one_list(message)})


def declared_with(value: Any) -> Any:
    """A table of an output, with the value in its tool."""
    parameters = struct(type=pa.array(["object"]), default=value)
    function = struct(name=pa.array(["f"]), parameters=parameters)
    tool = struct(type=pa.array(["function"]), function=function)
    return pa.table({"output": ["Hello."], "tools": one_list(tool)})


@pytest.mark.parametrize("name", TYPES)
def test_each_type_is_its_value_or_its_columns_error(name: str) -> None:
    array, wanted, loss = TYPES[name]
    table = called_with(array)
    row = Normalize()(table).to_pylist()[0]
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        rendered = Render("hermes-2-pro")(table).select(["text", "error"]).to_pylist()[0]
        made = Parse("hermes-2-pro")(declared_with(array))
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


ARGUMENTS: list[dict[str, Any]] = [{"city": "Oslo"}, {"n": [{"deep": "x"}], "m": [1, 2]}, {}]


def rows() -> list[dict[str, Any]]:
    """Rows as people have them: arguments that are objects of different members, parts, tools with schemas."""
    out = []
    for arguments in ARGUMENTS:
        call = {"type": "function", "function": {"name": "f", "arguments": arguments}}
        schema = {"type": "object", "properties": {key: {"type": "string"} for key in arguments}}
        out.append(
            {
                "messages": [
                    {"role": "user", "content": [{"type": "text", "text": "W?"}]},
                    {"role": "assistant", "content": "", "tool_calls": [call]},
                ],
                "tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}],
            }
        )
    return out


def lines(folder: Path) -> str:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return str(path)


def from_json(folder: Path) -> Any:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    found = datasets.load_dataset(
        "json", data_files=lines(folder), split="train", cache_dir=str(folder / "c")
    )
    return found


def in_parquet(folder: Path) -> str:
    from_json(folder).to_parquet(str(folder / "rows.parquet"))
    return str(folder / "rows.parquet")


def dict_of_columns(folder: Path) -> Any:
    """As older versions of datasets had a sequence of objects."""
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    del folder
    features = datasets.Features(
        {
            "messages": {
                "role": datasets.LargeList(datasets.Value("string")),
                "content": datasets.List(datasets.Value("large_string")),
                "tool_calls": datasets.List(datasets.Json()),
            },
            "tools": datasets.List(datasets.Json()),
        }
    )
    turned = [
        {
            "messages": {
                "role": ["user", "assistant"],
                "content": ["W?", ""],
                "tool_calls": [[], row["messages"][1]["tool_calls"]],
            },
            "tools": row["tools"],
        }
        for row in rows()
    ]
    return datasets.Dataset.from_list(turned, features=features).data.table


def from_list(folder: Path) -> Any:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    del folder
    calls = rows()
    for row in calls:
        row["messages"][0]["content"] = "W?"
    return datasets.Dataset.from_list(calls).data.table


def by_polars(folder: Path) -> Any:
    polars = pytest.importorskip("polars", reason="polars is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return polars.read_parquet(in_parquet(folder))


def by_pandas(folder: Path) -> Any:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    return pandas.DataFrame({key: [json.dumps(row[key]) for row in rows()] for key in ("messages", "tools")})


def by_ray(folder: Path) -> Any:
    ray = pytest.importorskip("ray", reason="ray is not installed")
    path = in_parquet(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray warns of its own options
        import ray.data

        try:
            ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
            return pa.concat_tables(ray.data.read_parquet(path).iter_batches(batch_format="pyarrow"))
        finally:
            ray.shutdown()


def by_duckdb(folder: Path) -> Any:
    duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
    connection = duckdb.connect()
    connection.execute("set arrow_lossless_conversion = true")
    columns = "{messages: 'JSON[]', tools: 'JSON[]'}"
    return connection.sql(f"from read_json('{lines(folder)}', columns = {columns})").to_arrow_table()


READERS: Mapping[str, Callable[[Path], Any]] = {
    "datasets from_list": from_list,
    "datasets json": lambda folder: from_json(folder).data.table,
    "datasets arrow": lambda folder: from_json(folder).with_format("arrow")[:],
    "datasets dict of columns": dict_of_columns,
    "parquet": lambda folder: pa.parquet.read_table(in_parquet(folder)),
    "polars": by_polars,
    "pandas": by_pandas,
    "ray": by_ray,
    "duckdb": by_duckdb,
}


@pytest.mark.parametrize(
    "reader", [pytest.param(name, marks=[pytest.mark.nightly] * (name == "ray")) for name in READERS]
)
def test_rows_say_the_same_through_every_reader(reader: str, tmp_path: Path) -> None:
    table = READERS[reader](tmp_path)
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
