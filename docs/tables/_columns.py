"""What a column of each Arrow type is to each operation, through each reader: ``columns.md``.

    python docs/tables/_columns.py                # writes the page
    python docs/tables/_columns.py --check        # fails if the page is another one
    python docs/tables/_columns.py --run          # reads rows through each reader anew first: ``columns.json``

Needs pyarrow and tokenizers; ``--run`` also pandas, datasets, polars, duckdb and ray. The first table is made anew each
time. Each cell is a value that came out, or the error of the row, so nothing in it is silent: what is no longer the
value of the column has a code beside it.
"""

from __future__ import annotations

import argparse
import datetime
import decimal
import json
import sys
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from _page import put

from chatparsers.data import Encode, Normalize, Parse, Render
from chatparsers.data.rows import _said

HERE = Path(__file__).resolve().parent
PAGE, DATA = HERE / "columns.md", HERE / "columns.json"
FORMAT = "hermes-2-pro"
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
    import datasets

    found = datasets.load_dataset(
        "json", data_files=lines(folder), split="train", cache_dir=str(folder / "c")
    )
    return found


def in_parquet(folder: Path) -> str:
    from_json(folder).to_parquet(str(folder / "rows.parquet"))
    return str(folder / "rows.parquet")


def dict_of_columns(folder: Path) -> Any:
    """As older versions of datasets had a sequence of objects."""
    import datasets

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
    import datasets

    del folder
    calls = rows()
    for row in calls:
        row["messages"][0]["content"] = "W?"
    return datasets.Dataset.from_list(calls).data.table


def by_polars(folder: Path) -> Any:
    import polars

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return polars.read_parquet(in_parquet(folder))


def by_pandas(folder: Path) -> Any:
    import pandas

    return pandas.DataFrame({key: [json.dumps(row[key]) for row in rows()] for key in ("messages", "tools")})


def by_ray(folder: Path) -> Any:
    import ray

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
    import duckdb

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


def normalized(array: Any, _: str) -> str:
    """The argument that `Normalize` makes of a value in a call."""
    row = Normalize()(called_with(array)).to_pylist()[0]
    if row["error"]:
        return "error"
    arguments = json.loads(row["messages"][0]["tool_calls"][0]["function"]["arguments"])
    return _with_losses(json.dumps(arguments["x"], ensure_ascii=False), row["losses"])


def beside(array: Any, _: str) -> str:
    """What `Normalize` keeps in ``extra`` of a column that is no part of the messages."""
    table = pa.table({"messages": [[{"role": "user", "content": "Hi"}]], "x": array})
    row = Normalize()(table).to_pylist()[0]
    extra = json.loads(row["extra"] or "{}")
    kept = json.dumps(extra["x"], ensure_ascii=False) if "x" in extra else "nothing"
    return _with_losses(kept, row["losses"])


def rendered(array: Any, _: str) -> str:
    """The argument that `Render` writes into a prompt."""
    with _heard() as warned:
        row = Render(FORMAT)(called_with(array)).select(["text", "error"]).to_pylist()[0]
    return "error" if row["error"] else _with_losses(_argument(row["text"]), _codes(warned))


def encoded(array: Any, tokenizer: str) -> str:
    """The argument that the ids of `Encode` spell."""
    from tokenizers import Tokenizer

    with _heard() as warned:
        made = Encode(FORMAT, tokenizer=tokenizer)(called_with(array))
    row = made.select(["input_ids", "error"]).to_pylist()[0]
    if row["error"]:
        return "error"
    text = Tokenizer.from_file(tokenizer).decode(row["input_ids"])
    return _with_losses(_argument(text), _codes(warned))


def parsed(array: Any, _: str) -> str:
    """Whether `Parse` reads a tool whose schema has the value."""
    with _heard() as warned:
        row = Parse(FORMAT)(declared_with(array)).select(["content", "error"]).to_pylist()[0]
    return "error" if row["error"] else ", ".join(("read", *_codes(warned)))


OPERATIONS: Mapping[str, Callable[[Any, str], str]] = {
    "`Normalize`": normalized,
    "`Render`": rendered,
    "`Encode`": encoded,
    "`Parse`, in a tool": parsed,
    "`Normalize`, another column": beside,
}


