"""A batch on Ray: its own readers read, its tasks map, its own writer writes.

Tasks are used, not a pool of actors: a pool that holds all CPUs leaves none to read with. Ray does not know the number
of a row in its file, so ids of calls that a row does not have follow from its name (``row_id``), else from its content.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..arrow import pyarrow as pa
from ..columns import array
from ..normalize import Normalize
from ..shapes.talk import Talk
from ..translate import Translate
from .inputs import ERRORS, STDIN, BatchError, Input
from .manifest import write_lines
from .run import Outcome, first_rows, fitted, work_of
from .schema import Schema, conform
from .stats import Stats, stats_of
from .units import Bad, row_of

_ROWS = 1024


@dataclass(frozen=True)
class OnRay:
    """A callable over Ray's batches: of lines (a column ``text``) or of tables."""

    run: Any
    schema: Any
    extra: str | None
    row_id: bool

    def __call__(self, table: Any) -> Any:
        """The made table of a batch."""
        if not isinstance(self.schema, Schema):
            if isinstance(self.run, (Normalize, Translate)):
                return self.run(table)
            return self.run(conform(table, self.schema, "", self.extra)[0])
        lines = [line.encode() for line in table.column("text").to_pylist()]
        rows = [row_of(line) for line in lines if line.strip()]
        if isinstance(self.run, (Normalize, Translate)):
            return self._talks(rows)
        made = self.run(self.schema.table(rows, range(len(rows)), "")[0])
        wrong = {place: row.error for place, row in enumerate(rows) if isinstance(row, Bad)}
        errors = [wrong.get(place, error) for place, error in enumerate(made["error"].to_pylist())]
        return made.set_column(made.column_names.index("error"), "error", array(errors, pa.string()))

    def _talks(self, rows: Sequence[dict[str, Any] | Bad]) -> Any:
        run = self.run
        good = [dict(row) for row in rows if not isinstance(row, Bad)]
        ids = [row.pop(run.row_id, None) for row in good]
        seeds = [json.dumps(row) if id is None else str(id) for row, id in zip(good, ids, strict=True)]
        read, names = iter(run.talks(good, seeds)), iter(ids)
        talks: list[Talk] = []
        named: list[str | None] = []
        for row in rows:
            if isinstance(row, Bad):
                talks.append(Talk(""))
                talks[-1].fail(row.error)
                talks[-1].extra = {"line": row.text}
                named.append(None)
            else:
                talks.append(next(read))
                name = next(names)
                named.append(None if name is None else str(name))
        return run.table(talks, array(named, pa.string()) if self.row_id else None)


def run_on_ray(
    run: Any,
    inputs: Sequence[Input],
    folder: Path,
    *,
    address: str | None = None,
    workers: int | None = None,
    limit: int | None = None,
    ids: str | None = None,
    format: str = "",
) -> Outcome:
    """Runs a callable over files with Ray's readers and writer. Order is not kept. Raises `BatchError`.

    ``address``: of a cluster; None starts Ray on this machine, with as many ``workers``, and stops it at the end.
    """
    try:
        import ray
        import ray.data
    except ModuleNotFoundError as error:
        raise BatchError("--runner ray needs Ray: pip install 'ray[data]'") from error
    if any(input.path == STDIN for input in inputs):
        raise BatchError("--runner ray reads files: standard input is read by --runner local")
    if any(input.kind == "arrow" for input in inputs):
        raise BatchError("--runner ray reads JSON lines and Parquet: Ray has no reader of Arrow files")
    if folder.exists() and any(folder.iterdir()):
        raise BatchError(f"{folder}: expected an empty folder: choose another --out")
    began = time.perf_counter()
    first = first_rows(inputs)
    work = work_of(fitted(run, first), inputs, first, ids, format)
    work.empty()  # a model that cannot be loaded and a column that is missing are said here, once
    own = not ray.is_initialized()
    if own:
        _visible()
        here: dict[str, Any] = {"include_dashboard": False, "num_cpus": workers} if address is None else {}
        ray.init(address=address, log_to_driver=False, **here)
    try:
        paths = [str(Path(input.path).resolve()) for input in inputs]
        reader = ray.data.read_text if inputs[0].kind == "jsonl" else ray.data.read_parquet
        rows = reader(paths)
        if limit is not None:
            rows = rows.limit(limit)
        made = rows.map_batches(
            OnRay(work.run, work.schema, work.extra, work.row_id), batch_format="pyarrow", batch_size=_ROWS
        )
        folder.mkdir(parents=True, exist_ok=True)
        made.write_parquet(str(folder.resolve()))
    except ray.exceptions.RayError as error:
        shutil.rmtree(folder, ignore_errors=True)  # it was empty, and Ray cannot go on
        raise BatchError(f"Ray: {str(error).strip().splitlines()[-1]}") from error
    finally:
        if own:
            ray.shutdown()
    stats, parts = _counted(folder)
    if format:
        stats.formats[format] += stats.rows - stats.errors
    write_lines(folder / ERRORS, _errors(folder, getattr(run, "row_id", None)))
    return Outcome(stats, parts, 0, time.perf_counter() - began, stats.rows)


def _visible() -> None:
    """Lets the workers that Ray starts import this package from where it is."""
    root = str(Path(__file__).resolve().parents[3])
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if root not in paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, *paths]))


def _counted(folder: Path) -> tuple[Stats, int]:
    stats, parts = Stats(), 0
    for path in sorted(folder.rglob("*.parquet")):
        parts += 1
        with pa.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_ROWS):
                stats.add(stats_of(pa.Table.from_batches([batch])))
    return stats, parts


def _errors(folder: Path, row_id: str | None) -> Iterator[str]:
    """A line for each row with an error: its part, its name if it has one, and what is wrong."""
    for path in sorted(folder.rglob("*.parquet")):
        names = pa.parquet.read_schema(path).names
        columns = ["error", *([row_id] if row_id in names else [])]
        for row in pa.parquet.read_table(path, columns=columns).to_pylist():
            if row["error"] is not None:
                yield json.dumps({"part": path.name, **row}, ensure_ascii=False, default=str)
