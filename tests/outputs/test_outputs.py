"""What real small models wrote, and what we read of it. README.md beside this file says where the outputs come from.

``outputs.jsonl.gz`` has one output a line: the request's ``format``, ``prefix`` and ``tools`` (a name of
``tools.json``), the ``model``, its ``temperature``, the ``text``, a ``verdict`` and the ``message`` that was judged.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chatparsers import Message, Turn, get_format
from chatparsers.testing import check_cuts, check_prefixes
from chatparsers.testing.chunkings import characters, random_cuts

FILE = Path(__file__).with_name("outputs.jsonl.gz")
TOOLS = json.loads(Path(__file__).with_name("tools.json").read_text(encoding="utf-8"))
ROWS: list[dict[str, Any]] = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]
FORMATS = sorted({row["format"] for row in ROWS})


def turn_of(row: dict[str, Any]) -> Turn:
    return get_format(row["format"]).bind(tools=TOOLS[row["tools"]], prefix=row["prefix"], id_seed="")


def said(message: Message) -> dict[str, Any]:
    """What is frozen of a message. The regions are checked against it, and are not frozen."""
    return {
        "content": message.content,
        "reasoning": message.reasoning,
        "calls": [[call.name, call.arguments, call.complete] for call in message.tool_calls],
        "diagnostics": [f"{one.code} {one.position}" for one in message.diagnostics],
        "complete": message.complete,
    }


def difference(row: dict[str, Any], found: dict[str, Any]) -> str:
    lines = [f"{row['format']}, prefix {row['prefix']!r}, tools {row['tools']}: {row['text']!r:.600}"]
    for key, was in row["message"].items():
        if found[key] != was:
            lines += [f"  {key}", f"    judged {was!r:.400}", f"    now    {found[key]!r:.400}"]
    return "\n".join(lines)


@pytest.fixture(scope="session")
def rows(request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """The outputs. ``--update-goldens`` reads all messages anew, and prints what has changed, to be judged."""
    if request.config.getoption("--update-goldens"):
        for row in ROWS:
            found = said(turn_of(row).parse(row["text"]))
            if found != row["message"]:
                print(difference(row, found))
                row["message"] = found
        lines = (json.dumps(row, ensure_ascii=False) for row in ROWS)
        FILE.write_bytes(gzip.compress("\n".join(lines).encode(), 9, mtime=0))
    return ROWS


@pytest.mark.one_in(1)
@pytest.mark.parametrize("format", FORMATS)
def test_an_output_is_read_as_it_was_judged(
    format: str, rows: list[dict[str, Any]], amount: Callable[[int, int, int], int], drawn: Any
) -> None:
    """All outputs as wholes. In every cut usually a few of each format; with `--nightly` all."""
    own = [row for row in rows if row["format"] == format]
    for row in own:
        found = said(turn_of(row).parse(row["text"]))
        assert found == row["message"], difference(row, found)
    for row in drawn.some(own, lambda row: row["text"], amount(2, 20, len(own))):
        turn, text = turn_of(row), row["text"]
        message = check_cuts(turn, text, [characters(text), *random_cuts(text, 2)])
        assert said(message) == row["message"], difference(row, said(message))
        check_prefixes(turn, text, 1 + len(text) // 8)
