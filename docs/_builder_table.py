"""Writes the tables of the builder's methods in tables/definitions.md from their docstrings; ``--check``: fails if
stale.

The first paragraph of a method's docstring says what it means, and ends with its production in double backquotes.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _put import put

from chatparsers.answers.idioms import NAME_CHARS, Builder
from chatparsers.core.builder import Primitives

PAGE = Path(__file__).resolve().parent / "tables" / "definitions.md"

__all__ = ["table"]


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


if __name__ == "__main__":
    sys.exit(put(PAGE, {"primitives": table(Primitives), "idioms": table(Builder)}))
