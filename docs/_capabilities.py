"""Writes the table of capabilities.md from the templates in folders; with ``--check``, fails if a row is stale.

    python docs/_capabilities.py [--check] FOLDER…

Rows of templates that none of the folders holds stay unchanged.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from chatparsers.core.errors import ChatParsersError
from chatparsers.templates import Capabilities, Template

PAGE = Path(__file__).resolve().parent / "capabilities.md"
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
HEAD = "| Template | Shows | Arguments | Content | Reasoning | Thinking | Channel |"

__all__ = ["main", "row", "rows_of"]


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


def rows_of(page: str) -> dict[str, str]:
    """The rows of the page, by template."""
    found = {}
    for line in page.partition(HEAD)[2].splitlines():
        name, _, rest = line.removeprefix("| ").removesuffix(" |").partition(" | ")
        if rest and not line.startswith("|--"):
            found[name] = rest
    return found


def computed(folder: Path) -> dict[str, str]:
    """The rows of a folder's templates."""
    found = {}
    for path in sorted(folder.glob("*.jinja")):
        try:
            can = Template(
                path.read_text(encoding="utf-8"), bos_token="<s>", eos_token="</s>", name=path.stem
            ).probe()
        except ChatParsersError:
            continue
        found[path.stem] = row(can)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    rows = rows_of(page)
    new = dict(rows)
    for folder in given.folders:
        new |= computed(folder)
    stale = [name for name in new if new[name] != rows.get(name)]
    if given.check:
        for name in stale:
            print(f"{name}: the page says {rows.get(name)}, it is {new[name]}", file=sys.stderr)
        return int(bool(stale))
    lines = [f"| {name} | {cells} |" for name, cells in sorted(new.items(), key=lambda item: item[0].lower())]
    head = page.partition(HEAD)[0]
    PAGE.write_text("\n".join([head + HEAD, "|" + "---|" * 7, *lines]) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
