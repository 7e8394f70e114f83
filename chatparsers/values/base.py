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


_basestring: Callable[[str], str] = (
    getattr(json.encoder, "c_encode_basestring", None) or json.encoder.py_encode_basestring
)


def escape(text: str) -> str:
    """Escapes ``text`` for the inside of a JSON string: only quotes, backslashes and control characters change."""
    return _basestring(text)[1:-1]
