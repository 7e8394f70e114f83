"""Reads a request's body: bytes from a stranger become JSON that nothing later stumbles over."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from ..serving import ApiError
from .account import DEPTH, Account

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""How half of a surrogate pair may be escaped; UTF-8 itself has none."""
_SURROGATE = re.compile("[\ud800-\udfff]")


def read_body(raw: bytes, account: Account) -> object:
    """The JSON in ``raw``. Half of a character, such as JavaScript leaves where it cuts a text, becomes U+FFFD;
    ``account.halved`` counts the texts. Raises `ApiError`, with the path of the value, for what is no JSON or cannot be
    sent on: a number without an end, or values that nest too deep."""
    account.values(raw)
    endless = False

    def number(text: str) -> float:
        nonlocal endless
        found = float(text)
        endless = endless or not math.isfinite(found)
        return found

    def constant(text: str) -> float:
        nonlocal endless
        endless = True
        return math.nan if text == "NaN" else math.inf

    try:
        # Left to itself, json reads UTF-16 too, and halves of surrogate pairs in what is not quite UTF-8. And it reads
        # whole numbers without letting other threads run, which takes long if they are long.
        found: object = json.loads(
            raw.decode(), parse_float=number, parse_int=lambda text: int(text), parse_constant=constant
        )
    except (ValueError, RecursionError) as error:
        raise ApiError(f"expected a JSON object: {error}") from error
    if raw.count(b"[") + raw.count(b"{") > DEPTH:
        _nesting(found)
    if endless:
        for path, value in _values(found):
            if isinstance(value, float) and not math.isfinite(value):
                raise ApiError(f"expected a number that JSON can write, found {value}", param=path)
    return _whole(found, account) if _HALF.search(raw) else found


def _whole(found: object, account: Account) -> object:
    """The value with U+FFFD for half characters, in texts and names; as deep as `_nesting` lets it be."""
    if isinstance(found, str):
        text, halves = _SURROGATE.subn("\ufffd", found)
        account.halved += bool(halves)
        return text
    if isinstance(found, dict):
        return {_whole(key, account): _whole(value, account) for key, value in found.items()}
    return [_whole(value, account) for value in found] if isinstance(found, list) else found


def _nesting(value: object) -> None:
    level = [value]
    for _ in range(DEPTH):
        level = (
            [
                inner
                for item in level
                for inner in (item.values() if isinstance(item, dict) else item)  # type: ignore[attr-defined]
                if isinstance(inner, (dict, list))
            ]
            if level and isinstance(level[0], (dict, list))
            else []
        )
        if not level:
            return
    raise ApiError(f"expected values that nest at most {DEPTH} deep")


def _values(value: object) -> Iterator[tuple[str, object]]:
    """All values with their paths; of an object its keys too."""
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        path, found = waiting.pop()
        yield path, found
        if isinstance(found, dict):
            yield from ((path or "body", key) for key in found)
            waiting += ((f"{path}.{key}" if path else key, inner) for key, inner in found.items())
        elif isinstance(found, list):
            waiting += ((f"{path}[{index}]", inner) for index, inner in enumerate(found))
