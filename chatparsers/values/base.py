"""What all transcoders of JSON share. Each reads a value of a syntax as it arrives and passes it on as JSON text
(`chatparsers.core.machine.value`)."""

from __future__ import annotations

import json.encoder
import re
from collections.abc import Callable

Match = Callable[..., "re.Match[str] | None"]
Spell = Callable[[str], str]

WS = r"[ \t\r\n]*"
white = re.compile(WS).match


quoted: Callable[[str], str] = (
    getattr(json.encoder, "c_encode_basestring", None) or json.encoder.py_encode_basestring
)
"""A text as a JSON string: only quotes, backslashes and control characters change."""


def escape(text: str) -> str:
    """As `quoted`, for the inside of a string."""
    return quoted(text)[1:-1]
