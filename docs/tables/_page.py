"""Writes the whole page of a table, for the scripts here."""

from __future__ import annotations

from pathlib import Path

__all__ = ["put"]


def put(page: Path, text: str, check: bool) -> int:
    """The exit status of a script whose page this is. ``check``: nothing is written; 1 if the page has another text."""
    if check:
        return int(page.read_text("utf-8") != text)
    page.write_text(text, "utf-8")
    return 0
