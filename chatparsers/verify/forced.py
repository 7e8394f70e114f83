"""Calls in the form that servers force for every format: a JSON array of names and parameters."""

from __future__ import annotations

import json
import re

_ARRAY = re.compile(r'\[\s*(?=\{\s*"name"\s*:\s*"[^"]*"\s*,\s*"parameters"\s*:)')
"""How vLLM and SGLang begin the calls that they force, whatever the format is."""
_JSON = json.JSONDecoder(strict=False)


def begins_at(text: str) -> int | None:
    """Where such calls begin; None if there are none."""
    found = _ARRAY.search(text)
    return found and found.start()


def whole_calls(text: str) -> int | None:
    """How many of such calls in a text are whole, with their arguments; None if it has none, begun or whole."""
    return max((_whole(text[begun.end() :]) for begun in _ARRAY.finditer(text)), default=None)


def _whole(text: str) -> int:
    """How many whole calls the elements of an array have. The brace that ends the last one may be missing."""
    found = 0
    while text.startswith("{"):
        try:
            end = _JSON.raw_decode(text)[1]
        except (ValueError, RecursionError):
            return found + _is_json(f"{text}}}")
        found, text = found + 1, text[end:].lstrip(" \t\r\n,")
    return found


def _is_json(text: str) -> bool:
    try:
        _JSON.decode(text)
    except (ValueError, RecursionError):
        return False
    return True
