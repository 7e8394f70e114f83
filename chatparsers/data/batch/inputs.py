"""The files of a batch: found by name, pattern or folder, each with what it holds."""

from __future__ import annotations

import glob
import io
import os
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from ..arrow import pyarrow as pa

MANIFEST, ERRORS = "manifest.json", "errors.jsonl"
"""What the folder of a batch has beside its rows."""
STDIN = "-"
_KINDS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
_PACKED = {".gz": "gzip", ".zst": "zstd"}


class BatchError(Exception):
    """A batch cannot go on. The text says what was found, and what to do."""


@dataclass(frozen=True)
class Input:
    """A file. ``kind``: ``jsonl``, ``parquet`` or ``arrow``. ``packed``: ``gzip``, ``zstd`` or "". ``mtime``:
    nanoseconds."""

    path: str
    kind: str
    packed: str
    size: int
    mtime: int

    @property
    def name(self) -> str:
        """The file's name without its folder."""
        return os.path.basename(self.path)

    def to_dict(self) -> dict[str, Any]:
        """The file as a manifest has it."""
        return asdict(self)


def find_inputs(names: Iterable[str]) -> list[Input]:
    """The files that names, patterns and folders stand for, each once, in order. Raises `BatchError`."""
    found: dict[str, Input] = {}
    for name in names:
        if name == STDIN:
            found[name] = Input(STDIN, "jsonl", "", 0, 0)
            continue
        paths = list(_paths(name))
        if not paths:
            what = (
                "no file of rows in that folder"
                if Path(name).is_dir()
                else "no such file, or no file of rows"
            )
            raise BatchError(f"{name}: {what} ({_known()})")
        for path in paths:
            found.setdefault(path, _input(path))
    if STDIN in found and len(found) > 1:
        raise BatchError("standard input (-) must be the only input")
    return list(found.values())


def _paths(name: str) -> Iterator[str]:
    path = Path(name)
    if path.is_file():
        yield name
    elif path.is_dir():
        for file in sorted(path.rglob("*")):
            known = file.is_file() and _kind(file.name) is not None and not file.name.startswith((".", "_"))
            if known and not (file.name in (MANIFEST, ERRORS) and file.with_name(MANIFEST).exists()):
                yield str(file)
    else:
        yield from sorted(match for match in glob.glob(name, recursive=True) if os.path.isfile(match))


def _kind(name: str) -> tuple[str, str] | None:
    stem, end = os.path.splitext(name.lower())
    packed = _PACKED.get(end, "")
    if packed:
        end = os.path.splitext(stem)[1]
    kind = _KINDS.get(end)
    return None if kind is None or (packed and kind != "jsonl") else (kind, packed)


def _known() -> str:
    return f"known are {', '.join(_KINDS)}, and JSON lines with .gz or .zst"


def _input(path: str) -> Input:
    kind = _kind(os.path.basename(path))
    if kind is None:
        raise BatchError(f"{path}: expected a known ending, found {os.path.basename(path)!r} ({_known()})")
    stat = os.stat(path)
    return Input(path, kind[0], kind[1], stat.st_size, stat.st_mtime_ns)


def opened(input: Input) -> BinaryIO:
    """The bytes of a file of lines, unpacked."""
    if input.path == STDIN:
        import sys

        if sys.stdin is None:
            raise BatchError("standard input: expected rows, found it closed (name a file)")
        stdin: BinaryIO = sys.stdin.buffer
        return stdin
    if input.packed == "gzip":
        import gzip

        return gzip.open(input.path, "rb")  # type: ignore[return-value]
    if input.packed:
        return io.BufferedReader(pa.CompressedInputStream(pa.OSFile(input.path), input.packed))
    return open(input.path, "rb")
