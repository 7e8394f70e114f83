"""Items of the Responses API, as a server that keeps them has them: each with an id, and texts as parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import uuid4

from .fields import mapping, sequence

_IDS = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "tool_search_call": "tsc",
    "function_call_output": "fco",
    "custom_tool_call_output": "ctco",
    "tool_search_output": "tso",
    "additional_tools": "at",
}
"""How the ids of items begin."""


def item_id(kind: object) -> str:
    """A random id of an item of a type."""
    return f"{_IDS.get(str(kind), 'item')}_{uuid4().hex}"


def kept_items(given: object, path: str = "input") -> list[dict[str, Any]]:
    """The items of an input, which may be a text. Raises `ApiError` for what is no list of objects."""
    if isinstance(given, str):
        given = [{"role": "user", "content": given}]
    listed = sequence(given, path, "a string or a list of items")
    return [_kept(mapping(item, f"{path}[{index}]")) for index, item in enumerate(listed)]


def _kept(item: Mapping[str, Any]) -> dict[str, Any]:
    kind = item.get("type") or "message"
    found = {**item, "type": kind}
    if not isinstance(item.get("id"), str):
        found["id"] = item_id(kind)
    if kind == "message":
        text = item.get("content")
        if isinstance(text, str):
            part = "output_text" if item.get("role") == "assistant" else "input_text"
            more: dict[str, Any] = {"annotations": [], "logprobs": []} if part == "output_text" else {}
            found["content"] = [{"type": part, "text": text, **more}]
    if kind in ("message", "function_call", "function_call_output"):
        found.setdefault("status", "completed")
    return found


def listed(items: Iterable[Mapping[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    """A page of items as the API lists them. ``query``: ``limit`` (1 to 100, else 20), ``order`` (``asc`` or ``desc``)
    and ``after``, the id of the item before the page."""
    ordered = list(items)
    if query.get("order", "desc") != "asc":
        ordered.reverse()
    places = [place for place, item in enumerate(ordered) if item.get("id") == query.get("after")]
    ordered = ordered[places[0] + 1 :] if places else ordered
    asked = query.get("limit", "")
    limit = min(max(int(asked), 1), 100) if asked.isascii() and asked.isdigit() and len(asked) < 9 else 20
    page = ordered[:limit]
    return {
        "object": "list",
        "data": page,
        "first_id": page[0]["id"] if page else None,
        "last_id": page[-1]["id"] if page else None,
        "has_more": len(ordered) > limit,
    }
