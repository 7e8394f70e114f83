"""Units of work: a row group of a file, or some lines of it. Each becomes one part, whole or not at all.

A unit does not depend on the number of workers, so a batch that goes on finds its parts again by their names.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

from ..arrow import pyarrow as pa
from .inputs import STDIN, BatchError, Input, opened

LINES = 10_000
"""So many lines are a unit, if they are not longer than `_BYTES` together."""
LONGEST = 64 * 2**20
"""How many bytes a line may have. A small packed file may hold one line of any length."""
_BYTES = 32 * 2**20
_BATCH = 1024
"""Rows that are read and written at once."""
_BATCH_BYTES = 8 * 2**20
_SHOWN = 200
"""How many bytes of a line that is too long its error shows."""


@dataclass(frozen=True)
class Unit:
    """Some rows of one input. ``group``: the number of the row group, or of the unit of lines. ``first``: its first
    row.
    ``start``, ``size``: the bytes of the lines; ``lines``: they themselves, where the file cannot be entered midway.
    ``limit``: at most so many rows."""

    file: int
    group: int
    first: int
    rows: int
    start: int = 0
    size: int = 0
    lines: bytes | None = None
    limit: int | None = None

    @property
    def name(self) -> str:
        """The name of its part."""
        return f"{self.file:05d}-{self.group:04d}.parquet"


@dataclass(frozen=True)
class Bad:
    """A line that is no JSON object."""

    text: str
    error: str


def units(inputs: Sequence[Input], lines: int = LINES, limit: int | None = None) -> Iterator[Unit]:
    """All units of the inputs, in order. Raises `BatchError` for a file that cannot be read."""
    left = limit
    for number, input in enumerate(inputs):
        if left is not None and left <= 0:
            return
        try:
            found = _line_units(number, input, lines) if input.kind == "jsonl" else _groups(number, input)
            for unit in found:
                if left is not None:
                    if left <= 0:
                        return
                    if unit.rows > left:
                        unit = Unit(**{**unit.__dict__, "rows": left, "limit": left})
                    left -= unit.rows
                yield unit
        except (OSError, EOFError, pa.ArrowInvalid) as error:
            raise BatchError(f"{input.path}: {error}") from error


def _groups(number: int, input: Input) -> Iterator[Unit]:
    first = 0
    if input.kind == "parquet":
        with pa.parquet.ParquetFile(input.path) as file:
            sizes = [file.metadata.row_group(group).num_rows for group in range(file.num_row_groups)]
    else:
        with _arrow(input) as reader:
            sizes = [reader.get_batch(group).num_rows for group in range(reader.num_record_batches)]
    for group, rows in enumerate(sizes):
        yield Unit(number, group, first, rows)
        first += rows


def _arrow(input: Input) -> Any:
    try:
        return pa.ipc.open_file(pa.memory_map(input.path))
    except pa.ArrowInvalid as error:
        raise BatchError(
            f"{input.path}: expected an Arrow file ({error}); a stream has no row groups: write it as a file or Parquet"
        ) from error


def _line_units(number: int, input: Input, most: int) -> Iterator[Unit]:
    whole = input.packed or input.path == STDIN
    with opened(input) as file:
        group = first = start = 0
        while True:
            held: list[bytes] = []
            count = size = 0
            while count < most and size < _BYTES:
                line, length = _read_line(file)
                if not line:
                    break
                if start == 0 and count == 0 and line.lstrip()[:1] == b"[":
                    raise BatchError(
                        f"{input.path}: expected one JSON object on each line, found a list: write it as JSON lines"
                    )
                count += 1
                size += length
                if whole:
                    held.append(line if length == len(line) else line + b"\n")
            if not count:
                return
            yield Unit(number, group, first, count, start, size, b"".join(held) if whole else None)
            group, first, start = group + 1, first + count, start + size


def tables_of(unit: Unit, input: Input) -> Iterator[tuple[int, Any]]:
    """The rows of a unit of Parquet or Arrow as small tables, each with the number of its first row."""
    first = unit.first
    left = unit.rows
    if input.kind == "parquet":
        with pa.parquet.ParquetFile(input.path) as file:
            for batch in file.iter_batches(batch_size=_BATCH, row_groups=[unit.group]):
                table = pa.Table.from_batches([batch.slice(0, left)])
                if not table.num_rows:
                    return
                yield first, table
                first += table.num_rows
                left -= table.num_rows
        return
    with _arrow(input) as reader:
        whole = pa.Table.from_batches([reader.get_batch(unit.group)]).slice(0, left)
        for start in range(0, whole.num_rows, _BATCH):
            yield first + start, whole.slice(start, _BATCH)


def rows_of(unit: Unit, input: Input) -> Iterator[tuple[list[int], list[dict[str, Any] | Bad]]]:
    """The rows of a unit of lines, some at a time, with their numbers. Empty lines are no rows."""
    numbers: list[int] = []
    rows: list[dict[str, Any] | Bad] = []
    size = 0
    for number, line in enumerate(_lines(unit, input), unit.first):
        if line.strip():
            numbers.append(number)
            rows.append(row_of(line))
            size += len(line)
        if len(rows) >= _BATCH or size >= _BATCH_BYTES:
            yield numbers, rows
            numbers, rows, size = [], [], 0
    if rows:
        yield numbers, rows


def _lines(unit: Unit, input: Input) -> Iterator[bytes]:
    if unit.lines is not None:
        yield from _some(io.BytesIO(unit.lines), unit)
        return
    with open(input.path, "rb") as file:
        file.seek(unit.start)
        yield from _some(file, unit)


def _some(file: BinaryIO, unit: Unit) -> Iterator[bytes]:
    for _ in range(unit.rows):
        line, _ = _read_line(file)
        if not line:
            raise BatchError(f"row {unit.first}: the file has become shorter while it was read")
        yield line


def _read_line(file: BinaryIO) -> tuple[bytes, int]:
    """The next line, and its length in bytes. Of one that is longer than `LONGEST` only the beginning is kept."""
    line = file.readline(LONGEST)
    length = len(line)
    more = line
    while len(more) == LONGEST and not more.endswith(b"\n"):
        more = file.readline(LONGEST)
        length += len(more)
    return line, length


def row_of(line: bytes) -> dict[str, Any] | Bad:
    """The JSON object in a line."""
    if len(line) == LONGEST and not line.endswith(b"\n"):
        shown = line[:_SHOWN].decode("utf-8", "replace")
        return Bad(shown, f"expected a line of at most {LONGEST:,} bytes, found a longer one")
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        return Bad(line.decode("utf-8", "replace").rstrip("\r\n"), f"expected a JSON object: {error}")
    if not isinstance(found, dict):
        text = line.decode("utf-8", "replace").rstrip("\r\n")
        return Bad(text, f"expected a JSON object, found {type(found).__name__}")
    return found
