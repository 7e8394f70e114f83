"""Measures whole tables against bare loops in the same run: CPU time for a row, as ratios.

    python benchmarks/data.py [--rows N] [--processes N] [--model FOLDER] [--strict]

A ratio of 1 means that a table costs what the loop costs; above 1 it costs less. ``--model``: a folder with a template
and a tokenizer, for `Encode`. ``--processes``: rows of the two lines about processes, so many that their start is a
small part; 0 leaves these lines out. A ratio below its budget is a failure only with ``--strict``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout, installed or not

import pyarrow as pa
import pyarrow.parquet as pq

import chatparsers
from chatparsers.data import Encode, Parse
from chatparsers.data.batch.inputs import find_inputs
from chatparsers.data.batch.run import run_batch

FORMAT = "hermes-2-pro"
WORDS = "the weather in Oslo today is cold and clear with a light wind from the north".split()  # noqa: SIM905
TIMES = 11
Timed = Callable[[], object]


def tool(number: int) -> dict[str, Any]:
    properties = {f"argument_{place}": {"type": "string", "description": "A word"} for place in range(4)}
    schema = {"type": "object", "properties": properties}
    return {"type": "function", "function": {"name": f"tool_{number}", "parameters": schema}}


def output(draw: random.Random, name: str) -> str:
    """About two kilobytes of text and a call."""
    prose = " ".join(draw.choices(WORDS, k=330))
    arguments = {"argument_0": " ".join(draw.choices(WORDS, k=20))}
    return f"{prose}\n<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def ratio(bare: Timed, table: Timed) -> float:
    """The CPU time of ``bare`` over that of ``table``: the best of some rounds in which they take turns."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(TIMES):
        for run, found in zip((bare, table), times, strict=True):
            start = process_time()
            run()
            found.append(process_time() - start)
    return min(times[0]) / min(times[1])


def parsing(rows: int, processed: int) -> dict[str, tuple[float, float]]:
    """The ratios of `Parse`, each with its budget. ``processed``: rows for several processes."""
    draw = random.Random(1)
    format, shared = chatparsers.get_format(FORMAT), [tool(number) for number in range(8)]
    outputs = [output(draw, "tool_1") for _ in range(rows)]
    text = json.dumps(shared)
    own = [json.dumps([tool(number), tool(1)]) for number in range(2, rows + 2)]
    turn = format.bind(tools=shared, id_seed="")
    one = Parse(FORMAT, tools=shared)
    many = Parse(FORMAT)
    table = pa.table({"output": outputs})
    repeated = pa.table({"output": outputs, "tools": [text] * rows})
    different = pa.table({"output": outputs, "tools": own})

    def loop() -> None:
        for one in outputs:
            turn.parse(one)

    def binding() -> None:
        for one, tools in zip(outputs, own, strict=True):
            format.bind(tools=json.loads(tools), id_seed="").parse(one)

    found = {
        "Parse in memory / turn.parse": (ratio(loop, lambda: one(table)), 0.9),
        "tools that repeat / shared tools": (ratio(lambda: one(table), lambda: many(repeated)), 0.9),
        "tools all different / json.loads, bind, parse": (ratio(binding, lambda: many(different)), 0.85),
    }
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder, "rows.jsonl")
        lines.write_text("".join(json.dumps({"output": one}) + "\n" for one in outputs), encoding="utf-8")
        source = Path(folder, "rows.parquet")
        pq.write_table(table, source)
        for path, name in ((lines, "JSON lines to parts"), (source, "Parquet to parts")):
            number = iter(range(TIMES))

            def files(path: Path = path, number: Any = number) -> None:
                run_batch(one, find_inputs([str(path)]), Path(folder, f"{path.name}{next(number)}"), {})

            found[f"{name} / turn.parse"] = ratio(loop, files), 0.7
        if processed:
            many_outputs = [outputs[place % rows] for place in range(processed)]
            lines.write_text(
                "".join(json.dumps({"output": one}) + "\n" for one in many_outputs), encoding="utf-8"
            )
            found |= processes(one, lines, many_outputs, Path(folder))
    return found


def bare(outputs: list[str]) -> None:
    """A loop in a process of its own."""
    turn = chatparsers.get_format(FORMAT).bind(tools=[tool(number) for number in range(8)], id_seed="")
    for one in outputs:
        turn.parse(one)


