"""Reads a request's body: bytes from a stranger become JSON that nothing later stumbles over."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterator
from typing import Any

from ..plain import whole_characters
from ..serving import ApiError
from .account import DEPTH, Account

_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
"""How half of a surrogate pair may be escaped; UTF-8 itself has none."""


def read_body(raw: bytes, account: Account) -> object:
    """The JSON in ``raw``. Half of a character (JavaScript cuts texts so) becomes U+FFFD, and in a
    history a number beyond a float's range (1e400) the largest float; ``account.replaced`` counts both. Raises
    `ApiError`, with the path of the value, for what is no JSON or cannot be sent on: another number without an end, or
    values that nest too deep."""
    account.values(raw)
    endless = beyond = False

    def number(text: str) -> float:
        nonlocal beyond
        found = float(text)
        beyond = beyond or not math.isfinite(found)
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
    if endless or beyond:
        for path, value in _values(found):
            history = not endless and path.startswith(_HISTORY)  # there an answer of ours may have had it
            if isinstance(value, float) and not math.isfinite(value) and not history:
                raise ApiError(f"expected a number that JSON can write, found {value}", param=path)
    return _whole(found, account) if beyond or _HALF.search(raw) else found


_HISTORY = ("messages[", "input[")


def _whole(found: object, account: Account) -> object:
    """The value with U+FFFD for half characters, in texts and names, and with the largest float for one beyond it; as
    deep as `_nesting` lets it be."""
    if isinstance(found, str):
        text = whole_characters(found)
        account.replaced += text is not found
        return text
    if isinstance(found, float) and not math.isfinite(found):
        account.replaced += 1
        return math.copysign(sys.float_info.max, found)
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
