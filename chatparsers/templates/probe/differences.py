"""Finds the text that two renderings share, counted in units, so that no marker is ever cut in two.

A unit is a marker (``<tool_call>``, ``</arg_key>``, ``<|im_end|>``, ``[ARGS]``), the beginning of one
(``<parameter=``), a word, one white-space character, or any other single character. Two texts share a unit only if
both have all of it: ``</think>`` and ``</tool_call>`` share nothing, though their first two characters are equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_UNIT = re.compile(r"<+[^<>\s]*>*|\[/?[^\[\]\s\"'{},]*\]|\w+|.", re.DOTALL)
_MARKER = re.compile(r"<+[^<>\s]+>+|\[/?[^\[\]\s\"'{},]+\]")


def units(text: str, marks: tuple[str, ...] = ()) -> list[str]:
    """The units of a text, in order; joined they are the text. ``marks``: further texts that are a unit each."""
    if not marks:
        return _UNIT.findall(text)
    parts = re.split("(" + "|".join(map(re.escape, marks)) + ")", text)
    return [unit for part in parts for unit in ([part] if part in marks else _UNIT.findall(part))]


def is_marker(unit: str) -> bool:
    """Whether a unit is a whole marker, such as a tokenizer may have as one token."""
    return _MARKER.fullmatch(unit) is not None


def _shared(a: Sequence[str], b: Sequence[str]) -> int:
    count = 0
    for one, other in zip(a, b, strict=False):
        if one != other:
            break
        count += 1
    return count


def shared_start(*texts: str, marks: tuple[str, ...] = ()) -> str:
    """What all texts begin with, in whole units; ``marks`` as in `units`."""
    first, *others = (units(text, marks) for text in texts)
    return "".join(first[: min((_shared(first, other) for other in others), default=len(first))])


def shared_end(*texts: str, marks: tuple[str, ...] = ()) -> str:
    """What all texts end with, in whole units; ``marks`` as in `units`. A tag of several markers, such as
    ``<|close|>call<|sep|>``, is not cut before its last marker."""
    first, *others = (units(text, marks)[::-1] for text in texts)
    count = min((_shared(first, other) for other in others), default=len(first))
    if 0 < count < len(first) and is_marker(first[count - 1]):
        opened = {_opened(found[count:]) for found in (first, *others)}
        if len(opened) == 1 and (begin := opened.pop()) and _is_tag(first[:count], begin):
            count -= 1
    return "".join(first[:count][::-1])


def _opened(backwards: Sequence[str]) -> str:
    """The marker before which only words stand, seen from the end; ``""`` if there are no words, or no marker."""
    for number, unit in enumerate(backwards):
        if is_marker(unit):
            return unit if number else ""
        if unit.isspace() and number == 0:
            return ""
    return ""


def _is_tag(backwards: Sequence[str], begin: str) -> bool:
    """Whether the last of these markers also ends another tag among them that begins so."""
    end = backwards[-1]
    return any(
        unit == end and _opened(backwards[at + 1 :]) == begin for at, unit in enumerate(backwards[:-1])
    )
