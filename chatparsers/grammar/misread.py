"""The error of a user's own grammar, at its place in it."""

from __future__ import annotations

from ..errors import RequestError


def wrong(text: str, why: str, at: int) -> RequestError:
    """The error with the line and the column of ``at``."""
    line, before = text.count("\n", 0, at) + 1, text.rfind("\n", 0, at)
    return RequestError(f"grammar: line {line}, column {at - before}: {why}")
