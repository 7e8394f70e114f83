"""Schemas of a folder through our Lark and through llguidance's own compiler of JSON Schema, in one process.

A file has a schema, or a schema with values as MaskBench has them: ``{"schema": …, "tests": [{"data": …, "valid":
…}]}``. Objects are open, as JSON Schema says. Times are CPU times of one run: the grammars are all new.
"""

from __future__ import annotations

import gc
import json
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chatparsers
from chatparsers import grammar as grammars

__all__ = ["table"]


@dataclass
class _Row:
    """One schema: CPU seconds to write it, to the first mask with ours and with the engine's own compiler, for each
    mask; and how many values are judged wrongly."""

    size: int
    write: float
    first: float
    weakened: Sequence[chatparsers.Weakened]
    own_first: float | None = None
    masks: list[float] = field(default_factory=list)
    own_masks: list[float] = field(default_factory=list)
    refused: int = 0
    taken: int = 0


class _Engine:
    def __init__(self, tokenizer: Any, encoder: Any, llguidance: Any) -> None:
        self.tokenizer, self.encoder, self.llguidance = tokenizer, encoder, llguidance
        self.format = chatparsers.get_format("qwen3")

    def row(self, schema: Any, tests: list[tuple[list[int], bool]]) -> _Row:
        matcher = self.llguidance.LLMatcher
        asked = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
        grammars._CACHE.clear()
        gc.collect()
        start = time.thread_time()
        turn = self.format.bind(response_format=asked, thinking=False)
        written = turn.grammar("lark", additional_properties=True)
        write = time.thread_time() - start
        first, made = self._first(matcher.grammar_from_lark(str(written)))
        if made is None:
            raise ValueError("llguidance refuses the grammar")
        found = _Row(len(json.dumps(schema)), write, write + first, written.weakened)
        for ids, valid in tests:
            whole = self._run(made, ids, found.masks if valid else None)
            found.refused += valid and not whole
            found.taken += whole and not valid
        gc.collect()  # as before ours, or it would find the engine's memory and tables still warm from that
        first, own = self._first(
            matcher.grammar_from_json_schema({**schema, "x-guidance": {"lenient": True}})
        )
        if own is not None:
            found.own_first = first
            for ids, valid in tests:
                if valid:
                    self._run(own, ids, found.own_masks)
        return found

    def _first(self, grammar: str) -> tuple[float, Any]:
        """The time to compile a grammar and make a mask, and a matcher; None if the engine refuses the grammar."""
        start = time.thread_time()
        made = self.llguidance.LLMatcher(self.tokenizer, grammar, log_level=0)
        if made.is_error():
            return 0, None
        made.deep_copy().compute_bitmask()
        return time.thread_time() - start, made

    def _run(self, made: Any, ids: list[int], times: list[float] | None) -> bool:
        """Whether a whole text is taken. The masks' times are added to ``times``."""
        matcher = made.deep_copy()
        for id in ids:
            if times is not None:
                start = time.thread_time()
                matcher.compute_bitmask()
                times.append(time.thread_time() - start)
            if matcher.try_consume_tokens([id]) != 1:
                return False
        return bool(matcher.is_accepting())


def _files(folder: Path, sample: int | None) -> Iterator[tuple[str, Any, list[Any]]]:
    """The schemas of a folder and their values, in an order that does not change."""
    files = sorted(folder.rglob("*.json"))
    random.Random(1).shuffle(files)
    for file in files[:sample]:
        found = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            continue
        whole = isinstance(found.get("schema"), dict) and isinstance(found.get("tests"), list)
        yield file.name, found["schema"] if whole else found, found["tests"] if whole else []


def table(folder: Path, sample: int | None, tokenizer: Any, encoder: Any, llguidance: Any) -> Iterator[str]:
    """The figures of a folder's schemas, as lines of text."""
    engine = _Engine(tokenizer, encoder, llguidance)
    engine.row({"type": "object"}, [])
    rows: list[_Row] = []
    for name, schema, values in _files(folder, sample):
        tests = [
            (encoder.encode(json.dumps(one["data"], ensure_ascii=False)).ids, one["valid"]) for one in values
        ]
        try:
            rows.append(engine.row(schema, tests))
        except (chatparsers.SchemaError, ValueError) as error:
            yield f"{name}: {str(error)[:200]}"
    both = [(row.first, row.own_first) for row in rows if row.own_first]
    masked = [row for row in rows if row.masks and row.own_masks]
    limited = sum(any("max_" in one.why for one in row.weakened) for row in rows)
    yield f"{len(rows)} schemas, {sum(row.size for row in rows) // 1024} KB; {limited} weakened by a limit"
    yield _line("writing, µs a byte", [row.write / row.size * 1e6 for row in rows])
    yield _line("writing, ms", [row.write * 1e3 for row in rows])
    yield _line("first mask, ms", [row.first * 1e3 for row in rows])
    yield _line("first mask, of llguidance's own", [first / own for first, own in both])
    yield _line("mask, µs", [mask * 1e6 for row in rows for mask in row.masks])
    means = [statistics.mean(row.masks) / statistics.mean(row.own_masks) for row in masked]
    yield _line("mean mask, of llguidance's own", means)
    yield f"valid values refused: {sum(row.refused for row in rows)}; others taken: {sum(row.taken for row in rows)}"


def _line(name: str, values: list[float]) -> str:
    if not values:
        return f"{name:34}  –"
    values = sorted(values)
    shown = (
        f"p{part} {values[min(len(values) - 1, len(values) * part // 100)]:8.2f}" for part in (50, 90, 95, 99)
    )
    return f"{name:34}  least {values[0]:6.2f}  {'  '.join(shown)}"
