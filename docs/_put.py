"""Puts tables between their marks in a page, for the scripts here; with ``--check``, fails if the page is stale."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from chatparsers.formats._generate import page_text

__all__ = ["put"]


def put(page: Path, tables: Mapping[str, str]) -> int:
    """The exit status of the script that is run, whose tables these are, by the names of their marks:
    ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``."""
    script = Path(sys.argv[0]).name
    parser = argparse.ArgumentParser(description=f"Writes tables of {page.name}: {', '.join(tables)}.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is stale")
    given = parser.parse_args()
    text = whole = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        for mark in (f"<!-- {name}: begin -->", f"<!-- {name}: end -->"):
            if whole.count(mark) != 1:
                raise SystemExit(f"{page.name}: expected {mark} once")
        whole = page_text(whole, table, name)
    if whole == text:
        return 0
    if given.check:
        print(f"{page.name} is stale: run python docs/{script}", file=sys.stderr)
        return 1
    page.write_text(whole, encoding="utf-8", newline="\n")
    return 0
