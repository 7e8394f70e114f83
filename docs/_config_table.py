"""Writes the tables of docs/tables/config.md: every key of a gateway's file, from the vocabulary of the command line.

python docs/_config_table.py [--check]
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from _put import put

from chatparsers.cli.arguments import build_parser
from chatparsers.cli.arguments.words import Word
from chatparsers.operate.config import TABLES

PAGE = Path(__file__).parent / "tables" / "config.md"


def table(name: str) -> str:
    """The rows of a table of the file."""
    parser = build_parser().actions["serve"]
    rows = ["| Key | Value | Flag | |", "|---|---|---|---|"]
    for word in (*parser.words, *parser.in_file):
        key = dict(word.places).get(name)
        if key is not None and word.says:
            flag = "" if word in parser.in_file else f"`{word.flag}`"
            rows.append(f"| `{key}` | {' '.join(_value(word))} | {flag} | {_says(word)} |")
    return "\n".join(rows) + "\n"


def _value(word: Word) -> Iterator[str]:
    if word.many:
        yield "list of"
    if word.choices:
        yield ", ".join(f"`{one}`" for one in word.choices)
    else:
        yield {"": "true or false", "JSON": "a table"}.get(word.kind, word.kind.rstrip("0"))


def _says(word: Word) -> str:
    default = word.default or ""
    return word.says.replace("%(default)s", default).replace("%(default)g", default).replace("|", "/")


if __name__ == "__main__":
    sys.exit(put(PAGE, {name: table(name) for name in TABLES}))
