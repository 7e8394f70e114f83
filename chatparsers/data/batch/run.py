"""A batch on one machine: units go to processes, parts come back, and a manifest lets it go on after a stop.

At most a few units are under way, so memory does not grow with the input. The parts do not depend on the number of
processes: a unit is a row group or a fixed number of lines.
"""

from __future__ import annotations

import json
import os
import pickle
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context, parent_process
from pathlib import Path
from threading import Thread
from typing import Any

from ... import __version__
from ..arrow import pyarrow as pa
from ..normalize import Normalize
from ..translate import Translate
from .inputs import ERRORS, MANIFEST, STDIN, BatchError, Input
from .manifest import begin, write_json, write_lines
from .schema import EXTRA, Schema, schema_of
from .stats import Stats, stats_of
from .units import LINES, Unit, rows_of, tables_of, units
from .work import Part, Work, read_part

_SAMPLE = 1000
"""So many rows decide the columns of lines, and the wire of a dataset."""
_AHEAD = 2
Progress = Callable[[Stats, int], None]
"""Is told the counts so far, and how many bytes of the input are done."""


@dataclass
class Outcome:
    """What a batch did. ``resumed``: how many of its parts were there before."""

    stats: Stats
    parts: int
    resumed: int
    seconds: float
    rows_now: int


def first_rows(inputs: Sequence[Input], most: int = _SAMPLE) -> Any:
    """The first rows of the inputs: a list of objects, or a table."""
    for unit in units(inputs[:1], most):
        if inputs[0].kind == "jsonl":
            return list(islice((row for _, rows in rows_of(unit, inputs[0]) for row in rows), most))
        tables: list[Any] = []
        for _, table in tables_of(unit, inputs[0]):
            tables.append(table)
            if sum(found.num_rows for found in tables) >= most:
                break
        return pa.concat_tables(tables).slice(0, most) if tables else None
    return None


def work_of(run: Any, inputs: Sequence[Input], first: Any, ids: str | None, format: str) -> Work:
    """The work over these inputs: their columns are those of the first rows."""
    row_id = getattr(run, "row_id", "row_id")
    if inputs and inputs[0].kind == "jsonl":
        schema = schema_of(first or [], ids)
        if not schema.kinds:  # no row tells a column: what the callable reads is absent in each
            needed: str = getattr(run, "output", None) or getattr(run, "messages", None) or "messages"
            schema = Schema({needed: "text"})
        known = row_id in schema.kinds
        if any(input.kind != "jsonl" for input in inputs):
            raise BatchError("the inputs are lines and tables: run them apart, or write the lines as Parquet")
        return Work(run, inputs, schema, schema.extra, known, format)
    if any(input.kind == "jsonl" for input in inputs):
        raise BatchError("the inputs are lines and tables: run them apart, or write the lines as Parquet")
    schemas = [_schema(input) for input in inputs]
    wanted = schemas[0] if schemas else pa.schema([])
    same = all(found.equals(wanted, check_metadata=False) for found in schemas)
    extra = None if same else EXTRA if EXTRA not in wanted.names else f"{EXTRA}_columns"
    return Work(run, inputs, wanted.remove_metadata(), extra, row_id in wanted.names, format)


def _schema(input: Input) -> Any:
    try:
        if input.kind == "parquet":
            return pa.parquet.read_schema(input.path)
        with pa.ipc.open_file(pa.memory_map(input.path)) as reader:
            return reader.schema
    except (OSError, pa.ArrowInvalid) as error:
        raise BatchError(f"{input.path}: {error}") from error


def fitted(run: Any, first: Any) -> Any:
    """Normalize and Translate decide the wire of the column once, by its first rows."""
    if not isinstance(run, (Normalize, Translate)) or first is None:
        return run
    if isinstance(first, list):
        return run.fit_rows([row for row in first if isinstance(row, dict)])
    return run.fit(first)


