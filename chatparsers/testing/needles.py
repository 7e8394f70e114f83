"""Needles: words at both ends of a text, so that a lost, doubled or moved end is seen at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

CONTENT, REASONING, ARGUMENT = "C", "R", "A"

_NEEDLE = re.compile(r"\$N[12][A-Z][0-9]*\$")
_LINE = "the ship left harbour at dawn with salt and timber for the north and came home late in the year "


def needle(kind: str, text: str = "text", number: int | None = None) -> str:
    """``text`` between two needles: ``$N1C$text$N2C$``; ``number`` tells several of a kind apart."""
    label = kind if number is None else f"{kind}{number}"
    return f"$N1{label}${text}$N2{label}$"


def find_needles(value: Any) -> Iterator[str]:
    """Every needle in the strings of a JSON-like value, in order."""
    if isinstance(value, str):
        yield from _NEEDLE.findall(value)
    elif isinstance(value, dict):
        for item in value.values():
            yield from find_needles(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from find_needles(item)


def prose(length: int) -> str:
    """Plain words of ``length`` characters: no marker begins in them and no white space but single spaces."""
    return (_LINE * (length // len(_LINE) + 1))[:length].rstrip().ljust(length, ".")
