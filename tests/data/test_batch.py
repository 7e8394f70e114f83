"""``chatparsers batch``: equal parts however it runs, stops and goes on; faults are said by name."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tables import TOOLS, Draw

import chatparsers
from chatparsers.cli.main import main

pa = pytest.importorskip("pyarrow", reason="the package pyarrow is not installed")

import pyarrow.parquet  # noqa: F401

from chatparsers.data import Parse
from chatparsers.data.batch import units
from chatparsers.testing.tiny import tiny_model

FORMAT = "hermes-2-pro"
ROOT = Path(chatparsers.__file__).parents[1]


def rows(draw: Draw, count: int) -> list[dict[str, Any]]:
    format = chatparsers.get_format(FORMAT)
    found = []
    for number in range(count):
        message = draw.answer()
        message.pop("reasoning_content", None)
        text = format.render(message, TOOLS)
        found.append({"row_id": str(number), "output": text if number % 9 else text[:-5], "tools": TOOLS})
    return found


def as_lines(path: Path, found: list[Any]) -> Path:
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in found)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    elif path.suffix == ".zst":
        with pa.CompressedOutputStream(str(path), "zstd") as file:
            file.write(text.encode())
    else:
        path.write_text(text, encoding="utf-8")
    return path


def batch(*arguments: Any) -> int:
    return main(["batch", *map(str, arguments)])


def read(folder: Path) -> list[dict[str, Any]]:
    """The rows of all parts, in the order of the input."""
    tables = [pa.parquet.read_table(path) for path in sorted(folder.glob("*.parquet"))]
    assert len({str(table.schema) for table in tables}) == 1
    return [row for table in tables for row in table.to_pylist()]


def without(found: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key not in names} for row in found]


@pytest.mark.nightly
def test_every_kind_of_file_and_every_number_of_workers_gives_the_same(tmp_path: Path, draw: Draw) -> None:
    found = rows(draw, 40)
    table = pa.Table.from_pylist([{**row, "tools": json.dumps(row["tools"])} for row in found])
    expected = without(Parse(FORMAT)(table).to_pylist(), "tools")
    files = [as_lines(tmp_path / f"rows{end}", found) for end in (".jsonl", ".jsonl.gz", ".jsonl.zst")]
    files.append(tmp_path / "rows.parquet")
    pa.parquet.write_table(table, files[-1], row_group_size=16)
    files.append(tmp_path / "rows.arrow")
    with pa.ipc.new_file(files[-1], table.schema) as file:
        file.write_table(table, max_chunksize=16)
    for number, path in enumerate(files):
        out = tmp_path / f"out{number}"
        assert batch("parse", path, "--model", FORMAT, "--out", out, "--workers", 1, "--lines", 16) == 0
        assert sorted(part.name for part in out.glob("*.parquet")) == [
            "00000-0000.parquet",
            "00000-0001.parquet",
            "00000-0002.parquet",
        ]
        assert without(read(out), "tools", "extra") == expected, path.name
    out = tmp_path / "two"
    assert batch("parse", files[0], "--model", FORMAT, "--out", out, "--workers", 2, "--lines", 16) == 0
    assert read(out) == read(tmp_path / "out0")


def test_a_table_is_what_its_lines_are(tmp_path: Path) -> None:
    """A folder that a batch wrote, too: its parts are read back as they are."""
    asked = {"role": "user", "content": "Hi"}
    found = [
        {"messages": [asked, {"role": "assistant", "content": f"Hello {number}."}]} for number in range(5)
    ]
    lines, table = as_lines(tmp_path / "rows.jsonl", found), tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.Table.from_pylist(found), table)
    normalized = tmp_path / "normalized"
    assert batch("normalize", lines, "--out", normalized, "--workers", 1) == 0
    for path in (table, normalized):
        out = tmp_path / f"again-{path.name}"
        assert batch("normalize", path, "--out", out, "--workers", 1) == 0
        assert without(read(out), "extra") == without(read(normalized), "extra"), path.name
    translated = tmp_path / "translated"
    given = ["--model", FORMAT, "--to", "llama-3-x", "--out", translated, "--workers", 1]
    assert batch("translate", normalized, *given) == 0
    assert [f"Hello {number}." in row["text"] for number, row in enumerate(read(translated))] == [True] * 5


def test_ids_of_calls_follow_from_the_file_and_the_row(tmp_path: Path, draw: Draw) -> None:
    found = without(rows(draw, 12), "row_id") * 2
    one = as_lines(tmp_path / "rows.jsonl", found)
    ids = []
    for size in (5, 100):
        out = tmp_path / str(size)
        assert batch("parse", one, "--model", FORMAT, "--out", out, "--workers", 1, "--lines", size) == 0
        ids.append([call["id"] for row in read(out) for call in row["tool_calls"]])
    assert ids[0] == ids[1] and len(set(ids[0])) == len(ids[0]) > 10


def test_a_line_without_end_is_a_wrong_row(
    tmp_path: Path, draw: Draw, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small packed file may hold one line of any length."""
    monkeypatch.setattr(units, "LONGEST", 100_000)
    found = rows(draw, 6)
    text = "".join(json.dumps(row) + "\n" for row in found[:3]) + json.dumps({"output": "x" * 350_000}) + "\n"
    text += "".join(json.dumps(row) + "\n" for row in found[3:])
    plain, packed = tmp_path / "rows.jsonl", tmp_path / "packed.jsonl.gz"
    plain.write_text(text, encoding="utf-8")
    packed.write_bytes(gzip.compress(text.encode()))
    for number, path in enumerate((plain, packed)):
        out = tmp_path / f"out{number}"
        assert batch("parse", path, "--model", FORMAT, "--out", out, "--workers", 1, "--lines", 2) == 0
        (error,) = map(json.loads, (out / "errors.jsonl").read_text().splitlines())
        assert error["row"] == 3 and "at most 100,000 bytes" in error["error"]
        assert [row["error"] is None for row in read(out)] == [True] * 3 + [False] + [True] * 3


