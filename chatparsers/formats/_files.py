"""Formats in files: documents (docs/formats-as-data.md) of a plugin, of a folder, or that the caller names."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

from ..answers.format import Format
from ..document import MOST, loads
from ..errors import DefinitionError, warn_user
from ..plain import one_line

FOLDERS = "CHATPARSERS_FORMATS"
"""The variable that names folders of documents."""
_MOST_FILES = 1000


def read_file(path: str | Path) -> Format:
    """The format of a document. Raises `DefinitionError`, which names the file and the place in it."""
    return read_both(path)[0]


def read_both(path: str | Path) -> tuple[Format, dict[str, Any]]:
    """The format of a document, and the document. Raises as `read_file`."""
    shown = one_line(str(path))
    try:
        with open(path, "rb") as file:
            return _read(file, shown)
    except OSError as error:
        raise DefinitionError(f"{shown}: {error.strerror or error}; name a document's file") from None


def read_resource(package: str, name: str) -> Format:
    """The format of a document that lies in a package."""
    from importlib.resources import files  # takes many modules, and few packages have documents

    with (files(package) / name).open("rb") as file:
        return _read(file, f"{package}:{name}")[0]


def _read(file: IO[bytes], shown: str) -> tuple[Format, dict[str, Any]]:
    try:
        document = loads(file.read(4 * MOST + 1).decode("utf-8"))
        return Format.from_data(document), document
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{shown}: expected UTF-8: {error}; write it in UTF-8") from None
    except DefinitionError as error:
        raise DefinitionError(f"{shown}: {error}") from error.__cause__


def of_folders() -> tuple[tuple[str, Format], ...]:
    """The formats of the folders that `FOLDERS` names, each with its origin, sorted by file. A file that is no document
    is left out, with a warning."""
    found: list[tuple[str, Format]] = []
    for folder in filter(None, os.environ.get(FOLDERS, "").split(os.pathsep)):
        try:
            paths = sorted(path for path in Path(folder).iterdir() if path.suffix == ".json")[:_MOST_FILES]
            stamps = [(path, path.stat()) for path in paths]
        except OSError as error:
            warn_user(f"{FOLDERS}: {one_line(folder)}: {error.strerror or error}; name a folder")
            continue
        for path, stamp in stamps:
            format = _kept(str(path), stamp.st_mtime_ns, stamp.st_size)
            found += [] if format is None else [(f"{FOLDERS}: {path.name}", format)]
    return tuple(found)


@lru_cache(maxsize=1024)
def _kept(path: str, changed: int, size: int) -> Format | None:
    """The format of the file as it is since ``changed``; None, with a warning, if it is no document."""
    try:
        return read_file(path)
    except DefinitionError as error:
        warn_user(f"{FOLDERS}: {error}; mend the file, or take it out of the folder")
        return None
