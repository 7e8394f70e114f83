"""White space between two parts of a turn, and the marker after it."""

from __future__ import annotations

import re

from .instructions import MAX_HEADER
from .stops import StopFinder

white_space = re.compile(r"[ \t\r\n]*").match


def after_white(text: str, i: int) -> int:
    """Where the white space from ``i`` on ends."""
    match = white_space(text, i, i + MAX_HEADER)
    return match.end() if match else i


def before_marker(
    finder: StopFinder, widths: tuple[int, ...], text: str, i: int, end: int
) -> tuple[int, bool]:
    """Where the white space of a marker begins that is at ``end``, after the white space from ``i`` on: markers may
    begin with as much as ``widths`` say. And whether the window holds only the beginning of the marker."""
    begun = finder.at(text, end) < 0
    for width in widths:
        if i <= end - width and (found := finder.at(text, end - width)):
            return end - width, begun or found < 0
    return end, begun
