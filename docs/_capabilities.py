"""Writes docs/tables/capabilities.md from the templates in folders; with ``--check``, fails if a row is stale.

    python docs/_capabilities.py [--check] FOLDER…

Rows of templates that none of the folders holds stay unchanged.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import chatparsers
from chatparsers import Chat
from chatparsers.errors import ChatParsersError
from chatparsers.templates import Capabilities, Template

PAGE = Path(__file__).resolve().parent / "tables" / "capabilities.md"
FLAGS = {
    "tools": "T",
    "tool_calls": "C",
    "parallel_calls": "P",
    "content_beside_calls": "X",
    "tool_role": "R",
    "parallel_results": "2",
    "result_ids": "#",
    "reasoning": "t",
    "reasoning_with_calls": "c",
    "system_role": "S",
    "several_systems": "s",
    "late_system": "l",
    "developer_role": "D",
    "consecutive_users": "U",
    "images": "I",
}
_LONGEST = 90
HEAD = "| Template | Shows | Arguments | Content | Reasoning | Thinking | Channel |"

BRIDGES = {
    ("answer", "user"): "a",
    ("answer", "system"): "s",
    ("call", "result"): "r",
    ("parallel calls", "result"): "p",
    ("call", "user"): "u",
    ("thought and answer", "user"): "t",
    ("thought and call", "result"): "c",
}
BRIDGES_HEAD = "| Template | Proved | After an answer, before a user | After a call, before its result |"
DIALS_HEAD = "| Template | Levels | Without a wish | On | Off |"
HEADS = (HEAD, BRIDGES_HEAD, DIALS_HEAD)

__all__ = ["bridges_row", "dial_row", "main", "row", "rows_of"]


def row(can: Capabilities) -> str:
    """The cells of a template, after its name."""
    shown = "".join(letter if getattr(can, name) else "·" for name, letter in FLAGS.items())
    default = {True: " (on)", False: " (off)", None: ""}[can.thinking_default]
    thinking = f"`{can.thinking_switches[0]}`{default}" if can.thinking_switches else "–"
    channel = (
        " … ".join(f"`{text.strip()}`" if text else "–" for text in can.channel) if any(can.channel) else "–"
    )
    cells = (f"`{shown}`", can.arguments_as, can.content_as, can.reasoning_as or "–", thinking, channel)
    return " | ".join(cell.replace("|", r"\|").replace("\n", "⏎") for cell in cells)


def bridges_row(chat: Chat) -> str:
    """The cells of a template's bridges, after its name."""
    found = chat.bridge
    shown = "".join(letter if found[key].proved else "·" for key, letter in BRIDGES.items())
    cells = [f"`{shown}`"]
    for key in (("answer", "user"), ("call", "result")):
        bridge = found[key]
        text = str(bridge.delta)[:_LONGEST] if bridge.proved else bridge.reason or "refused"
        cells.append(f"`{text}`" if bridge.proved else text)
    return " | ".join(cell.replace("|", r"\|").replace("\n", "⏎") for cell in cells)


def dial_row(chat: Chat) -> str:
    """The cells of a template's dial, after its name; "" if it has none, and no thoughts to turn off."""
    found = chat.record().thoughts
    if not found:
        return ""
    levels = []
    for name, variables in found["levels"].items():
        given = ", ".join(f"{key}={json.dumps(value)}" for key, value in variables.items())
        levels.append(f"{name} `{given}`" if given else name)
    cells = ("; ".join(levels) or "–", *(found[name] or "–" for name in ("default", "on", "off")))
    return " | ".join(cell.replace("|", r"\|").replace("\n", "⏎") for cell in cells)


def rows_of(page: str, head: str = HEAD) -> dict[str, str]:
    """The rows of a table of the page, by template."""
    found = {}
    for line in page.partition(head)[2].partition("\n\n")[0].splitlines():
        name, _, rest = line.removeprefix("| ").removesuffix(" |").partition(" | ")
        if rest and not line.startswith("|--"):
            found[name] = rest
    return found


def computed(folder: Path) -> tuple[dict[str, str], ...]:
    """The rows of a folder's templates in each of the tables."""
    found: tuple[dict[str, str], ...] = tuple({} for _ in HEADS)
    for path in sorted(folder.glob("*.jinja")):
        try:
            can = Template(
                path.read_text(encoding="utf-8"), bos_token="<s>", eos_token="</s>", name=path.stem
            ).probe()
        except ChatParsersError:
            continue
        chat = chatparsers.load(path, bos_token="<s>", eos_token="</s>")
        for rows, cells in zip(found, (row(can), bridges_row(chat), dial_row(chat)), strict=True):
            rows[path.stem] = cells
    return found


def _lines(rows: dict[str, str]) -> list[str]:
    return [f"| {name} | {cells} |" for name, cells in sorted(rows.items(), key=lambda item: item[0].lower())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    tables = [rows_of(page, head) for head in HEADS]
    new = [dict(table) for table in tables]
    for folder in given.folders:
        for rows, found in zip(new, computed(folder), strict=True):
            rows |= found
            for name in [name for name, cells in rows.items() if not cells]:
                del rows[name]
    if given.check:
        stale = [
            (name, table.get(name), rows.get(name))
            for table, rows in zip(tables, new, strict=True)
            for name in {**table, **rows}
            if table.get(name) != rows.get(name)
        ]
        for name, said, right in stale:
            print(f"{name}: the page says {said}, it is {right}", file=sys.stderr)
        return int(bool(stale))
    for head, rows in zip(HEADS, new, strict=True):
        before, _, rest = page.partition(head)
        after = rest.partition("\n\n")[2].strip()
        lines = [before + head, "|" + "---|" * (head.count("|") - 1), *_lines(rows)]
        page = "\n".join([*lines, *(["", after] if after else [])]) + "\n"
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
