"""Measures a guide beside what it is made of: CPU time of masks, of ids fed, of going back, of copies.

    python benchmarks/guide.py [--tokenizer FILE] [--engine llguidance]

``--tokenizer``: a tokenizer.json, or one packed as .gz; without one, a small tokenizer of the tests. Each line has the
guide's time beside the bare one's in the same process, and their ratio. The budgets stand in docs/guide.md.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # this checkout, installed or not

import numpy as np
from tokenizers import Tokenizer

from chatparsers import Guides, Turn, get_format
from chatparsers.testing.tiny import tiny_model

CITY = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
TOOLS = [{"name": "get_weather", "parameters": {**CITY, "required": ["city"]}}]
BEGINS = {
    "thought": "",
    "content": "Hm.\n</think>\n\nIt ",
    "argument": 'Hm.\n</think>\n\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "It ',
}


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--engine", default="llguidance")
    given = parser.parse_args()
    tokenizer = tiny_model("qwen3").tokenizer if given.tokenizer is None else load(given.tokenizer)
    turn = get_format("qwen3").bind(tools=TOOLS, tokenizer=tokenizer, prefix="<think>\n", id_seed="s")
    print(f"{tokenizer.get_vocab_size()} ids, {given.engine}; microseconds: guide, bare, ratio")
    for where, text in BEGINS.items():
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        word = tokenizer.encode(" word", add_special_tokens=False).ids[-1]
        fill(where, turn, given.engine, ids)
        fed(where, turn, given.engine, ids, word)
        lengths(where, turn, given.engine, ids, word)
    batch(turn, given.engine)


def load(path: Path) -> Tokenizer:
    data = path.read_bytes()
    return Tokenizer.from_str((gzip.decompress(data) if path.suffix == ".gz" else data).decode())


def best(run: Callable[[], object], count: int = 2000, times: int = 9) -> float:
    """The least microseconds of CPU that a call took, of ``times`` rounds of ``count`` calls."""
    found = []
    for _ in range(times):
        begin = process_time()
        for _ in range(count):
            run()
        found.append(process_time() - begin)
    return min(found) / count * 1e6


def told(what: str, guide: float, bare: float | None = None) -> None:
    beside = "" if bare is None else f"{bare:10.2f}{guide / bare:8.2f}"
    print(f"{what:44}{guide:10.2f}{beside}", flush=True)


def begun(turn: Turn, engine: Any, ids: list[int], **limits: Any) -> Any:
    guide = turn.guide(engine, **limits)
    guide.feed(ids)
    return guide


def fill(where: str, turn: Turn, engine: Any, ids: list[int]) -> None:
    guide = begun(turn, engine, ids, thinking_tokens=1 << 40)
    words = np.zeros((1, (guide._plan.size + 31) // 32), dtype=np.int32)
    matcher = guide._matcher.inner
    if engine == "llguidance":
        from llguidance.numpy import fill_next_token_bitmask

        bare = best(lambda: fill_next_token_bitmask(matcher, words))
    else:
        bare = best(lambda: matcher.fill_next_token_bitmask(words))
    told(f"fill, {where}", best(lambda: guide.fill(words)), bare)


def fed(where: str, turn: Turn, engine: Any, ids: list[int], word: int) -> None:
    """An id fed, beside the matcher and a stream that know nothing of each other. Both grow alike."""
    guide = begun(turn, engine, ids, thinking_tokens=1 << 40)
    matcher = begun(turn, engine, ids)._matcher.inner
    take = matcher.consume_token if engine == "llguidance" else matcher.accept_token
    stream = turn.stream()
    stream.feed(ids)

    def both() -> None:
        take(word)
        stream.feed(word)

    told(f"feed, {where}", best(lambda: guide.feed(word)), best(both))


def lengths(where: str, turn: Turn, engine: Any, ids: list[int], word: int) -> None:
    for length in (100, 100_000):
        guide = begun(turn, engine, ids, thinking_tokens=1 << 40)
        for _ in range(length):
            guide.feed(word)
        alone = best(partial(guide.feed, word), 200)
        told(f"rollback(1), {where}, after {length:,} ids", best(partial(_back, guide, word), 200) - alone)
        matcher = guide._matcher
        told(f"fork, {where}, after {length:,} ids", best(guide.fork, 20), best(matcher.copy, 20))


def _back(guide: Any, word: int) -> None:
    guide.feed(word)
    guide.rollback(1)


def batch(turn: Turn, engine: Any) -> None:
    """Sequences that stand at different places, as in a server."""
    texts = ["", *BEGINS.values()]
    guides = []
    for row in range(64):
        ids = turn.tokenizer.encode(texts[row % len(texts)], add_special_tokens=False).ids
        guides.append(begun(turn, engine, ids, thinking_tokens=1 << 40))
    rows = Guides(guides)
    words = np.zeros((64, (guides[0]._plan.size + 31) // 32), dtype=np.int32)
    begin, count = perf_counter(), 0
    while perf_counter() - begin < 2:
        rows.fill(words)
        count += 64
    print(f"64 sequences in one process: {count / (perf_counter() - begin):,.0f} masks a second")


if __name__ == "__main__":
    main()
