"""Files for commands: reads text files unchanged and JSON of a known shape, writes JSON to standard output."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, TextIO


class Refused(Exception):
    """The command cannot do what it was asked. The text tells the user why."""


def name_of(path: str) -> str:
    """The file's name in errors."""
    return "standard input" if path == "-" else path


def existing(path: str) -> Path:
    """The path of an existing file or folder. Raises `Refused` if it does not exist."""
    try:
        if Path(path).exists():
            return Path(path)
    except (OSError, ValueError) as error:
        raise Refused(f"{path}: {error}") from error
    raise Refused(f"{path}: no such file or folder")


def writable(folder: Path) -> Path:
    """A folder in which files can be written, and which need not be there yet. Raises `Refused` if they cannot."""
    from tempfile import TemporaryFile

    try:
        there = next(path for path in (folder, *folder.parents) if path.exists())
        with TemporaryFile(dir=there):
            return folder
    except OSError as error:
        raise Refused(f"{folder}: no file can be written there: {error.strerror or error}") from error


def standard_input() -> TextIO:
    """Standard input. Raises `Refused` if it is closed."""
    if sys.stdin is None:
        raise Refused("standard input: expected text, found it closed (name a file)")
    return sys.stdin


def read_text(path: str) -> str:
    """The text of a file, or (``-``) of standard input, line ends unchanged. Raises `Refused` if it cannot be read."""
    if path == "-":
        stdin = standard_input()
        buffer = getattr(stdin, "buffer", None)
        raw = buffer.read() if buffer is not None else stdin.read().encode("utf-8", "surrogatepass")
    else:
        file = existing(path)
        if file.is_dir():
            raise Refused(f"{path}: expected a file, found a folder")
        try:
            raw = file.read_bytes()
        except OSError as error:
            raise Refused(f"{path}: {error.strerror or error}") from error
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError as error:
        raise Refused(
            f"{name_of(path)}: expected UTF-8 text, found byte 0x{raw[error.start]:02x} at offset {error.start}"
        ) from error


def read_template(path: str) -> str:
    """The text of a chat template, as `read_text` gives it. Raises `LoadError` if it is none."""
    from ..tokens.loaders import checked_template

    return checked_template(read_text(path), name_of(path))


def read_json(path: str) -> Any:
    """The JSON value in a file, or (``-``) in standard input. Raises `Refused` with line and column."""
    text = read_text(path).removeprefix("\ufeff")
    if not text.strip():
        raise Refused(f"{name_of(path)}: expected JSON, found nothing in it")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{name_of(path)}: expected JSON: {error}") from error


def json_object(flag: str, given: str | None) -> dict[str, Any]:
    """The JSON object that is given with a flag; an empty one without it. Raises `Refused` for anything else."""
    try:
        found = json.loads(given or "{}")
    except (ValueError, RecursionError) as error:
        raise Refused(f"{flag}: expected a JSON object, found {given!r:.60}: {error}") from error
    if not isinstance(found, dict):
        raise Refused(f"{flag}: expected a JSON object, found {given!r:.60}")
    return found


def items(path: str, key: str) -> list[Any]:
    """The list in a JSON file, or the list under ``key`` of the object in it (such as a whole request)."""
    value = read_json(path)
    if isinstance(value, dict) and key in value:
        value = value[key]
    if not isinstance(value, list):
        raise Refused(
            f"{name_of(path)}: expected a list of {key}, or an object with one under {key!r}; "
            f"found {_kind(value)}"
        )
    return value


def _kind(value: object) -> str:
    kinds = {dict: "an object", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")


def to_json(value: object, *, indent: int | None = None) -> str:
    """``value`` as JSON text; with ASCII escapes if UTF-8 cannot encode it."""
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=str)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent, default=str)
    return text


def print_json(value: object, *, indent: int | None = None) -> None:
    """Prints ``value`` as JSON and flushes."""
    print(to_json(value, indent=indent), flush=True)


@contextmanager
def output_to(path: str) -> Iterator[None]:
    """What is printed goes to a file, whole or not at all; ``-`` is standard output. Raises `Refused` at once if the
    file cannot be written."""
    if path == "-":
        yield
        return
    target = Path(path).resolve()
    aside = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    whole = target.is_file() or not target.exists()  # nothing is put in the place of a device or a pipe
    try:
        file = (aside if whole else target).open(
            "w", encoding="utf-8", errors="backslashreplace", newline="\n"
        )
    except OSError as error:
        raise Refused(f"{path}: cannot be written: {error.strerror or error}") from error
    try:
        with file, redirect_stdout(file):
            yield
        if whole:
            if target.exists():
                shutil.copymode(target, aside)
            os.replace(aside, target)
    finally:
        if whole:
            aside.unlink(missing_ok=True)
