"""The events of a stream, from the text of a response."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

DONE = "[DONE]"


class Event(NamedTuple):
    """One server-sent event: its name, if it has one, and its data: an object, or `DONE`, or the text of neither."""

    name: str
    data: dict[str, Any] | str


def events(text: str) -> Iterator[Event]:
    """The events of a stream in their order. Comments and other fields are left out."""
    name, lines = "", list[str]()
    for line in [*text.replace("\r\n", "\n").split("\n"), ""]:
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif line.startswith("event:"):
            name = line[6:].strip()
        elif not line and lines:
            yield Event(name, _data("\n".join(lines)))
            name, lines = "", []


def _data(text: str) -> dict[str, Any] | str:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) else text
