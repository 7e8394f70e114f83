"""Writes tables/mends.md, the leniencies, from the heads of their files; with ``--check``, fails if it is stale.

A head begins with the real text in double backquotes, and goes on with what is read. The price is counted: how many
instructions the programs of six formats have for the mend.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from _put import put

from chatparsers import get_format
from chatparsers.answers.idioms import Options
from chatparsers.answers.mends import NAMES
from chatparsers.parser import program

__all__ = ["table"]

PAGE = Path(__file__).resolve().parent / "tables" / "mends.md"
_FORMATS = ("qwen3", "qwen3-coder", "glm-4-5", "deepseek-v3-1", "llama-3-x", "minimax-m3")
_PACKAGE = "chatparsers.answers.mends"


def table() -> str:
    """One line for each mend, in the order in which they are tried."""
    lines = ["| `Format.mends` | What is read | Instructions |", "|---|---|---:|"]
    whole = _size(NAMES)
    for name in NAMES:
        head = " ".join((import_module(f"{_PACKAGE}.{name}").__doc__ or "").split())
        price = whole - _size(tuple(other for other in NAMES if other != name))
        lines.append(f"| `{name}` | {head.replace('|', chr(92) + '|')} | {price} |")
    return "\n".join(lines) + "\n"


def _size(mends: tuple[str, ...]) -> int:
    """The instructions of the formats' programs: for calls, for an answer in JSON, and for calls in any answer."""
    ways = (Options(tools=True), Options(schema=True), Options(tools=True, lenient=True))
    formats = [replace(get_format(name), mends=mends) for name in _FORMATS]
    return sum(len(program(format, options).code) for format in formats for options in ways)


if __name__ == "__main__":
    sys.exit(put(PAGE, {"mends": table()}))