def processes(run: Parse, lines: Path, outputs: list[str], folder: Path) -> dict[str, tuple[float, float]]:
    """What two processes gain over one, from file to file, against what two bare loops gain over one, the start of the
    processes included; this needs two idle cores. And the CPU time of a further row in one process against that in two:
    what the last three quarters of the rows cost, as each process costs half a second to start."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    half = len(outputs) // 2
    number = iter(range(99))

    def loops(count: int) -> Timed:
        def run_loops() -> None:
            with ProcessPoolExecutor(count, get_context("spawn")) as pool:
                list(pool.map(bare, [outputs] if count == 1 else [outputs[:half], outputs[half:]]))

        return run_loops

    few = lines.with_name("few.jsonl")
    with open(lines, encoding="utf-8") as file:
        few.write_text("".join(islice(file, half // 2)), encoding="utf-8")

    def tables(count: int, path: Path = lines) -> Timed:
        def run_tables() -> None:
            out = folder / f"processes{next(number)}"
            run_batch(run, find_inputs([str(path)]), out, {}, workers=count, lines=half // 8)

        return run_tables

    walls: dict[str, list[float]] = {}
    cpus: dict[str, list[float]] = {}
    for _ in range(3):
        for name, timed in (
            ("loop", loops(1)),
            ("loops", loops(2)),
            ("table", tables(1)),
            ("tables", tables(2)),
            ("few", tables(1, few)),
            ("few by two", tables(2, few)),
        ):
            wall, cpu = perf_counter(), _cpu()
            timed()
            walls.setdefault(name, []).append(perf_counter() - wall)
            cpus.setdefault(name, []).append(_cpu() - cpu)
    least = {name: min(found) for name, found in cpus.items()}
    gained = min(walls["table"]) / min(walls["tables"])
    return {
        "two processes' gain, file to file / that of two bare loops": (
            gained / (min(walls["loop"]) / min(walls["loops"])),
            0.9,
        ),
        "CPU of a further row in one process / in two": (
            (least["table"] - least["few"]) / (least["tables"] - least["few by two"]),
            1 / 1.1,
        ),
        "CPU of two bare loops / of two processes": (least["loops"] / least["tables"], 0.7),
    }


def _cpu() -> float:
    """The CPU time of this process and of those that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def encoding(rows: int, model: str) -> dict[str, tuple[float, float]]:
    """The ratios of `Encode`."""
    draw = random.Random(2)
    chat, tools = chatparsers.load(model), [tool(number) for number in range(8)]
    system = " ".join(draw.choices(WORDS, k=300))
    talks = [
        [
            {"role": "system", "content": system},
            {"role": "user", "content": " ".join(draw.choices(WORDS, k=40))},
            {"role": "assistant", "content": " ".join(draw.choices(WORDS, k=300))},
        ]
        for _ in range(rows)
    ]
    table = pa.table({"messages": [json.dumps(talk) for talk in talks], "tools": [json.dumps(tools)] * rows})
    texts = [chat.encode(talk, tools=tools).text for talk in talks]
    alone = pa.table({"messages": [json.dumps(talk[1:]) for talk in talks]})
    texts_alone = [chat.encode(talk[1:]).text for talk in talks]
    run = Encode(model)

    def loop(texts: list[str]) -> Timed:
        return lambda: chat.tokenizer.encode_batch(texts, add_special_tokens=False)

    return {
        "Encode, system text and tools shared / encode_batch": (ratio(loop(texts), lambda: run(table)), 0.9),
        "Encode, nothing shared / encode_batch": (ratio(loop(texts_alone), lambda: run(alone)), 0.9),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--processes", type=int, default=40_000, help="rows for several processes; 0: none")
    parser.add_argument("--model", help="a folder with a template and a tokenizer")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a ratio is below its budget")
    arguments = parser.parse_args()
    found = parsing(arguments.rows, arguments.processes)
    if arguments.model:
        found |= encoding(arguments.rows // 4, arguments.model)
    print(f"{'':<58} ratio  budget")
    for name, (value, budget) in found.items():
        print(f"{name:<58} {value:5.2f}  ≥ {budget:.2f}" + ("" if value >= budget else "  below"))
    return int(arguments.strict and any(value < budget for value, budget in found.values()))


if __name__ == "__main__":
    raise SystemExit(main())
