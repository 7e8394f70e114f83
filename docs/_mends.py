"""Writes the table of leniencies in contract.md from the heads of their files; with ``--check``, fails if it is stale.

A head begins with the real text in double backquotes, and goes on with what is read. The price is counted: how many
instructions the programs of six formats have for the mend.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from chatparsers import get_format
from chatparsers.answers.compile import program
from chatparsers.answers.idioms import Options
from chatparsers.answers.mends import NAMES

__all__ = ["main", "table"]

PAGE = Path(__file__).resolve().parent / "contract.md"
_FORMATS = ("qwen3", "qwen3-coder", "glm-4-5", "deepseek-v3-1", "llama-3-x", "minimax-m3")
_PACKAGE = "chatparsers.answers.mends"
_BEGIN, _END = "<!-- mends -->\n", "<!-- end of mends -->\n"


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


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The table of leniencies in contract.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is stale")
    given = parser.parse_args(None if arguments is None else list(arguments))
    text = PAGE.read_text(encoding="utf-8")
    pattern = re.escape(_BEGIN) + ".*?" + re.escape(_END)
    found = _BEGIN + table() + _END
    whole = re.sub(pattern, lambda _: found, text, flags=re.DOTALL)
    if whole == text:
        return 0
    if given.check:
        print(f"{PAGE.name} is not what the mends say: run python docs/_mends.py", file=sys.stderr)
        return 1
    PAGE.write_text(whole, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
