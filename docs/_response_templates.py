"""Writes the table of formats in tables/response-templates.md; with ``--check``, fails if it is stale."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _put import put

from chatparsers import get_format, list_formats
from chatparsers.interop import WrittenTemplate, write_response_template

PAGE = Path(__file__).resolve().parent / "tables" / "response-templates.md"
_OF_ALL = (
    "text before and after a call: the last part replaces the others",
    "prose that holds the opener of a call, and a call that is broken or cut off, raise an error",
    "white space at the ends of reasoning and content is stripped",
    "a thought is in the field thinking: what asks for reasoning_content does not find it",
)
"""What every template of this kind loses: the page says it once."""

__all__ = ["table"]


def table() -> str:
    """One line for each built-in format."""
    lines = ["| Format | Reasoning | Calls | Lost beside what all lose |", "|---|---|---|---|"]
    for info in list_formats():
        if info.origin == "chatparsers":
            format = get_format(info.name)
            servers = write_response_template(format, "…", for_="servers")
            thoughts = (
                "yes" if "thinking" in servers.spec["fields"] else "no" if format.features.reasoning else "–"
            )
            lost = "; ".join(line for line in servers.lost if line not in _OF_ALL).replace("|", "\\|")
            lines.append(f"| `{info.name}` | {thoughts} | {_calls(format, servers)} | {lost or '–'} |")
    return "\n".join(lines) + "\n"


def _calls(format: Any, servers: WrittenTemplate) -> str:
    if "tool_calls" in servers.spec["fields"]:
        return "yes"
    if "tool_calls" in write_response_template(format, "…").spec["fields"]:
        return "transformers only"
    return "no" if format.features.tools else "–"


if __name__ == "__main__":
    sys.exit(put(PAGE, {"response templates": table()}))
