"""Sample outputs for ``chatparsers demo``: one file a format, and the tools that they call.

A file has the name of its format. It begins with lines ``key: value``. ``question`` is the user's question. ``prefix``,
if there is one, is the part of the answer that the prompt already wrote, as a JSON string. ``order`` is a number:
samples with a low number come first. A line ``---`` ends the keys. The model's raw output follows, up to the file's
last line break.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

__all__ = ["Sample", "samples", "tools"]

_ORDER = 50


@dataclass(frozen=True, slots=True)
class Sample:
    """A raw output in the format of that name."""

    format: str
    question: str
    prefix: str
    output: str
    order: int


def samples() -> list[Sample]:
    """The bundled samples, sorted by their order, then by format."""
    found = [entry for entry in files(__name__).iterdir() if entry.name.endswith(".txt")]
    read = [_read(entry.name, entry.read_bytes()) for entry in found]
    return sorted(read, key=lambda sample: (sample.order, sample.format))


def tools() -> list[dict[str, Any]]:
    """The tools of the samples, OpenAI-shaped."""
    listed: list[dict[str, Any]] = json.loads(files(__name__).joinpath("tools.json").read_bytes())
    return listed


def _read(name: str, raw: bytes) -> Sample:
    head, _, output = raw.decode("utf-8").replace("\r\n", "\n").partition("\n---\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    return Sample(
        format=name.removesuffix(".txt"),
        question=fields["question"],
        prefix=json.loads(fields.get("prefix", '""')),
        output=output.removesuffix("\n"),
        order=int(fields.get("order", _ORDER)),
    )
