"""Calls that are JSON objects: their members, and the array that may hold them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from .around import divide
from .found import Analysis, CallMarkers, Refused, Variant
from .probes import ASKED, Call, Rendering
from .questions import DECODER, Asked, Span, json_spans, json_with


def json_calls(asked: Asked, base: Analysis, span: Span) -> tuple[Variant, CallMarkers]:
    wire = asked.one.wire
    listed = isinstance(span.value, list)
    item = span.value[0] if listed and len(span.value) == 1 else span.value
    if not isinstance(item, dict):
        raise Refused("calls: the JSON with the call in it is neither an object nor an array of objects")
    if item == {ASKED.names[0]: dict(asked.one.calls[0].arguments)}:
        shape = CallMarkers(as_key=True)
    else:
        shape = _members(asked, item)
        second = re.escape(json.dumps(list(item)[-1], ensure_ascii=False))
        comma = re.search(rf",(\s*){second}", wire[span.start : span.end])
        shape = replace(shape, gap=comma[1] if comma else " ")
    opening, closing = wire[: span.start], wire[span.end :]
    beside = _before_json(asked.beside)
    between, array = None, None
    if asked.two is not None:
        spans = [found for found in json_spans(asked.two.wire) if _holds_call(asked.two.wire, found)]
        if listed and len(spans) == 1:
            between, array = None, _white_space(asked.two.wire, spans[0])
        elif len(spans) == 2:
            between = asked.two.wire[spans[0].end : spans[1].start]
        else:
            raise Refused("calls: two calls are not written as one is")
        if listed and array is None:
            raise Refused("calls: each call is a JSON array of its own")
    elif listed:
        array = ("", "", " ", "")
    calls = divide(shape, base, opening, beside, closing, between, asked.one.opening)
    if array is not None:
        section = calls.section[0] + calls.before, calls.after + calls.section[1]
        calls = replace(calls, section=section, before="", after="", separator="")
    alone = not (calls.section[0] + calls.before).strip() and beside is None
    calls = replace(calls, array=array, parallel=asked.two is not None, alone=alone)
    variant: Variant = "name-as-key" if shape.as_key else "json-native"
    if "```" in opening:
        variant = "markdown-block"
    return variant, calls


def _holds_call(text: str, span: Span) -> bool:
    return any(name in text[span.start : span.end] for name in ASKED.names)


def _before_json(answer: Rendering | None) -> str | None:
    """The text between content and the first call."""
    if answer is None:
        return None
    after = answer.wire.partition(ASKED.content)[2]
    span = json_with(after, ASKED.names[0])
    return None if span is None else after[: span.start]


def _white_space(text: str, span: Span) -> tuple[str, str, str, str]:
    """The white space of an array of two calls: after ``[``, around the comma, before ``]``."""
    inside = text[span.start + 1 : span.end - 1]
    first = inside[: len(inside) - len(inside.lstrip())]
    last = inside[len(inside.rstrip()) :]
    _, end = DECODER.raw_decode(inside, len(first))
    comma = inside.index(",", end)
    rest = inside[comma + 1 :]
    return first, inside[end:comma], rest[: len(rest) - len(rest.lstrip())], last


def _members(asked: Asked, item: Mapping[str, Any]) -> CallMarkers:
    """The kind of each member of a call."""
    call = asked.one.calls[0]
    second = _second_item(asked)
    nested, id_form = "", ""
    found: list[tuple[str, str]] = []
    for key, value in item.items():
        if kind := _kind(value, call):
            found.append((kind, key))
        elif value == call.id:
            found.append(("id", key))
            id_form = form_of_id(call.id)
        elif isinstance(value, dict) and call.name in value.values():
            nested = key
            inner = [(_kind(part, call), name) for name, part in value.items()]
            other = next((name for kind, name in inner if not kind), None)
            if other is not None:
                raise Refused(f"calls: the member {other!r} beside the name is {value[other]!r:.60}")
            found += inner
        elif isinstance(value, str) and second is not None and value != second.get(key):
            if not (value.isdigit() and str(second.get(key)).isdigit()):
                raise Refused(f"calls: the member {key!r} is {value!r} in one call and another in the next")
            found.append(("id", key))
            id_form = "counter"
        elif isinstance(value, str) and call.name not in value:
            found.append((f"={json.dumps(value, ensure_ascii=False)}", key))
        else:
            raise Refused(f"calls: the member {key!r} is {value!r:.60}, which is nothing that was asked for")
    kinds = [kind for kind, _ in found]
    if kinds.count("name") != 1 or kinds.count("args") != 1:
        raise Refused(
            f"calls: the members are {', '.join(map(repr, item))}: no name, or no arguments as an object"
        )
    return CallMarkers(members=tuple(found), nested=nested, id_form=id_form)  # type: ignore[arg-type]


def form_of_id(id: str) -> Literal["short", "any"]:
    return "short" if re.fullmatch("[A-Za-z0-9]{9}", id) else "any"


def _kind(value: object, call: Call) -> str:
    return "name" if value == call.name else "args" if value == dict(call.arguments) else ""


def _second_item(asked: Asked) -> Mapping[str, Any] | None:
    """The second of two calls."""
    if asked.two is None:
        return None
    for span in json_spans(asked.two.wire):
        items = span.value if isinstance(span.value, list) else [span.value]
        for item in items:
            if isinstance(item, dict) and ASKED.names[1] in json.dumps(item):
                return item
    return None