def test_wrong_rows_are_named_and_a_change_of_columns_loses_nothing(
    tmp_path: Path, draw: Draw, capsys: pytest.CaptureFixture[str]
) -> None:
    found: list[Any] = [{**row, "n": 1} for row in rows(draw, 1020)]
    found[3], found[5] = "not json", "[1]"
    found[1010] = {**found[1010], "late": {"a": [None]}}
    found[1012] = {**found[1012], "n": "one"}
    found.insert(7, "")
    path, out = as_lines(tmp_path / "rows.jsonl", found), tmp_path / "out"
    arguments = ["parse", path, "--model", FORMAT, "--out", out, "--workers", 1, "--json"]
    assert batch(*arguments, "--lines", 600) == 0
    said = capsys.readouterr()
    assert f"{path}, row 1011: the column 'late' is new" in said.err
    assert f"{path}, row 1013: 'n' is str, before it was int" in said.err
    errors = [json.loads(line) for line in (out / "errors.jsonl").read_text().splitlines()]
    assert [(error["file"], error["row"], error["line"]) for error in errors] == [
        (str(path), 3, 4),
        (str(path), 5, 6),
    ]
    summary = json.loads(said.out)
    assert (summary["rows"], summary["errors"]) == (1020, 2)
    made = read(out)
    assert json.loads(made[3]["extra"]) == {"line": "not json"}
    assert json.loads(made[1010]["extra"]) == {"late": {"a": [None]}}
    assert json.loads(made[1012]["extra"]) == {"n": "one"} and made[1012]["n"] is None
    assert summary["broken"] == sum(not row["complete"] for row in made if row["error"] is None)


def test_a_table_of_other_columns_loses_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = pa.table({"row_id": ["a"], "output": ["one"], "n": [1]})
    other = pa.table({"row_id": ["b"], "output": ["two"], "n": ["x"], "late": [3]})
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for table, path in zip((first, other), paths, strict=True):
        pa.parquet.write_table(table, path)
    assert batch("parse", *paths, "--model", FORMAT, "--out", tmp_path / "out", "--workers", 1) == 0
    said = capsys.readouterr().err
    assert f"{paths[1]}: the column 'late' is new" in said and "'n' is string, before it was int64" in said
    one, two = read(tmp_path / "out")
    assert (one["n"], one["extra"], one["content"]) == (1, None, "one")
    assert (two["n"], json.loads(two["extra"]), two["content"]) == (None, {"n": "x", "late": 3}, "two")


def test_a_batch_goes_on_where_it_was_killed(tmp_path: Path, draw: Draw) -> None:
    path = as_lines(tmp_path / "rows.jsonl", rows(draw, 600))
    whole, out = tmp_path / "whole", tmp_path / "out"
    common = ["parse", path, "--model", FORMAT, "--lines", 20]
    assert batch(*common, "--out", whole, "--workers", 1) == 0
    command = [sys.executable, "-m", "chatparsers", "batch", *common, "--out", out, "--workers", "1"]
    process = subprocess.Popen(list(map(str, command)), cwd=ROOT, stdout=subprocess.DEVNULL)
    while process.poll() is None and len(list(out.glob("*.parquet"))) < 3:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before = {part.name: part.stat().st_mtime_ns for part in out.glob("*.parquet")}
    assert 3 <= len(before) < 30, "it was killed too late to show anything"
    assert batch(*common, "--out", out, "--workers", 1) == 2, "only --resume goes on"
    assert batch(*common, "--out", out, "--workers", 1, "--resume") == 0
    assert read(out) == read(whole)
    assert before.items() <= {part.name: part.stat().st_mtime_ns for part in out.glob("*.parquet")}.items()
    assert not list(out.glob("*.tmp"))


