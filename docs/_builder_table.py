"""Writes the tables of the builder's methods in formats.md from their docstrings; with ``--check``, fails if stale.

The first paragraph of a method's docstring says what it means, and ends with its production in double backquotes.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from chatparsers.answers.idioms import NAME_CHARS, Builder
from chatparsers.core.builder import Primitives

PAGE = Path(__file__).resolve().parent / "formats.md"

__all__ = ["main", "table"]


def table(owner: type) -> str:
    """One line for each public method that ``owner`` itself defines, in the order of the source."""
    lines = ["| `p.` | Meaning | Production |", "|---|---|---|"]
    for name, method in vars(owner).items():
        if name.startswith("_") or not inspect.isfunction(method):
            continue
        paragraph = " ".join(inspect.cleandoc(method.__doc__ or "").partition("\n\n")[0].split())
        said, production, _ = (
            re.split(r"``([^`]*)``$", paragraph) if paragraph.endswith("``") else (paragraph, "", "")
        )
        what = said.strip().replace("``", "`")
        cells = (f"`{name}{_parameters(method)}`", what, f"`{production}`" if production else "")
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _parameters(method: Callable[..., Any]) -> str:
    signature = inspect.signature(method)
    plain = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    ]
    shown = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))
    return shown.replace(repr(NAME_CHARS), "NAME_CHARS")


def _whole(text: str) -> str:
    for mark, owner in (("primitives", Primitives), ("idioms", Builder)):
        begin, end = f"<!-- {mark}: begin -->\n", f"<!-- {mark}: end -->\n"
        before, found, rest = text.partition(begin)
        _, ended, after = rest.partition(end)
        if not (found and ended):
            raise SystemExit(f"{PAGE.name}: expected {begin.strip()} and {end.strip()}")
        text = before + begin + table(owner) + end + after
    return text


def main(arguments: Iterable[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="The tables of the builder's methods in formats.md.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the page is stale")
    given = parser.parse_args(None if arguments is None else list(arguments))
    text = PAGE.read_text(encoding="utf-8")
    whole = _whole(text)
    if whole == text:
        return 0
    if given.check:
        print(
            f"{PAGE.name} is not what the builder's docstrings say: run python docs/_builder_table.py",
            file=sys.stderr,
        )
        return 1
    PAGE.write_text(whole, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
