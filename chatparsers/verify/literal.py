"""A reading in which the markers inside a call's value are the value's, up to the marker that ends it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from ..answers.format import Turn
from ..streams.message import Diagnostic, Message

_FIRST = 0xE000
"""The first of the characters that no text has: one for each marker, as often as the marker has characters."""

_BENIGN = ("truncated", "unwanted-call", "markup-in-value")


def literal(turn: Turn, reading: Message, text: str, markers: Iterable[str], *, cut: bool) -> Message | None:
    """The reading where markers inside values are text; None if the text is broken all the same.

    Our reading ends a value at a marker that could end the call, so that one bad value costs no answer. By the format
    the value may go on: then no server may end it there. ``cut``: the text was cut off, so it may end inside a call.
    """
    signs = {marker: chr(_FIRST + at) for at, marker in enumerate(sorted(markers, key=len, reverse=True))}
    names, first = [call.name for call in reading.tool_calls], _first(reading)
    if first is None or first.code != "malformed" or first.call is None:
        return None
    while first is not None and first.call is not None:
        marker = _marker_at(text, first.position, signs)
        if marker is None:
            return None
        at, found = marker
        text = text[:at] + signs[found] * len(found) + text[at + len(found) :]
        reading = turn.parse(text)
        first = _first(reading)
    kept = [call.name for call in reading.tool_calls][: len(names)] == names
    whole = cut or all(call.complete for call in reading.tool_calls)
    return _with_markers(reading, signs) if first is None and kept and whole else None


def _first(reading: Message) -> Diagnostic | None:
    """The first thing that breaks the text, if the markup in values is the values'."""
    return next((each for each in reading.diagnostics if each.code not in _BENIGN), None)


def _marker_at(text: str, position: int, markers: Iterable[str]) -> tuple[int, str] | None:
    """The marker at a position, or else the one right before it, with its place."""
    for marker in markers:
        if text.startswith(marker, position):
            return position, marker
    for marker in markers:
        if text[:position].endswith(marker):
            return position - len(marker), marker
    return None


def _with_markers(reading: Message, signs: dict[str, str]) -> Message:
    """The reading with the markers back in the arguments, which are JSON: there they have their place."""
    calls = []
    for call in reading.tool_calls:
        arguments = call.arguments
        for marker, sign in signs.items():
            arguments = arguments.replace(sign * len(marker), json.dumps(marker, ensure_ascii=False)[1:-1])
        calls.append(replace(call, arguments=arguments))
    reading.tool_calls = calls
    reading.diagnostics = [each for each in reading.diagnostics if each.code != "markup-in-value"]
    return reading
