"""A bar on the terminal while a batch runs: rows, rows a second, broken ones, and the time that is left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter

from .inputs import Input
from .stats import Stats
from .units import units


@contextmanager
def progress_bar(inputs: Sequence[Input], limit: int | None = None) -> Iterator[Callable[[Stats, int], None]]:
    """A bar on standard error. It is called with the counts so far, and the bytes of lines that are done."""
    from tqdm import tqdm

    lines = any(input.kind == "jsonl" for input in inputs)
    total: int | None = None
    if not lines:
        total = sum(unit.rows for unit in units(inputs, limit=limit))
    elif limit is None and all(not input.packed and input.size for input in inputs):
        total = sum(input.size for input in inputs)
    bar = tqdm(
        total=total,
        file=sys.stderr,
        bar_format="{desc} [{elapsed}]"
        if total is None
        else "{percentage:3.0f}%|{bar}| {desc} [{elapsed}<{remaining}]",
        mininterval=0.5,
    )
    began: tuple[float, int] | None = None

    def show(stats: Stats, done: int) -> None:
        nonlocal began
        now = perf_counter()
        if began is None:
            began = now, stats.rows
        since = now - began[0]
        rate = f"{(stats.rows - began[1]) / since:,.0f} rows/s, " if since > 0 else ""
        bar.set_description_str(
            f"{stats.rows:,} rows, {rate}{stats.broken + stats.errors:,} broken", refresh=False
        )
        bar.n = done if lines else stats.rows
        bar.refresh()

    try:
        yield show
    finally:
        bar.close()
