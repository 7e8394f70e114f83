"""Lines from bytes that arrive in pieces, and the JSON in them."""

from __future__ import annotations

import json
from typing import Any

from .engine import EngineError

_decode = json.JSONDecoder().raw_decode
_LONGEST = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_FIELDS = (b"event", b"id", b"retry", b"")
"""The other fields of server-sent events. The one without a name is a comment."""


class Lines:
    """Cuts bytes into lines. A line that is not whole waits for the rest, so no character is cut."""

    __slots__ = ("_held", "_size")

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._size = 0

    def take(self, data: bytes) -> list[bytes]:
        """The lines that are whole now, without their ends. Raises `EngineError` for a line without an end."""
        lines = data.split(b"\n")
        rest = lines.pop()
        if lines and self._held:
            lines[0] = b"".join([*self._held, lines[0]])
            self._held, self._size = [], 0
        if rest:
            self._held.append(rest)
            self._size += len(rest)
            if self._size > _LONGEST:
                raise EngineError(f"the engine sent more than {_LONGEST:,} bytes without the end of a line")
        return lines


def read_data(line: bytes) -> dict[str, Any] | None:
    """The object in a line of a stream of server-sent events; None for other lines and for the end mark.

    Raises `EngineError` for a line that no such stream has, as it may hold what is lost then.
    """
    if not line.startswith(b"data:"):
        line = line.removeprefix(_BOM).rstrip(b"\r")
        name = line.partition(b":")[0]
        if name == b"error":
            return {"error": read_object(line[6:].strip())}
        if name != b"data":
            if name not in _FIELDS:
                raise EngineError(f"the engine sent a line that is no event: {line[:80]!r}")
            return None
    payload = line[5:].strip()
    if not payload or payload == b"[DONE]":
        return None
    return read_object(payload)


def read_object(payload: bytes) -> dict[str, Any]:
    """The JSON object in ``payload``. Raises `EngineError` if it is none."""
    try:
        text = str(payload, "utf-8")
        found, end = _decode(text)
        if end != len(text) and not text[end:].isspace():
            found = None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise EngineError(f"the engine sent what is no JSON object: {payload[:80]!r}")
    return found
