"""White space between two parts of a turn, and the marker after it."""

from __future__ import annotations

import re

from .instructions import MAX_HEADER
from .stops import StopFinder

white_space = re.compile(r"[ \t\r\n]+").match


def after_white(text: str, i: int) -> int:
    """Where the white space from ``i`` on ends."""
    match = white_space(text, i, i + MAX_HEADER)
    return match.end() if match else i


def before_marker(finder: StopFinder, widths: tuple[int, ...], text: str, i: int) -> tuple[int, int, bool]:
    """Where the white space from ``i`` on ends, and where that of the marker after it begins: markers may begin with as
    much as ``widths`` say. And whether the window holds only the beginning of the marker."""
    end = after_white(text, i)
    begun = finder.at(text, end) < 0
    for width in widths:
        if i <= end - width and (found := finder.at(text, end - width)):
            return end, end - width, begun or found < 0
    return end, end, begun