def _argument(text: str) -> str:
    call = text[text.index("<tool_call>") + len("<tool_call>") : text.index("</tool_call>")]
    return json.dumps(json.loads(call)["arguments"]["x"], ensure_ascii=False)


@contextmanager
def _heard() -> Iterator[list[warnings.WarningMessage]]:
    """What is warned of within, also what this process was warned of before."""
    _said.clear()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield warned


def _codes(warned: list[warnings.WarningMessage]) -> list[str]:
    """The codes that warnings name."""
    texts = " ".join(str(one.message) for one in warned)
    return [code for code in ("as-text", "rounded", "not-finite") if code in texts]


def _with_losses(text: str, losses: list[str]) -> str:
    return ", ".join((f"`{text}`", *losses)).replace("`nothing`", "nothing")


def types() -> dict[str, list[str]]:
    """For each type the cells of its row."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = {letter: at for at, letter in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    tokenizer = Tokenizer(models.BPE(letters, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = str(Path(folder) / "tokenizer.json")
        tokenizer.save(path)
        return {
            name: [make(array, path) for make in OPERATIONS.values()] for name, (array, *_) in TYPES.items()
        }


def read_through(reader: str) -> dict[str, str]:
    """What each operation makes of rows that came through a reader."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = READERS[reader](Path(folder))
        normal = Normalize()(table).to_pylist()
        texts = Render(FORMAT)(table).select(["text", "error"]).to_pylist()
    return {
        "`Normalize`": _told(
            row["error"] or row["losses"] or _wrong_arguments(row, at) for at, row in enumerate(normal)
        ),
        "`Render`": _told(
            row["error"] or json.dumps(ARGUMENTS[at]) not in row["text"] for at, row in enumerate(texts)
        ),
    }


def _wrong_arguments(row: Any, at: int) -> bool:
    return bool(json.loads(row["messages"][1]["tool_calls"][0]["function"]["arguments"]) != ARGUMENTS[at])


def _told(faults: Any) -> str:
    wrong = sum(map(bool, faults))
    return f"{wrong} of {len(ARGUMENTS)} rows differ" if wrong else "equal"


def page(through: Mapping[str, Any]) -> str:
    """The page. ``through``: the data of the readers."""
    lines = [
        "# Columns by their Arrow type",
        "",
        "What comes out of a value of each type, in an argument of a call, in the schema of a tool, and in a column",
        "of its own. A code after a value says that it is not the column's value any more: `Normalize` has it in",
        "`losses`, the others warn ([the codes](losses.md)). `error`: the row has an error that names the",
        "column's path and type, and the other rows are made.",
        "",
        f"| Type | {' | '.join(OPERATIONS)} |",
        "|---|" + "---|" * len(OPERATIONS),
    ]
    for name, cells in types().items():
        lines.append(f"| {name} | " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    versions = ", ".join(f"{name} {number}" for name, number in through["versions"].items())
    lines += [
        "",
        "## Through readers",
        "",
        "Rows with arguments of different members, content in parts and tools with schemas, read on "
        f"{through['date']} with {versions}. `equal`: the same arguments as in the file, and no loss.",
        "",
        "| Reader | `Normalize` | `Render` |",
        "|---|---|---|",
    ]
    for reader, cells in through["readers"].items():
        lines.append(f"| {reader} | {cells['`Normalize`']} | {cells['`Render`']} |")
    lines += ["", "`python docs/tables/_columns.py` makes the page, with `--run` the readers' rows too."]
    return "\n".join(lines) + "\n"


_PACKAGES = ("pyarrow", "datasets", "polars", "pandas", "ray", "duckdb")


def main(argv: list[str] | None = None) -> int:
    """Writes or checks the page, or makes the readers' data anew."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--run", action="store_true")
    asked = parser.parse_args(argv)
    if asked.run:
        data = {
            "date": f"{datetime.datetime.now():%Y-%m-%d}",
            "versions": {name: version(name) for name in _PACKAGES},
            "readers": {reader: read_through(reader) for reader in READERS},
        }
        DATA.write_text(json.dumps(data, ensure_ascii=False, indent=1) + "\n", "utf-8")
    return put(PAGE, page(json.loads(DATA.read_text("utf-8"))), asked.check)


if __name__ == "__main__":
    sys.exit(main())
