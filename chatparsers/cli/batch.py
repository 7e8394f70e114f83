"""``chatparsers batch``: whole files of rows through one of the callables, into parts."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import RequestError
from ..plain import one_line
from .files import Refused, items, print_json, to_json
from .request import thinking_of

if TYPE_CHECKING:
    from ..data.batch.run import Outcome

_STDOUT = "-"


def run(arguments: Namespace) -> int:
    """Runs the batch and prints its summary: a table, or JSON. Rows with an error are counted in it."""
    try:
        from ..data.batch.inputs import BatchError, find_inputs
    except ModuleNotFoundError as error:
        raise Refused(str(error)) from error
    try:
        inputs = find_inputs(arguments.rows)
        if arguments.action == "normalize" and arguments.say_rows:
            return _explain(arguments, inputs)
        if arguments.parts is None:
            raise Refused("where to? Say --out DIR, or --out - for JSON lines on standard output")
        made = _callable(arguments)
        outcome = _run(arguments, made, inputs)
    except BatchError as error:
        raise Refused(str(error)) from error
    except RequestError as error:  # of a column that is not there
        columns = (word for word in arguments.parser.words if word.kind == "COLUMN")
        flag = next((word.flag for word in columns if repr(vars(arguments)[word.key]) in str(error)), None)
        raise Refused(f"{flag}: {error}" if flag else str(error)) from error
    _summary(arguments, outcome)
    return 0


def _run(arguments: Namespace, made: Any, inputs: Any) -> Outcome:
    from ..data.batch.run import run_batch, run_stream

    ids = arguments.answer_column if arguments.action == "parse" else None
    format = _format(arguments)
    if arguments.parts == _STDOUT:
        if arguments.resume:
            raise Refused("--resume needs --out DIR: what went to standard output is not known")
        write = sys.stdout.write
        return run_stream(
            made,
            inputs,
            lambda line: (write(line + "\n"), None)[1],
            limit=arguments.limit,
            lines=arguments.lines,
            ids=ids,
            format=format,
        )
    from ..data.batch.progress import progress_bar

    options = _options(arguments)
    if arguments.runner == "ray":
        from ..data.batch.on_ray import run_on_ray

        if arguments.resume:
            raise Refused(
                "--resume is of --runner local; on Ray use its own checkpoints (docs/data.md), or another --out"
            )
        return run_on_ray(
            made,
            inputs,
            Path(arguments.parts),
            address=arguments.address,
            workers=arguments.workers,
            limit=arguments.limit,
            ids=ids,
            format=format,
        )
    shown = sys.stderr.isatty() and arguments.form != "json"
    with progress_bar(inputs, arguments.limit) if shown else nullcontext() as progress:
        return run_batch(
            made,
            inputs,
            Path(arguments.parts),
            options,
            workers=arguments.workers or _cores(),
            limit=arguments.limit,
            lines=arguments.lines,
            resume=arguments.resume,
            ids=ids,
            format=format,
            progress=progress,
        )


def _cores() -> int:
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _callable(arguments: Namespace) -> Any:
    from ..data import Encode, Normalize, Parse, Render, Translate

    action, thinking = arguments.action, thinking_of(arguments)
    given = vars(arguments)
    tools = _tools(given.get("tools")) or given.get("tools_column") or "tools"
    if arguments.model is None and action in ("parse", "render", "encode") and not given.get("model_column"):
        raise Refused(f"batch {action}: which model? Say --model with its files, or a format's name")
    if action == "parse":
        return Parse(
            arguments.model,
            output=arguments.answer_column,
            tools=tools,
            model_column=arguments.model_column,
            model_paths=arguments.model_paths,
            row_id=arguments.row_id,
            tokenizer=arguments.tokenizer,
            thinking=thinking,
            effort=arguments.effort,
            prefix=arguments.prefix,
            append_to=arguments.append,
        )
    messages = given.get("messages_column", "")
    if action == "render":
        return Render(
            arguments.model,
            messages=messages,
            tools=tools,
            thinking=thinking,
            effort=arguments.effort,
            add_generation_prompt=arguments.generation_prompt,
            tokenizer=arguments.tokenizer,
            now=_now(arguments),
        )
    if action == "encode":
        return Encode(
            arguments.model,
            messages=messages,
            tools=tools,
            max_length=arguments.max_length,
            on_long=arguments.on_long or "cut",
            drop_empty=bool(arguments.drop_empty),
            as_sampled=bool(arguments.as_sampled),
            thinking=thinking,
            effort=arguments.effort,
            tokenizer=arguments.tokenizer,
            now=_now(arguments),
        )
    rows = _rows(arguments)
    if action == "normalize":
        if arguments.model is not None and arguments.text_column is None:
            rows["wire"] = _wire_of(arguments.model) if arguments.wire == "auto" else arguments.wire
        return Normalize(model=arguments.model if arguments.text_column is not None else None, **rows)
    return Translate(
        arguments.model,
        arguments.to,
        encode=arguments.encode,
        max_length=arguments.max_length,
        thinking=thinking,
        effort=arguments.effort,
        tokenizer=arguments.tokenizer,
        now=_now(arguments),
        **rows,
    )


def _rows(arguments: Namespace) -> dict[str, Any]:
    """What ``normalize`` and ``translate`` are told of the rows: their columns, their shape, their format."""
    return {
        "messages": arguments.shaped_column,
        "tools": arguments.tools_column,
        "shape": arguments.shape,
        "wire": arguments.wire,
        "text": arguments.text_column,
        "row_id": arguments.row_id,
    }


def _wire_of(model: str) -> str:
    from ..data.rows import source_of

    return source_of(model).open().format.name


def _now(arguments: Namespace) -> Any:
    """The time that templates write: that of the first run, so that a batch that goes on writes the same."""
    from datetime import datetime

    from ..data.batch.manifest import read_manifest

    found = read_manifest(Path(arguments.parts)) if arguments.parts != _STDOUT and arguments.resume else None
    arguments.now = (found or {}).get("options", {}).get("now") or datetime.now().isoformat()
    return datetime.fromisoformat(arguments.now)


def _tools(given: str | None) -> Any:
    """The tools: a column's name, or the list in a file."""
    if given is None:
        return None
    if given.endswith(".json") or os.path.isfile(given):
        return items(given, "tools")
    return given


