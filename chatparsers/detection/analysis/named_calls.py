"""Calls whose name is in a header: the header, with an id or a counter in it, and the arguments after it."""

from __future__ import annotations

import re
from dataclasses import replace

from ...answers import Elements, Gemma
from ...templates.probe.differences import shared_start
from .arguments import Separate, separate
from .around import divide
from .found import Analysis, Arguments, CallMarkers, Refused, Variant
from .json_calls import form_of_id
from .probes import ASKED, Asker
from .questions import Asked, Span, json_spans


def named_calls(asker: Asker, asked: Asked, base: Analysis) -> tuple[Variant, CallMarkers]:
    name, key, text = ASKED.names[0], ASKED.keys[0], ASKED.texts[0]
    wire = asked.one.wire
    at = wire.rfind(name, 0, wire.index(text)) if text in wire else -1
    if at < 0 or wire.find(key, at) < 0:
        raise Refused("calls: name, argument's name and value are not written in this order")
    opening, rest = wire[:at], wire[at + len(name) :]
    beside = None
    if asked.beside is not None:
        after = asked.beside.wire.partition(ASKED.content)[2]
        if name in after:
            beside = after.partition(name)[0]
    whole = _object(rest)
    if whole is not None:
        found = Separate(Arguments(), rest[: whole.start], rest[whole.end :], _between_objects(asked))
    else:
        found = separate(asker, asked, rest)
    closing, optional = _closed(asked, found.closing)
    calls = CallMarkers(name_after=found.name_after, arguments=found.arguments, end_optional=optional)
    id, between = asked.one.calls[0].id, found.between
    if id in opening:
        opening, _, after = opening.partition(id)
        beside = None if beside is None else beside.partition(id)[0]
        between = None if between is None else between.partition(ASKED.ids[1])[0]
        calls = replace(calls, id_after=after, id_form=form_of_id(id))
    else:
        calls, between = _identified(asked, calls, between)
    marks = found.arguments.syntax.tokens
    calls = replace(calls, parallel=asked.two is not None)
    calls = divide(calls, base, opening, beside, closing, between, asked.one.opening, marks)
    if not (calls.section[0] + calls.before).strip():
        raise Refused("calls: nothing stands before a call's name")
    return _variant(calls), calls


def _closed(asked: Asked, closing: str) -> tuple[str, bool]:
    """The text that closes the calls, and whether the template leaves a part of it out after a single call."""
    if asked.two is None:
        return closing, False
    wire, end = asked.two.wire, closing
    last = wire.rindex(ASKED.texts[1])
    if wire[last:].endswith(closing):
        return closing, False
    at = wire.find(closing, last) if closing else -1
    return (wire[at:], True) if at >= 0 else (end, False)


def _between_objects(asked: Asked) -> str | None:
    """The text between the arguments of one call and the name of the next."""
    if asked.two is None:
        return None
    wire = asked.two.wire
    span = _object(wire)
    if span is not None and ASKED.names[1] in wire[span.end :]:
        return wire[span.end : wire.index(ASKED.names[1])]
    raise Refused("calls: two calls are not written as one is")


def _object(text: str) -> Span | None:
    """The arguments of the first call as a JSON object, also within other brackets (``<![CDATA[{…}]]>``)."""
    return next((span for span in json_spans(text) if span.value == {ASKED.keys[0]: ASKED.texts[0]}), None)


def _identified(asked: Asked, calls: CallMarkers, between: str | None) -> tuple[CallMarkers, str | None]:
    """Takes an id or a counter out of the header."""
    header, id = calls.name_after, asked.one.calls[0].id
    if id in header:
        before, _, after = header.partition(id)
        return replace(calls, id_before=before, name_after=after, id_form=form_of_id(id)), between
    if asked.two is None:
        number = re.match(r"(\W{0,2})\d+", header)
        if number is not None:  # one call shows no more than that it is a number
            return _counted(calls, number[1], header[number.end() :]), between
        return calls, between
    second = asked.two.wire.partition(ASKED.names[1])[2]
    first = asked.two.wire.partition(ASKED.names[0])[2]
    if second.startswith(header):
        return calls, between
    shared = shared_start(first, second, header)
    number = re.match(r"\d+", first[len(shared) :])
    other = re.match(r"\d+", second[len(shared) :])
    if (
        number is None
        or other is None
        or not first[len(shared) + len(number[0]) :].startswith(second[len(shared) + len(other[0]) :][:1])
    ):
        raise Refused("calls: what stands after the name differs from call to call, and is no counter")
    after = header[len(shared) + len(number[0]) :]
    return _counted(calls, shared, after), between


def _counted(calls: CallMarkers, counted: str, after: str) -> CallMarkers:
    """A counter after ``counted``. If nothing else is between them, name and counter together are the call's id."""
    if re.search(r"""[\s"'<>\[\](){}=,|]""", counted):
        return replace(calls, counted=counted, name_after=after)
    return replace(calls, counted=counted, name_after=after, id_form="counter")


def _variant(calls: CallMarkers) -> Variant:
    given = calls.arguments
    if calls.block:
        return "recipient"
    if isinstance(given.syntax, Gemma):
        return "gemma-like"
    if isinstance(given.syntax, Elements):
        return "nested-elements"
    if given.whole:
        if "```" in calls.name_after:
            return "markdown-block"
        if calls.id_form == "counter":
            return "prefixed-indexed"
        opener, sep = calls.before.strip(), calls.name_after.strip()
        if opener.endswith("]") and sep.endswith("]"):
            return "bracket-tag"
        return "tagged-json"
    if calls.name_after.strip() == "(" and calls.after.strip().startswith(")"):
        return "python-call"
    return "tagged-args"
