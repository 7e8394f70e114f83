"""A document as text, and the text of a document as JSON."""

from __future__ import annotations

import json
from typing import Any

from ..errors import DefinitionError

MOST = 1_000_000
"""The most characters and values of a document."""
_WIDE = 110


def dumps(document: Any, indent: int = 0) -> str:
    """``document`` as JSON, in which what is short is in one line."""
    flat = json.dumps(document, ensure_ascii=False)
    if len(flat) + indent <= _WIDE or not document or not isinstance(document, (dict, list)):
        return flat
    pad = " " * (indent + 1)
    if isinstance(document, dict):
        keys = [(f"{json.dumps(key, ensure_ascii=False)}: ", value) for key, value in document.items()]
        items = [f"{pad}{key}{dumps(value, indent + 1)}" for key, value in keys]
        return "{\n" + ",\n".join(items) + f"\n{pad[1:]}}}"
    return "[\n" + ",\n".join(pad + dumps(item, indent + 1) for item in document) + f"\n{pad[1:]}]"


def loads(text: str) -> Any:
    """The JSON of a document. Raises `DefinitionError` for what is no JSON, or too large to be a document."""
    if len(text) > MOST:
        raise DefinitionError(
            f"$: expected at most {MOST:,} characters, found {len(text):,}; say it in fewer nodes"
        )
    try:
        return json.loads(text, object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        said = "it is too deep" if isinstance(error, RecursionError) else str(error)
        raise DefinitionError(f"$: expected JSON: {said}; write one JSON object") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises `DefinitionError` for a key that is there twice: readers differ in which one they take."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise DefinitionError(f"$: the key {twice!r:.60} stands twice in one object; keep one of them")
    return found
