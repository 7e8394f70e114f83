"""The items of recent answers, for clients that send back their ids alone though nothing is stored.

OpenAI's own server keeps answers unless a request says otherwise, so some clients (@ai-sdk/openai) send each item of an
answer as an `item_reference`. They are kept in memory, bounded by bytes, the oldest going first.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from threading import Lock
from typing import Any

from ..serving import ApiError
from ..templates import to_json
from .answer import Answers

_SIZE = 64 * 1024 * 1024
"""How many characters of items are kept."""


class RecentItems:
    """The items of the last answers, each of one owner. ``size``: how many characters they may have together."""

    def __init__(self, size: int = _SIZE) -> None:
        self._most, self._size = size, 0
        self._items: OrderedDict[tuple[str, str], str] = OrderedDict()
        self._lock = Lock()

    def keep(self, owner: str, items: list[dict[str, Any]]) -> None:
        """Takes the items of an answer."""
        with self._lock:
            for item in items:
                text = to_json(item)
                self._size += len(text)
                self._items[owner, item["id"]] = text
            while self._size > self._most:
                self._size -= len(self._items.popitem(last=False)[1])

    def resolved(self, owner: str, body: object) -> object:
        """The body, with the items that it refers to; itself if it refers to none. Raises `ApiError` for an item that
        is not here."""
        given = body.get("input") if isinstance(body, Mapping) else None
        if not isinstance(body, Mapping) or not isinstance(given, list) or not any(map(_refers, given)):
            return body
        found = [
            self._item(owner, str(item.get("id")), f"input[{index}]") if _refers(item) else item
            for index, item in enumerate(given)
        ]
        return {**body, "input": found}

    def _item(self, owner: str, id: str, path: str) -> Any:
        with self._lock:
            text = self._items.get((owner, id))
            if text is not None:
                self._items.move_to_end((owner, id))
        if text is None:
            said = f"the item {id[:99]!r} is not among the recent ones: send it whole, or start with --store"
            raise ApiError(said, status=404, param=path, code="item_not_found")
        return json.loads(text)


class KeepItems:
    """Keeps the items of one answer, before its client has the last of it."""

    def __init__(self, recent: RecentItems, owner: str, answers: Answers) -> None:
        self._recent, self._owner, self._answers = recent, owner, answers

    async def end(self, frames: str) -> str:
        """Keeps them; returns the frames."""
        self._recent.keep(self._owner, self._answers.all[0].writer.answer["output"])
        return frames


def _refers(item: object) -> bool:
    return isinstance(item, Mapping) and item.get("type") == "item_reference"
