"""The prepared requests of the playground: one file each in ``examples/``.

A file begins with lines ``key: value``: ``title``, ``order`` (a number), and what has few words (``format``,
``thinking``, ``choice``, ``builtin``, the name of a built-in template). Then each longer field follows a line
``--- field``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.resources import files
from typing import cast

from ..templates.builtins import builtin_source
from .reading import Asked

_part = re.compile(r"^--- (template|messages|tools|output)\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Example:
    """A request with a name and a title."""

    name: str
    title: str
    asked: Asked


def examples() -> list[Example]:
    """All examples, in their order."""
    found = [file for file in (files(__package__) / "examples").iterdir() if file.name.endswith(".txt")]
    read = [_read(file.name.removesuffix(".txt"), file.read_bytes().decode()) for file in found]
    return [example for _, example in sorted(read, key=lambda each: each[0])]


def _read(name: str, text: str) -> tuple[int, Example]:
    head, *parts = _part.split(text.replace("\r\n", "\n"))
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    order, title = int(fields.pop("order")), fields.pop("title")
    builtin = fields.pop("builtin", None)
    if builtin is not None:
        fields["template"] = builtin_source(builtin)
    fields |= {field: part.removesuffix("\n") for field, part in zip(parts[::2], parts[1::2], strict=True)}
    asked = dict.fromkeys(("template", "format", "messages", "tools", "output"), "") | fields
    return order, Example(name, title, cast(Asked, asked))
