"""What clients and frameworks make of the streams that a gateway may send: ``clients.json`` and ``clients.md``.

    python docs/tables/_clients.py                    # writes the page from the data
    python docs/tables/_clients.py --check            # fails if the page is not that of the data
    python docs/tables/_clients.py --held FILE…       # takes what clients held, and writes both

The data are what each client held of each shape; the page is how that is judged. ``clients/server.py`` serves the
shapes of ``clients/shapes.json`` and prints its port. ``python clients/holds.py PORT`` and ``node clients/holds.mjs
PORT`` print what the clients that are installed held, a line each: these are the files of ``--held``. ``CLIENTS`` names
the clients' packages and versions as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from _page import put

HERE = Path(__file__).resolve().parent
PAGE = HERE / "clients.md"
DATA = HERE / "clients.json"
SHAPES: dict[str, dict[str, Any]] = json.loads((HERE / "clients" / "shapes.json").read_text("utf-8"))
APIS = {"chat": "Chat Completions", "messages": "Messages"}
_FINISHES = {
    "tool-calls": "tool_calls",
    "tool_call": "tool_calls",
    "tool_use": "tool_calls",
    "content-filter": "content_filter",
    "refusal": "content_filter",
    "end_turn": "stop",
    "max_tokens": "length",
}
"""The names that APIs and frameworks have for the ends of an answer, as Chat Completions names them."""

__all__ = ["DATA", "PAGE", "SHAPES", "judged", "main", "page"]


def _read(call: list[Any]) -> tuple[str, Any]:
    """A call with its arguments as values; text that is no JSON stays."""
    name, text = call
    if text in ("", "null", None):  # no arguments
        return name, {}
    try:
        return name, json.loads(text)
    except ValueError:
        return name, text


def _complete(call: list[Any]) -> bool:
    """Whether a call's arguments are whole: JSON, or the text of a custom tool."""
    return not isinstance(_read(call)[1], str) or not call[1].startswith("{")


def judged(want: Mapping[str, Any], held: Mapping[str, Any]) -> str:
    """What is wrong of what a client held, in words; empty if it works."""
    if "raises" in held:
        return f"raises {held['raises'].split(':')[0].lstrip('_')}"
    wrong: list[str] = []
    calls, found = want["calls"], held["calls"]
    if all(map(_complete, calls)):
        if sorted(map(str, map(_read, calls))) != sorted(map(str, map(_read, found))):
            wrong.append("calls: " + (", ".join(f"`{name or '?'} {text}`" for name, text in found) or "none"))
        elif held.get("invalid"):
            wrong.append("the call is listed as invalid")
    elif found and not held.get("invalid") and any(map(_complete, found)):
        wrong.append("looks whole: " + ", ".join(f"`{text}`" for _, text in found))
    for field in ("content", "reasoning", "refusal"):
        meant, kept = want.get(field, ""), held.get(field) or ""
        if meant and not kept:
            wrong.append(f"loses {field}")
        elif meant != kept:
            wrong.append(f"{field} `{kept}`")
    finish = held["finish"]
    if _FINISHES.get(finish, finish) != _FINISHES.get(want["finish"], want["finish"]):
        shown = finish if finish is None else _FINISHES.get(finish, finish)
        wrong.append(f"ends with {shown}")
    if "usage" in want and held.get("usage") != want["usage"]:
        wrong.append(f"usage {held.get('usage')}")
    return "; ".join(wrong)


_HEAD = """\
# Streams in clients

What clients and frameworks hold at the end of a stream, for shapes that a server of OpenAI's Chat Completions or
Anthropic's Messages may send. ✓: text, thoughts, calls in any order, refusal, usage and end are those that were sent
(a framework's own names for ends count as the same; a cut call may be raised, left out or marked). Else it says what
is lost or raised.

Run on {date} with {clients}. Each client's own accumulator was asked: `stream()` of OpenAI's and Anthropic's packages,
the sum of LangChain's chunks, LiteLLM's `stream_chunk_builder`, `fullStream` of the AI SDK, pydantic-ai's streamed
response. The last column says whether our [gateway](../gateway.md) sends the shape; it sends what all clients take, and
where it cannot, the cells say whom that costs. `python docs/tables/_clients.py` makes the table."""


def page(data: Mapping[str, Any]) -> str:
    """The page of the data."""
    cells = {
        client: {name: judged(SHAPES[name]["want"], one) for name, one in held.items()}
        for client, held in data["held"].items()
    }
    versions = ", ".join(f"{name} {version}" for name, version in data["clients"].items())
    lines = _HEAD.format(date=data["date"], clients=versions).splitlines()
    for api, title in APIS.items():
        shapes = {name: shape for name, shape in SHAPES.items() if shape["api"] == api}
        clients = [client for client, found in cells.items() if found.keys() & shapes.keys()]
        lines += ["", f"## {title}", "", "| Shape | " + " | ".join(clients) + " | Our gateway |"]
        lines.append("|---|" + "---|" * (len(clients) + 1))
        for name, shape in shapes.items():
            row = (cells[client][name].replace("|", "\\|") or "✓" for client in clients)
            lines.append(f"| {shape['say']} | " + " | ".join(row) + f" | {shape['gateway']} |")
    return "\n".join(lines) + "\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def main(argv: list[str] | None = None) -> int:
    """Writes or checks the page, or makes the data anew."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--held", nargs="+", type=Path, metavar="FILE")
    asked = parser.parse_args(argv)
    if asked.held:
        held: dict[str, dict[str, Any]] = {}
        for file in asked.held:
            for line in file.read_text("utf-8").split("\n"):
                if line.startswith("{"):
                    one = json.loads(line)
                    held.setdefault(one["client"], {})[one["shape"]] = one["held"]
        head = {"date": f"{datetime.now():%Y-%m-%d}", "clients": json.loads(os.environ["CLIENTS"])}
        lines = ",\n".join(
            f"  {json.dumps(client)}: {{\n"
            + ",\n".join(f"   {json.dumps(name)}: {_line(one)}" for name, one in found.items())
            + "\n  }"
            for client, found in held.items()
        )
        DATA.write_text(f'{_line(head)[:-1]},\n "held": {{\n{lines}\n }}}}\n', "utf-8")
    return put(PAGE, page(json.loads(DATA.read_text("utf-8"))), asked.check)


if __name__ == "__main__":
    sys.exit(main())
