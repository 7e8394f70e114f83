"""What a process does with one unit: reads its rows, runs the callable, writes the part aside and renames it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..arrow import pyarrow as pa
from ..columns import NUMBER, array
from ..normalize import Normalize
from ..shapes.talk import Talk
from ..translate import Translate
from .inputs import Input
from .schema import Schema, conform
from .stats import Stats, stats_of
from .units import Bad, Unit, rows_of, tables_of

META = b"chatparsers"
"""The key of a part's metadata under which its counts are."""


@dataclass(frozen=True)
class Part:
    """A part that is whole. ``wrong``: the numbers of its rows that have an error."""

    name: str
    file: int
    stats: Stats
    wrong: Sequence[int]


@dataclass(frozen=True)
class Work:
    """A callable over the files of a batch. It pickles, and its processes load the model once each.

    ``schema``: the columns of the inputs, of lines or of tables. ``extra``: the column for what does not fit them; None
    if every file has the same. ``row_id``: whether the inputs have that column.
    """

    run: Any
    inputs: Sequence[Input]
    schema: Any
    extra: str | None
    row_id: bool
    format: str = ""

    @property
    def _takes_messages(self) -> bool:
        """Whether the callable reads messages in any columns, and makes a row for each row, without its other ones."""
        return isinstance(self.run, (Normalize, Translate))

    def tables(self, unit: Unit) -> Iterator[tuple[Sequence[int], Any, Mapping[str, str]]]:
        """The made tables of a unit, with the numbers of their rows and the notes on their columns."""
        input = self.inputs[unit.file]
        if input.kind == "jsonl":
            for numbers, rows in rows_of(unit, input):
                yield self._lines(numbers, rows, input)
            return
        for first, table in tables_of(unit, input):
            numbers = list(range(first, first + table.num_rows))
            notes: Mapping[str, str] = {}
            if not self._takes_messages:
                table, notes = conform(table, self.schema, input.path, self.extra)
            yield *self._made(table, numbers, input), notes

    def empty(self) -> Any:
        """A table without rows, of the schema that the made tables have."""
        if isinstance(self.schema, Schema):
            return self._lines([], [], None)[1]
        table = self.schema.empty_table()
        if self.extra is not None:
            table, _ = conform(table, self.schema, "", self.extra)
        return self._made(table, [], None)[1]

    def _lines(
        self, numbers: Sequence[int], rows: Sequence[dict[str, Any] | Bad], input: Input | None
    ) -> tuple[Sequence[int], Any, Mapping[str, str]]:
        if self._takes_messages:
            return numbers, self._talks(numbers, rows, input), {}
        table, notes = self.schema.table(rows, numbers, "" if input is None else input.path)
        of, made = self._made(table, numbers, input)
        wrong = {number: row.error for number, row in zip(numbers, rows, strict=True) if isinstance(row, Bad)}
        if wrong:
            errors = [wrong.get(row, error) for row, error in zip(of, made["error"].to_pylist(), strict=True)]
            made = made.set_column(made.column_names.index("error"), "error", array(errors, pa.string()))
        return of, made, notes

    def _made(self, table: Any, numbers: Sequence[int], input: Input | None) -> tuple[Sequence[int], Any]:
        """The callable's table, and the number of the row that each of its rows is of: a row may become several, or
        none. Rows without a name are called by their file and number."""
        name = getattr(self.run, "row_id", None)
        own = name is None or name in table.column_names
        if not own:
            named = [_seed(input, number) for number in numbers]
            table = table.append_column(name, array(named, pa.string()))
        added = [] if own else [name]
        if self._takes_messages:
            return numbers, self.run(table).drop_columns(added)
        made = self.run(table.append_column(NUMBER, pa.array(numbers, pa.int64())))
        return made[NUMBER].to_pylist(), made.drop_columns([NUMBER, *added])

    def _talks(
        self, numbers: Sequence[int], rows: Sequence[dict[str, Any] | Bad], input: Input | None
    ) -> Any:
        run: Normalize | Translate = self.run
        ids = [None if isinstance(row, Bad) else row.pop(run.row_id, None) for row in rows]
        seeds = [
            _seed(input, number) if id is None else str(id) for id, number in zip(ids, numbers, strict=True)
        ]
        good = [(row, seed) for row, seed in zip(rows, seeds, strict=True) if not isinstance(row, Bad)]
        read = iter(run.talks([row for row, _ in good], [seed for _, seed in good]))
        talks = []
        for row, seed in zip(rows, seeds, strict=True):
            if isinstance(row, Bad):
                talk = Talk(seed)
                talk.fail(row.error)
                talk.extra = {"line": row.text}
                talks.append(talk)
            else:
                talks.append(next(read))
        names = [None if id is None else str(id) for id in ids]
        return run.table(talks, array(names, pa.string()) if self.row_id else None)

    def write(self, unit: Unit, folder: Path) -> Part:
        """Writes the part of a unit: aside, to the disk, and then under its name. Raises OSError if that fails; then
        nothing of it is left."""
        target = folder / unit.name
        aside = target.with_suffix(".parquet.tmp")
        stats, wrong = Stats(), list[int]()
        try:
            with open(aside, "wb") as file:
                writer: Any = None
                for numbers, table, notes in self.tables(unit):
                    if writer is None:
                        writer = pa.parquet.ParquetWriter(file, table.schema)
                    writer.write_table(table)
                    found = stats_of(table)
                    found.notes = dict(notes)
                    stats.add(found)
                    errors = table.column("error").is_valid().to_pylist()
                    wrong += [number for number, bad in zip(numbers, errors, strict=True) if bad]
                if writer is None:
                    empty = self.empty()
                    writer = pa.parquet.ParquetWriter(file, empty.schema)
                    writer.write_table(empty)
                if self.format:
                    stats.formats[self.format] += stats.rows - stats.errors
                said = {"file": unit.file, "stats": stats.to_dict(), "wrong": wrong}
                writer.add_key_value_metadata({META: json.dumps(said)})
                writer.close()
                file.flush()
                os.fsync(file.fileno())
            os.replace(aside, target)
            _sync(folder)
        except BaseException:
            with suppress(OSError):
                aside.unlink()
            raise
        return Part(unit.name, unit.file, stats, wrong)


def _seed(input: Input | None, number: int) -> str:
    return f"{'' if input is None else input.name}:{number}"


def _sync(folder: Path) -> None:
    """Makes the new name last: a folder is written like a file."""
    with suppress(OSError):  # some systems cannot open a folder
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def read_part(path: Path) -> Part | None:
    """What a part says of itself; None if it is no part of a batch."""
    try:
        found = pa.parquet.read_metadata(path).metadata or {}
        said = json.loads(found[META])
    except (OSError, KeyError, ValueError, pa.ArrowInvalid):
        return None
    return Part(path.name, said["file"], Stats.from_dict(said["stats"]), said["wrong"])
