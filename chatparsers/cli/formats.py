"""``chatparsers formats list`` and ``formats table``: the formats, and whether a page has their tables."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from typing import Any

from ..plain import one_line
from .files import Refused, print_json, read_text

_COLUMNS = ("name", "title", "reasoning", "tools", "parallel", "ids", "aliases", "origin")


def run(arguments: Namespace) -> int:
    """Prints the formats: a table, JSON, or the tables of docs/tables/formats.md."""
    if arguments.form == "markdown":
        sys.stdout.write(_markdown())
        return 0
    from ..registry import list_formats

    listed = [_row(info) for info in list_formats()]
    if arguments.form == "json":
        print_json(listed, indent=2)
    else:
        for line in _lines([_cells(row) for row in listed]):
            print(line)
    return 0


def _row(info: Any) -> dict[str, Any]:
    """One format as JSON data. Its features are null if its module cannot be loaded, as a plugin's may fail to."""
    from ..errors import ChatParsersError

    has: dict[str, bool | None] = dict.fromkeys(("reasoning", "tools", "parallel", "ids"))
    try:
        features = info.load().features
        has = {name: getattr(features, name) for name in has}
    except ChatParsersError as error:
        print(f"chatparsers: warning: {one_line(str(error))}", file=sys.stderr)
    return {
        "name": info.name,
        "title": info.title,
        **has,
        "aliases": list(info.aliases),
        "origin": info.origin,
        "url": info.url,
        "markers": list(info.markers),
    }


def _cells(row: dict[str, Any]) -> list[str]:
    shown = {True: "yes", False: "–", None: "?"}
    return [
        ", ".join(value) if isinstance(value, list) else value if isinstance(value, str) else shown[value]
        for value in (row[column] for column in _COLUMNS)
    ]


def _lines(table: Sequence[Sequence[str]]) -> Iterable[str]:
    titles = [column.capitalize() for column in _COLUMNS]
    widths = [max(map(len, column)) for column in zip(titles, *table, strict=True)]
    for cells in (titles, ["─" * width for width in widths], *table):
        yield "  ".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=True)).rstrip()


def _markdown() -> str:
    from ..formats import chatparsers_register_formats
    from ..formats._generate import table

    return table(reference.load() for reference in chatparsers_register_formats())


def table(arguments: Namespace) -> int:
    """Prints nothing, and returns 1 if the tables in a file are stale. Raises `Refused` for a file without them."""
    from ..formats._generate import page_text

    path: str = arguments.table
    text, table = read_text(path).replace("\r\n", "\n"), _markdown()
    if page_text(text, table) != text:
        hint = "run `python -m chatparsers.formats`"
        print(f"chatparsers: {path}: the table of formats is stale: {hint}", file=sys.stderr)
        return 1
    if table not in text:
        marks = "<!-- formats: begin --> and <!-- formats: end -->"
        raise Refused(f"{path}: expected the table of formats between {marks}, found no such lines")
    return 0
