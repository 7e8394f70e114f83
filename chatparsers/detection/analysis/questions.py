"""The turns with calls from which the analysis finds how calls are written, and the JSON in them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .found import Refused
from .probes import ASKED, CLOSED, Asker, Call, Rendering
from .reasoning import one_call

DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Span:
    """A JSON value in a text."""

    start: int
    end: int
    value: Any


@dataclass(frozen=True, slots=True)
class Asked:
    """The turns with calls from which everything is found. A turn is None if the template does not show it."""

    one: Rendering
    more: Rendering | None
    two: Rendering | None
    beside: Rendering | None


def call_of(number: int, arguments: Mapping[str, Any]) -> Call:
    return Call(ASKED.names[number], arguments, ASKED.ids[number])


def ask_calls(asker: Asker) -> Asked | None:
    first = asker.shown("a call", calls=one_call())
    if first is None:
        return None
    asker.closed = CLOSED in first.masked().wire
    several = [call_of(number, {ASKED.keys[0]: ASKED.texts[number]}) for number in range(2)]
    both = {ASKED.keys[0]: ASKED.texts[0], ASKED.keys[1]: ASKED.texts[1]}

    def shown(what: str, **question: Any) -> Rendering | None:
        found = asker.shown(what, **question)
        if found is None:
            return None
        answer = found.masked(asker.closed)
        texts = [value for call in answer.calls for value in call.arguments.values()]
        return answer if all(answer.wire.count(text) == 1 for text in texts) else None

    one = shown("a call", calls=one_call())
    if one is None:
        raise Refused("calls: the value of an argument is not in the rendering, or not once")
    beside = asker.template.can.content_beside_calls
    return Asked(
        one,
        shown("a call with two arguments", calls=[call_of(0, both)]),
        shown("two calls", calls=several),
        shown("text beside a call", content=ASKED.content, calls=one_call()) if beside else None,
    )


def json_spans(text: str) -> Iterator[Span]:
    """The outermost JSON objects and arrays in a text."""
    at = 0
    while (found := re.compile(r"[\[{]").search(text, at)) is not None:
        try:
            value, end = DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            at = found.start() + 1
            continue
        yield Span(found.start(), end, value)
        at = end


def json_with(text: str, word: str) -> Span | None:
    return next((span for span in json_spans(text) if word in text[span.start : span.end]), None)
