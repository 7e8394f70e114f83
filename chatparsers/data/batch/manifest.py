"""The manifest of a batch: its inputs, options and version. A batch that goes on must have the same."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ... import __version__
from .inputs import MANIFEST, BatchError, Input


def write_json(path: Path, value: Any) -> None:
    """Writes JSON aside, to the disk, and then under its name."""
    write_lines(path, [json.dumps(value, ensure_ascii=False, indent=2, default=str)])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Writes lines aside, to the disk, and then under the name."""
    aside = path.with_name(path.name + ".tmp")
    with open(aside, "w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(line + "\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(aside, path)


def read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest in a folder; None if there is none. Raises `BatchError` if it cannot be read."""
    path = folder / MANIFEST
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BatchError(f"{path}: expected the manifest of a batch: {error}") from error
    if not isinstance(found, dict) or not {"inputs", "options", "decided"} <= found.keys():
        raise BatchError(f"{path}: expected the manifest of a batch, found another JSON file")
    return found


def begin(
    folder: Path, inputs: Sequence[Input], options: Mapping[str, Any], *, resume: bool
) -> Mapping[str, Any] | None:
    """What an earlier run decided, of which the folder has parts; None for a new one.

    Raises `BatchError` if the folder has a batch and ``resume`` is false, or if its inputs, options or version are
    others: each is named.
    """
    if folder.exists() and not folder.is_dir():
        raise BatchError(f"{folder}: expected a folder, found a file: choose another --out")
    before, parts = read_manifest(folder), folder.is_dir() and any(folder.glob("*.parquet"))
    if before is None or not (parts or resume):
        if parts:
            raise BatchError(
                f"{folder}: expected an empty folder, found parts without a {MANIFEST}: choose another --out"
            )
        return None
    if not resume:
        raise BatchError(f"{folder}: a batch is there already: go on with --resume, or choose another --out")
    changed = list(_changed(before, inputs, options))
    if changed:
        raise BatchError(
            f"{folder}: --resume needs the same inputs and options; changed: {'; '.join(changed)} "
            "(choose another --out)"
        )
    for left in folder.glob("*.tmp"):
        left.unlink()
    decided: Mapping[str, Any] = before["decided"]
    return decided


def _changed(before: Mapping[str, Any], inputs: Sequence[Input], options: Mapping[str, Any]) -> Iterable[str]:
    if before.get("version") != __version__:
        yield f"the version of chatparsers ({before.get('version')}, now {__version__})"
    was = {found["path"]: found for found in before["inputs"]}
    now = {input.path: input.to_dict() for input in inputs}
    for path in [*was, *(path for path in now if path not in was)]:
        if path not in now:
            yield f"input {path} (gone)"
        elif path not in was:
            yield f"input {path} (new)"
        elif was[path] != now[path]:
            yield f"input {path} (size or time)"
    if list(was) != list(now) and was.keys() == now.keys():
        yield "the order of the inputs"
    given = json.loads(json.dumps(dict(options), default=str))
    for name in sorted(before["options"].keys() | given.keys()):
        old, new = before["options"].get(name), given.get(name)
        if old != new:
            yield f"{name} ({old!r}, now {new!r})"