def test_resume_refuses_other_inputs_and_options_by_name(
    tmp_path: Path, draw: Draw, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = as_lines(tmp_path / "rows.jsonl", rows(draw, 20)), tmp_path / "out"
    common = ["parse", path, "--out", out, "--workers", 1, "--lines", 10]
    assert batch(*common, "--model", FORMAT) == 0
    capsys.readouterr()
    assert batch(*common, "--model", "qwen3", "--resume") == 2
    assert "model ('hermes-2-pro', now 'qwen3')" in capsys.readouterr().err
    as_lines(path, rows(draw, 21))
    assert batch(*common, "--model", FORMAT, "--resume") == 2
    assert f"input {path} (size or time)" in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(signal, "SIGXFSZ"), reason="this system has no limit of a file's size")
@pytest.mark.nightly
def test_a_part_that_cannot_be_written_leaves_no_half_of_it(tmp_path: Path, draw: Draw) -> None:
    found = rows(draw, 60)
    found[45]["output"] = "".join(chr(0x4E00 + draw.random.randrange(20000)) for _ in range(200_000))
    path, out = as_lines(tmp_path / "rows.jsonl", found), tmp_path / "out"
    common = ["parse", str(path), "--model", FORMAT, "--out", str(out), "--workers", "1", "--lines", "20"]
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000));"
        "from chatparsers.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited, "batch", *common],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1 and "go on with --resume" in done.stderr
    assert [part.name for part in sorted(out.iterdir())] == [
        "00000-0000.parquet",
        "00000-0001.parquet",
        "manifest.json",
    ]
    assert batch(*common, "--resume") == 0
    assert [row["row_id"] for row in read(out)] == [row["row_id"] for row in found]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["parse", "none.jsonl", "--out", "o", "--model", FORMAT], "none.jsonl: no such file"),
        (["parse", "{rows}", "--model", FORMAT], "Say --out DIR"),
        (["parse", "{rows}", "--out", "{rows}", "--model", FORMAT], "expected a folder, found a file"),
        (["parse", "{rows}", "--out", "o"], "which model?"),
        (["parse", "{rows}", "--out", "o", "--model", "no-such"], "no-such: expected a model's folder"),
        (["parse", "{rows}", "--out", "o", "--model", FORMAT, "--output", "oops"], "no column 'oops'"),
        (["translate", "{rows}", "--out", "o"], "required: --to"),
        (["parse", "{list}", "--out", "o", "--model", FORMAT], "expected one JSON object on each line"),
        (["parse", "{cut}", "--out", "o", "--model", FORMAT], "cut.jsonl.gz"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    draw: Draw,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    path = as_lines(tmp_path / "rows.jsonl", rows(draw, 3))
    (tmp_path / "list.json").write_text("[\n{}\n]")
    packed = as_lines(tmp_path / "whole.jsonl.gz", rows(draw, 300)).read_bytes()
    (tmp_path / "cut.jsonl.gz").write_bytes(packed[: len(packed) // 2])
    names = {"rows": path, "list": tmp_path / "list.json", "cut": tmp_path / "cut.jsonl.gz"}
    assert batch(*(one.format(**names) for one in arguments), "--workers", 1) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not list(tmp_path.glob("o/*.parquet"))


@pytest.mark.parametrize("lines", ["", "{broken\n[1]\n"])
def test_a_file_without_a_row_has_no_columns_to_miss(lines: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(lines)
    assert batch("parse", path, "--model", FORMAT, "--out", tmp_path / "out", "--workers", 1) == 0
    found = read(tmp_path / "out") if lines else []
    assert [bool(row["error"]) for row in found] == [True] * len(lines.splitlines())


def test_lines_go_through_standard_input_and_output(
    tmp_path: Path, draw: Draw, capsys: pytest.CaptureFixture[str]
) -> None:
    path = as_lines(tmp_path / "rows.jsonl", rows(draw, 30))
    assert batch("parse", path, "--model", FORMAT, "--out", "-", "--lines", 7) == 0
    said = capsys.readouterr()
    made = [json.loads(line) for line in said.out.splitlines()]
    assert batch("parse", path, "--model", FORMAT, "--out", tmp_path / "out", "--workers", 1) == 0
    assert made == read(tmp_path / "out") and "rows        30" in said.err
    with open(path, "rb") as file:
        done = subprocess.run(
            [sys.executable, "-m", "chatparsers", "batch", "parse", "-", "--model", FORMAT, "--out", "-"],
            stdin=file,
            capture_output=True,
            cwd=ROOT,
            check=True,
        )
    again = [json.loads(line) for line in done.stdout.splitlines()]
    assert without(again, "extra") == without(made, "extra")


ASKS = [{"role": "user", "content": text} for text in ("One?", "Two?")]
THOUGHT = {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}
THOUGHTS = [
    {"messages": [ASKS[0], THOUGHT, ASKS[1]]},
    {"messages": [ASKS[0], THOUGHT, ASKS[1], THOUGHT]},
    {"messages": 1},
]
"""The template drops the thought of an earlier answer, which is context then."""
LONG = {"messages": [ASKS[0], {"role": "assistant", "content": "Yes, it is one. " * 9}]}
LONGS = [LONG, LONG, {"messages": ASKS[:1]}, {"messages": 1}]
ENCODED: dict[str, tuple[list[Any], str, list[int], set[int], int]] = {
    # The rows, the flags, the lengths of what is encoded, the rows that are wrong, and how many count nothing.
    "a thought that is dropped": (THOUGHTS, "", [41, 66], {2}, 1),
    "a thought as it was sampled": (THOUGHTS, "--as-sampled", [36, 36, 65], {2}, 0),
    "long rows are cut": (LONGS, "--max-length 40 --on-long cut", [40, 40, 12], {3}, 1),
    "long rows are cut on the left": (LONGS, "--max-length 40 --on-long cut-left", [40, 40, 12], {3}, 1),
    "long rows are dropped": (LONGS, "--max-length 40 --on-long drop", [12], {3}, 1),
    "long rows are wrong": (LONGS, "--max-length 40 --on-long error", [12], {0, 1, 3}, 1),
    "empty rows are dropped": (LONGS, "--max-length 40 --on-long drop --drop-empty", [], {3}, 0),
}


@pytest.mark.parametrize("name", ENCODED)
def test_what_is_encoded_of_long_and_of_empty_rows(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error is told with the number of its own row."""
    lines, flags, lengths, wrong, uncounted = ENCODED[name]
    tokenizer, out = tmp_path / "tokenizer.json", tmp_path / "out"
    tiny_model("qwen3").tokenizer.save(str(tokenizer))
    given = as_lines(tmp_path / "rows.jsonl", lines)
    options = ["--model", "qwen3", "--tokenizer", tokenizer, "--out", out, "--json", *flags.split()]
    assert batch("encode", given, *options) == 0
    stats = json.loads(capsys.readouterr().out)
    rows = read(out)
    made = [row for row in rows if row["error"] is None]
    assert [row["length"] for row in made] == lengths
    assert all(row["truncated"] == (row["length"] == 40 and "cut" in flags) for row in made)
    told = [json.loads(line)["row"] for line in (out / "errors.jsonl").read_text().splitlines()]
    assert (set(told), len(told)) == (wrong, len(wrong))
    assert (stats["rows"], stats["errors"], stats["uncounted"]) == (len(rows), len(wrong), uncounted)


def test_outputs_become_messages_and_these_become_samples(tmp_path: Path) -> None:
    """The folder that one batch wrote is the input of the next: without the list of its errors."""
    tokenizer = tmp_path / "tokenizer.json"
    tiny_model("qwen3").tokenizer.save(str(tokenizer))
    call = '<tool_call>\n{"name": "now", "arguments": {"in": "Oslo"}}\n</tool_call>'
    ask = [{"role": "user", "content": "What time is it?"}]
    given = as_lines(
        tmp_path / "rows.jsonl", [{"messages": ask, "output": call}, {"messages": 1, "output": "Hi"}]
    )
    given.write_text(given.read_text() + "{\n")
    parsed, encoded = tmp_path / "parsed", tmp_path / "encoded"
    assert batch("parse", given, "--model", "qwen3", "--append", "messages", "--out", parsed) == 0
    assert (parsed / "errors.jsonl").read_text().strip()
    assert batch("encode", parsed, "--model", "qwen3", "--tokenizer", tokenizer, "--out", encoded) == 0
    first, *others = read(encoded)
    assert [row["input_ids"] for row in others] == [None, None]
    counted = [id for id, mask in zip(first["input_ids"], first["loss_mask"], strict=True) if mask]
    assert tiny_model("qwen3").tokenizer.decode(counted, skip_special_tokens=False) == f"{call}<|im_end|>"