def run_batch(
    run: Any,
    inputs: Sequence[Input],
    folder: Path,
    options: Mapping[str, Any],
    *,
    workers: int = 1,
    limit: int | None = None,
    lines: int = LINES,
    resume: bool = False,
    ids: str | None = None,
    format: str = "",
    progress: Progress | None = None,
) -> Outcome:
    """Runs a callable over files into parts in a folder. Raises `BatchError`, which says what to do."""
    began = time.perf_counter()
    if any(input.path == STDIN for input in inputs) and resume:
        raise BatchError("--resume needs files: standard input cannot be read again")
    whole = {**options, "limit": limit, "lines": lines}
    decided = begin(folder, inputs, whole, resume=resume)
    new = decided is None
    first = None if any(input.path == STDIN for input in inputs) else first_rows(inputs)
    if decided is None:
        run = fitted(run, first)
        decided = {"wire": getattr(getattr(run, "normalize", run), "wire", None)}
    elif isinstance(run, (Normalize, Translate)) and decided.get("wire") is not None:
        run = run.with_wire(str(decided["wire"]))
    all_units = units(inputs, lines, limit)
    if first is None and inputs and inputs[0].path == STDIN:
        # The first unit of a stream tells its columns.
        head = next(all_units, None)
        if head is not None:
            first = [row for _, rows in rows_of(head, inputs[0]) for row in rows][:_SAMPLE]
            run = fitted(run, first)
            all_units = _chained(head, all_units)
    work = work_of(run, inputs, first, ids, format)
    work.empty()  # a model that cannot be loaded and a column that is missing are said here, once
    if new:  # nothing is written before, so that what failed can be said again
        folder.mkdir(parents=True, exist_ok=True)
        told = [input.to_dict() for input in inputs]
        manifest = {"version": __version__, "inputs": told, "options": whole, "decided": decided}
        write_json(folder / MANIFEST, manifest)
    total, count, resumed, now, done = Stats(), 0, 0, 0, 0

    def todo() -> Iterator[Unit]:
        nonlocal count, resumed, done
        for unit in all_units:
            part = read_part(folder / unit.name) if resume else None
            if part is None:
                yield unit
                continue
            total.add(part.stats)
            count, resumed = count + 1, resumed + 1
            done += unit.size
            if progress is not None:
                progress(total, done)

    for unit, part in _parts(work, todo(), folder, workers):
        total.add(part.stats)
        count, now, done = count + 1, now + part.stats.rows, done + unit.size
        if progress is not None:
            progress(total, done)
    write_lines(folder / ERRORS, _errors(folder, inputs))
    return Outcome(total, count, resumed, time.perf_counter() - began, now)


def _chained(head: Unit, rest: Iterator[Unit]) -> Iterator[Unit]:
    yield head
    yield from rest


def _parts(work: Work, todo: Iterator[Unit], folder: Path, workers: int) -> Iterator[tuple[Unit, Part]]:
    """The parts of the units, as they are done. Raises `BatchError` if one cannot be written."""
    try:
        if workers <= 1:
            for unit in todo:
                yield unit, work.write(unit, folder)
            return
        with ExitStack() as stack:
            context = get_context("spawn")
            pool = stack.enter_context(
                ProcessPoolExecutor(workers, context, initializer=_start, initargs=(pickle.dumps(work),))
            )
            stack.callback(pool.shutdown, wait=True, cancel_futures=True)
            waiting: dict[Future[Part], Unit] = {}
            for unit in todo:
                if len(waiting) >= workers * _AHEAD:
                    yield from _first_done(waiting)
                waiting[pool.submit(_write, unit, folder)] = unit
            while waiting:
                yield from _first_done(waiting)
    except BrokenProcessPool as error:
        raise BatchError(
            "a worker was killed (out of memory?): the parts that are done stay; go on with --resume, "
            "with fewer --workers if memory was short"
        ) from error
    except OSError as error:
        what = error.strerror or str(error)
        raise BatchError(
            f"{error.filename or folder}: {what}: the parts that are done stay, and no half part is left; "
            "make room and go on with --resume"
        ) from error


def _first_done(waiting: dict[Future[Part], Unit]) -> Iterator[tuple[Unit, Part]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        unit = waiting.pop(future)
        yield unit, future.result()


_own: list[Work] = []


def _start(work: bytes) -> None:
    _own[:] = [pickle.loads(work)]
    Thread(target=_end_with_the_batch, daemon=True).start()


def _end_with_the_batch() -> None:
    """Ends this process when the batch was killed, so that it writes no part beside a batch that goes on."""
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _write(unit: Unit, folder: Path) -> Part:
    return _own[0].write(unit, folder)


def _errors(folder: Path, inputs: Sequence[Input]) -> Iterator[str]:
    """A line for each row with an error: its file, its number, and what is wrong."""
    for path in sorted(folder.glob("*.parquet")):
        part = read_part(path)
        if part is None or not part.wrong:
            continue
        input = inputs[part.file]
        found = pa.parquet.read_table(path, columns=["error"]).column("error").drop_null().to_pylist()
        for number, error in zip(part.wrong, found, strict=True):
            line = {"line": number + 1} if input.kind == "jsonl" else {}
            yield json.dumps({"file": input.path, "row": number, **line, "error": error}, ensure_ascii=False)


def run_stream(
    run: Any,
    inputs: Sequence[Input],
    write: Callable[[str], None],
    *,
    limit: int | None = None,
    lines: int = LINES,
    ids: str | None = None,
    format: str = "",
) -> Outcome:
    """Runs a callable over files, and passes each row on as a JSON line, in order."""
    began = time.perf_counter()
    all_units = units(inputs, lines, limit)
    head = next(all_units, None)
    if inputs and inputs[0].kind != "jsonl":
        first = first_rows(inputs)
    else:
        first = [] if head is None else [r for _, rows in rows_of(head, inputs[0]) for r in rows][:_SAMPLE]
    work = work_of(fitted(run, first), inputs, first, ids, format)
    total = Stats()
    for unit in _chained(head, all_units) if head is not None else ():
        for _, table, notes in work.tables(unit):
            found = stats_of(table)
            found.notes = dict(notes)
            if format:
                found.formats[format] += found.rows - found.errors
            total.add(found)
            for row in table.to_pylist():
                write(json.dumps(row, ensure_ascii=False, default=str))
    return Outcome(total, 0, 0, time.perf_counter() - began, total.rows)
