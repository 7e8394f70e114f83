"""Where a key stands in a file of TOML. The standard library's reader does not tell."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .toml import TOMLDecodeError, loads

Path = tuple[str, ...]
"""The names of tables, and of the key in the last one."""
_said_at = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")


class Places:
    """The lines and columns of a text's keys.

    A key begins where the text, read up to there, lacks it, and read on to the end of a line has it. So what a value
    or a remark says of keys does not mislead.
    """

    def __init__(self, text: str) -> None:
        lines = text.splitlines(keepends=True)
        self._lines = lines
        self._known: dict[Path, int] = {}
        begin = 0
        for end in range(1, len(lines) + 1):
            try:
                found = loads("".join(lines[:end]))
            except TOMLDecodeError:  # in the middle of a value
                continue
            for path in _paths(found):
                self._known.setdefault(path, begin)
            begin = end

    def of(self, path: Path) -> tuple[int, int]:
        """The line and the column of a key, or of the table nearest to it; the beginning, if there is none."""
        while path and path not in self._known:
            path = path[:-1]
        if not path:
            return 1, 1
        line = self._known[path]
        name = re.escape(path[-1])
        at = re.search(rf"(?<![\w-]){name}(?![\w-])", self._lines[line])
        return line + 1, 1 if at is None else at.start() + 1


def _paths(found: Mapping[str, Any], before: Path = ()) -> Iterator[Path]:
    for name, value in found.items():
        yield (*before, name)
        if isinstance(value, dict):
            yield from _paths(value, (*before, name))


def of_error(text: str, error: TOMLDecodeError) -> tuple[int, int, str]:
    """The line and the column of what is no TOML, and what is wrong there."""
    said = str(error)
    at = _said_at.search(said)
    if at is not None and at[1] is not None:
        return int(at[1]), int(at[2]), said[: at.start()]
    last = text.splitlines() or [""]
    return len(last), len(last[-1]) + 1, said[: at.start()] if at is not None else said
