"""Reads files from strangers without blocking, and never more than a stated size.

A path may name a pipe, a device, or a sparse file that claims terabytes. So a file is opened without waiting. It must
be a regular file, and its size is checked before it is read.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from reprlib import repr as short
from typing import Any, BinaryIO

from ..errors import LoadError

JSON_BYTES = 8_000_000
TEXT_BYTES = 4_000_000


_MODEL = "a model folder, tokenizer_config.json, .jinja or .gguf file"


def path_of(source: object, expected: str = _MODEL) -> Path:
    """``source`` as an existing path. Raises LoadError, which names what was ``expected``."""
    if not isinstance(source, (str, os.PathLike)):
        raise LoadError(f"expected a path or a template's text, found {kind_of(source)}")
    if not str(source):
        raise LoadError(f"expected {expected}, found an empty text")
    try:
        path = Path(source)
        os.stat(path)
    except FileNotFoundError as error:
        raise LoadError(f"{_name(source)}: no such file; expected {expected}") from error
    except (OSError, ValueError, TypeError) as error:  # too long, a zero byte in it, no text at all
        reason = getattr(error, "strerror", None) or error
        raise LoadError(f"{_name(source)}: cannot be read: {reason}; expected the path of a file") from error
    return path


def _name(source: object) -> str:
    text = str(source)
    return text if len(text) <= 200 else f"{text[:197]}..."


@contextmanager
def opened(file: Path) -> Iterator[tuple[BinaryIO, int]]:
    """The regular file at ``file``, open for reading, and its size. Raises LoadError if it is not a regular file."""
    try:
        handle = os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LoadError(f"{_name(file)}: cannot be read: {reason}") from error
    state = os.fstat(handle)
    if not stat.S_ISREG(state.st_mode):
        os.close(handle)
        raise LoadError(f"{file}: expected a file, found a folder, a pipe or a device")
    with os.fdopen(handle, "rb") as stream:
        yield stream, state.st_size


def read_text(file: Path, most: int = TEXT_BYTES) -> str:
    """The text of ``file``. Raises LoadError if it has more than ``most`` bytes or is not UTF-8."""
    with opened(file) as (stream, size):
        try:
            data = stream.read(most + 1) if size <= most else b""
        except OSError as error:
            raise LoadError(f"{file}: cannot be read: {error.strerror or error}") from error
        if size > most or len(data) > most:
            raise LoadError(f"{file}: expected at most {most:,} bytes, found {max(size, len(data)):,}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LoadError(f"{file}: not UTF-8 at byte {error.start}; save it as UTF-8") from error


def read_json(file: Path) -> dict[str, Any]:
    """The JSON object in ``file``; empty if there is no such file. Raises LoadError for anything else."""
    if not file.exists():
        return {}
    text = read_text(file, JSON_BYTES).removeprefix("\ufeff")
    try:
        fields = json.loads(text)
    except json.JSONDecodeError as error:
        raise LoadError(f"{file}: expected JSON: {error}; download it again") from error
    except (ValueError, RecursionError) as error:  # a number of 5,000 digits, 100,000 brackets
        raise LoadError(f"{file}: JSON that cannot be read: {error}; download it again") from error
    if not isinstance(fields, dict):
        raise LoadError(f"{file}: expected a JSON object, found {kind_of(fields)}; download it again")
    return fields


@contextmanager
def refused(said: Callable[[str], LoadError]) -> Iterator[None]:
    """Raises what ``said`` makes of an error of tokenizers: a bare Exception, or what Rust calls a panic."""
    try:
        yield
    except (LoadError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise said(f"an error: {error}") from error


def kind_of(value: object) -> str:
    """Describes a value for an error: its type and the start of its text."""
    return "nothing" if value is None else f"{type(value).__name__} {short(value)}"