def _format(arguments: Namespace) -> str:
    """The name of the format that reads or writes the rows; "" if each row has its own."""
    model = arguments.to if arguments.action == "translate" else arguments.model
    if model is None or arguments.action == "normalize" or vars(arguments).get("model_column"):
        return ""
    from ..data.rows import source_of

    return source_of(model).open().format.name


_NO_MATTER = {
    *("run", "parser", "rows", "parts", "workers", "runner", "address", "limit", "lines", "resume"),
    *("form", "say_rows"),
}
"""Options on which the result does not depend, or that the manifest has elsewhere."""


def _options(arguments: Namespace) -> dict[str, Any]:
    """The options on which the result depends."""
    return {
        name: given for name, given in vars(arguments).items() if name not in _NO_MATTER and given is not None
    }


def _summary(arguments: Namespace, outcome: Outcome) -> None:
    stats = outcome.stats
    for note in stats.notes.values():
        print(f"chatparsers: warning: {one_line(note)}: kept in the column 'extra'", file=sys.stderr)
    rate = outcome.rows_now / outcome.seconds if outcome.seconds else 0.0
    whole = {
        **stats.to_dict(),
        "parts": outcome.parts,
        "resumed": outcome.resumed,
        "seconds": round(outcome.seconds, 3),
        "rows_per_second": round(rate, 1),
        "out": arguments.parts,
    }
    stream = sys.stderr if arguments.parts == _STDOUT else sys.stdout
    if arguments.form == "json":
        if stream is sys.stderr:
            print(to_json(whole), file=stream)
        else:
            print_json(whole, indent=2)
        return
    for name, value in _lines(whole):
        print(f"{name:<11} {value}", file=stream)


def _lines(whole: dict[str, Any]) -> Any:
    resumed = f", {whole['resumed']} of them from before" if whole["resumed"] else ""
    yield "rows", f"{whole['rows']:,} in {whole['parts']} parts{resumed}"
    yield "speed", f"{whole['rows_per_second']:,.0f} rows/s, {whole['seconds']:.1f} s"
    for name in ("calls", "complete", "broken", "tokens", "counted", "uncounted"):
        if whole[name]:
            yield name, f"{whole[name]:,}"
    for name in ("codes", "losses", "formats"):
        if whole[name]:
            yield name, ", ".join(f"{key} {count:,}" for key, count in whole[name].items())
    where = (
        f" (in {os.path.join(whole['out'], 'errors.jsonl')})" if whole["errors"] and whole["parts"] else ""
    )
    yield "errors", f"{whole['errors']:,}{where}"


def _explain(arguments: Namespace, inputs: Any) -> int:
    """Says what the rows are: the shape, the wire and why, the share of rows that fit, and three that do not."""
    from ..data.batch.run import first_rows

    normalize = _callable(arguments)
    first = first_rows(inputs, arguments.limit or 1000)
    if first is None:
        raise Refused(f"{', '.join(arguments.rows)}: no rows there")
    if isinstance(first, list):
        report = normalize.explain_rows([row for row in first if isinstance(row, dict)])
    else:
        report = normalize.explain(first)
    if arguments.form == "json":
        print_json(report.to_dict(), indent=2)
        return 0
    print(f"rows        {report.rows:,} (the first)")
    for name, count in report.shapes.items():
        print(f"shape       {name}: {count:,} rows ({report.sources[name]})")
    print(f"wire        {report.wire}")
    for name, count in report.evidence:
        print(f"  read back {name}: {count:,} of {report.marked or count:,} texts with markers")
    for code, count in report.losses.items():
        print(f"loss        {code}: {count:,} rows")
    print(f"fit         {report.fit:.1%}")
    for number, error in report.misfits:
        print(f"  row {number}: {one_line(error)}")
    return 0
