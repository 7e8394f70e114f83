"""Measures CPU time of this process: medians over rounds. Each round runs all the cases that are compared."""

from __future__ import annotations

import gc
import gzip
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any

from tokenizers import Tokenizer
from tokenizers.decoders import DecodeStream

from chatparsers import Stream

__all__ = [
    "ROOT",
    "best_of",
    "cut",
    "feed",
    "fresh",
    "machine",
    "medians",
    "step",
    "tokenizers_in",
    "trained",
]

ROOT = Path(__file__).resolve().parents[1]


def medians(cases: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """The median over ``rounds`` of each case's measure. The first round warms up and does not count.

    In each round every case runs once, so a slow moment of the machine slows all of them. The garbage collector stays
    on, as in a user's program, but it does not look at older objects.
    """
    found: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds + 1):
        for name, run in cases.items():
            gc.collect()
            gc.freeze()
            value = run()
            if number:
                found[name].append(value)
    gc.unfreeze()
    return {name: statistics.median(values) for name, values in found.items()}


def best_of(run: Callable[[], object], number: int, rounds: int) -> float:
    """Seconds of one call of ``run``: the median over ``rounds`` of ``number`` calls each."""

    def once() -> float:
        begun = process_time()
        for _ in range(number):
            run()
        return (process_time() - begun) / number

    return medians({"": once}, rounds)[""]


def cut(text: str, size: int, pieces: int) -> list[str]:
    """The first ``pieces`` pieces of ``text``, of ``size`` characters each."""
    return [text[at : at + size] for at in range(0, pieces * size, size)]


def feed(stream: Stream, pieces: Iterable[Any]) -> float:
    """Seconds that the stream takes to read the pieces, one by one."""
    take = stream.feed
    begun = process_time()
    for piece in pieces:
        take(piece)
    return process_time() - begun


def step(tokenizer: Tokenizer, ids: Iterable[int]) -> float:
    """Seconds that a bare DecodeStream takes for the ids, one by one: the yardstick."""
    take = DecodeStream(skip_special_tokens=False).step
    begun = process_time()
    for id in ids:
        take(tokenizer, id)
    return process_time() - begun


def fresh(code: str, times: int) -> list[float]:
    """Runs ``code`` in ``times`` new processes, and returns the medians of the numbers that it prints as a JSON list.

    In ``code``, ``clock()`` is the CPU time in milliseconds.
    """
    script = f"import json, time\nclock = lambda: time.process_time() * 1000\n{code}"
    path = os.pathsep.join(
        filter(None, (str(ROOT), str(Path(__file__).parent), os.environ.get("PYTHONPATH")))
    )
    runs: list[list[float]] = []
    for _ in range(times):
        done = subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"a process of its own failed:\n{done.stderr}")
        runs.append(json.loads(done.stdout))
    return [statistics.median(values) for values in zip(*runs, strict=True)]


def machine() -> dict[str, str]:
    """The machine that the figures depend on: the processor's model, the interpreter, tokenizers."""
    import tokenizers

    name = platform.processor() or platform.machine()
    cpus = Path("/proc/cpuinfo")
    if cpus.is_file():
        lines = cpus.read_text(encoding="utf-8", errors="replace").splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    return {
        "cpu": name,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "tokenizers": tokenizers.__version__,
    }


def tokenizers_in(folder: Path | None, only: Sequence[str] = ()) -> dict[str, Tokenizer]:
    """Loads the tokenizers (``*.json``, ``*.json.gz``) of ``folder``, by the stem of the file's name."""
    found: dict[str, Tokenizer] = {}
    for path in sorted(folder.glob("*.json*")) if folder is not None and folder.is_dir() else ():
        name = path.name.removesuffix(".gz").removesuffix(".json")
        if only and name not in only:
            continue
        data = path.read_bytes()
        found[name] = Tokenizer.from_buffer(gzip.decompress(data) if path.suffix == ".gz" else data)
    return found


def trained(texts: Sequence[str], special: Sequence[str]) -> Tokenizer:
    """A small byte-level tokenizer of these texts, for machines without a real one."""
    from tokenizers import decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
