"""The third reading of a format's tree: a message as a model of that format would write it (`Format.render`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..answers.features import Definition
from ..answers.idioms import Options
from ..schema.tools import Tools, read_tools
from .readable import check_names, check_values
from .turn import calls_of, write


def render(format: Definition, message: Mapping[str, Any], tools: Tools | None, read_back: bool) -> str:
    """``message`` (OpenAI-shaped), as a model of this format would write it. The arguments are those of
    `Format.render`."""
    known = read_tools(tools)
    text = write(format, format.tree(Options(tools=True)), message, known)
    calls = calls_of(message)
    check_names(format, calls, known)
    if read_back:
        check_values(format, text, calls, known)
    return text
