"""Phase two: how calls are written.

Every word that was asked for (a name, a key, a value, an id) is found in the rendering. The text between the words is
the markup. To divide it, the template is asked for one more thing at a time. A second argument shows the text between
arguments. A call without arguments shows their container. A second call shows which text surrounds each call and which
surrounds all of them: a text that is both at the end of the text between two calls and before the first call belongs to
each call; the rest of the text before the first call belongs to the section. To find out whether the words are inside
JSON, the text is read as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from .differences import shared_end, shared_start
from .found import Arguments, CallMarkers, Marker, Refused, Variant
from .probes import ASKED, Asker, Call, Rendering
from .reasoning import Outline, one_call

__all__ = ["find_calls"]

_DECODER = json.JSONDecoder()


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
    none: Rendering | None
    more: Rendering | None
    two: Rendering | None
    three: Rendering | None
    beside: Rendering | None


def find_calls(asker: Asker, outline: Outline) -> tuple[Variant, CallMarkers, tuple[Marker, ...]] | None:
    """How calls are written; None if the template shows no calls. Raises `Refused`, which names the open question."""
    asked = _ask(asker)
    if asked is None:
        return None
    span = _json_with(asked.one.wire, ASKED.names[0])
    if span is not None and ASKED.texts[0] in asked.one.wire[span.start : span.end]:
        variant, calls = _json_calls(asker, asked, outline, span)
    else:
        variant, calls = _named_calls(asker, asked, outline)
    if not calls.parallel:
        calls = replace(calls, separator="")
    text = asked.one.opening + asked.one.wire
    markers = tuple(
        Marker(use, marker, asked.one.what, text, text.rfind(marker.strip()))
        for use, marker in (
            ("calls, opened by", calls.section[0]),
            ("a call, begun by", calls.before),
            ("name, followed by", calls.name_behind),
            ("argument's name, begun by", calls.arguments.key_before),
            ("argument's name, followed by", calls.arguments.key_behind),
            ("argument's value, followed by", calls.arguments.behind),
            ("a call, ended by", calls.behind),
            ("calls, closed by", calls.section[1]),
        )
        if marker.strip()
    )
    return variant, calls, markers


def _call(number: int, arguments: Mapping[str, Any]) -> Call:
    return Call(ASKED.names[number], arguments, ASKED.ids[number])


def _ask(asker: Asker) -> Asked | None:
    first = asker.shown("a call", calls=one_call())
    if first is None:
        return None
    several = [_call(number, {ASKED.keys[0]: ASKED.texts[number]}) for number in range(3)]
    both = {ASKED.keys[0]: ASKED.texts[0], ASKED.keys[1]: ASKED.texts[1]}

    def shown(what: str, **question: Any) -> Rendering | None:
        answer = asker.shown(what, **question)
        if answer is None:
            return None
        texts = [value for call in answer.calls for value in call.arguments.values()]
        return answer if all(answer.wire.count(text) == 1 for text in texts) else None

    one = shown("a call", calls=one_call())
    if one is None:
        raise Refused("calls: the value of an argument is not in the rendering, or not once")
    beside = asker.template.probe().content_beside_calls
    return Asked(
        one,
        asker.shown("a call without arguments", calls=[_call(0, {})]),
        shown("a call with two arguments", calls=[_call(0, both)]),
        shown("two calls", calls=several[:2]),
        shown("three calls", calls=several),
        shown("text beside a call", content=ASKED.content, calls=one_call()) if beside else None,
    )


def _json_spans(text: str) -> Iterator[Span]:
    """The outermost JSON objects and arrays in a text."""
    at = 0
    while (found := re.compile(r"[\[{]").search(text, at)) is not None:
        try:
            value, end = _DECODER.raw_decode(text, found.start())
        except (ValueError, RecursionError):
            at = found.start() + 1
            continue
        yield Span(found.start(), end, value)
        at = end


def _json_with(text: str, word: str) -> Span | None:
    return next((span for span in _json_spans(text) if word in text[span.start : span.end]), None)


# where calls begin and end


@dataclass(frozen=True, slots=True)
class Around:
    """The texts around calls: of the section, of each call, between calls. ``stop``: the end of the turn."""

    section: tuple[str, str]
    before: str
    behind: str
    separator: str
    parallel: bool
    lead: str
    block: str


def _around(
    outline: Outline, opening: str, beside: str | None, closing: str, between: str | None, prefill: str
) -> Around:
    """Divides the texts around calls. ``opening``: before the first call; ``beside``: the same after content.
    ``closing``: after the last call. ``between``: between two calls, None if two are never shown."""
    lead, block = "", ""
    if beside is not None:
        close = outline.content.close
        if close and beside.strip().startswith(close):
            beside = beside[beside.index(close) + len(close) :]
        shared = shared_end(beside, opening)
        if shared.strip() == beside.strip():
            opening = beside
        elif prefill.strip() and beside.strip() and prefill.rstrip().endswith(_minus(beside, shared).strip()):
            block, opening = _minus(beside, shared).strip(), beside
        elif shared.strip():
            opening = shared
    elif opening.strip():
        opening = _without_thought(opening, outline)
    lead = opening[: len(opening) - len(opening.lstrip())]
    opening = opening.lstrip()
    closing = _without_end(closing, outline.end)
    if between is None:
        behind = closing
        return Around(("", ""), opening, behind, "", False, lead, block)
    behind = shared_start(between, closing)
    rest = between[len(behind) :]
    before = shared_end(rest, opening)
    separator = _minus(rest, before)
    return Around(
        (_minus(opening, before), closing[len(behind) :]), before, behind, separator, True, lead, block
    )


def _minus(text: str, end: str) -> str:
    return text[: len(text) - len(end)] if end else text


def _without_end(closing: str, end: str) -> str:
    """The text after the last call, without the end of the turn."""
    stripped = end.strip()
    if stripped and closing.endswith(end):
        return closing[: -len(end)]
    if stripped and closing.rstrip().endswith(stripped):
        return closing.rstrip()[: -len(stripped)]
    return closing


def _without_thought(opening: str, outline: Outline) -> str:
    """The text that opens the calls, without an empty thought or an empty answer before it."""
    reasoning = outline.reasoning
    text = opening
    if reasoning is not None:
        at = text.find(reasoning.close.strip())
        if at >= 0:
            text = text[at + len(reasoning.close.strip()) :]
            kept = reasoning.close[len(reasoning.close.rstrip()) :]
            text = text[len(kept) :] if kept and text.startswith(kept) else text
    content = outline.content
    if content.close and content.close in text:
        text = text.partition(content.close)[2]
    return text


# calls that are JSON objects


def _json_calls(asker: Asker, asked: Asked, outline: Outline, span: Span) -> tuple[Variant, CallMarkers]:
    wire = asked.one.wire
    listed = isinstance(span.value, list)
    item = span.value[0] if listed and len(span.value) == 1 else span.value
    if not isinstance(item, dict):
        raise Refused("calls: the JSON with the call in it is neither an object nor an array of objects")
    if item == {ASKED.names[0]: dict(asked.one.calls[0].arguments)}:
        shape = CallMarkers(as_key=True)
    else:
        shape = _members(asked, item)
    opening, closing = wire[: span.start], wire[span.end :]
    beside = _before_json(asked.beside)
    between, array = None, None
    if asked.two is not None:
        spans = [found for found in _json_spans(asked.two.wire) if _holds_call(asked.two.wire, found)]
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
    around = _around(outline, opening, beside, closing, between, asked.one.opening)
    if array is not None:
        around = replace(
            around,
            section=(around.section[0] + around.before, around.behind + around.section[1]),
            before="",
            behind="",
            separator="",
        )
    calls = replace(
        shape,
        section=around.section,
        before=around.before,
        behind=around.behind,
        separator=around.separator,
        array=array,
        parallel=asked.two is not None,
        lead=around.lead,
    )
    calls = replace(calls, alone=not (calls.section[0] + calls.before).strip() and beside is None)
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
    behind = answer.wire.partition(ASKED.content)[2]
    span = _json_with(behind, ASKED.names[0])
    return None if span is None else behind[: span.start]


def _white_space(text: str, span: Span) -> tuple[str, str, str, str]:
    """The white space of an array of two calls: after ``[``, around the comma, before ``]``."""
    inside = text[span.start + 1 : span.end - 1]
    first = inside[: len(inside) - len(inside.lstrip())]
    last = inside[len(inside.rstrip()) :]
    _, end = _DECODER.raw_decode(inside, len(first))
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
        if value == call.name:
            found.append(("name", key))
        elif value == dict(call.arguments):
            found.append(("args", key))
        elif value == call.id:
            found.append(("id", key))
            id_form = _form(call.id)
        elif isinstance(value, dict) and call.name in value.values():
            nested = key
            inner = _members_of(value, call)
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


def _form(id: str) -> Literal["short", "any"]:
    return "short" if re.fullmatch("[A-Za-z0-9]{9}", id) else "any"


def _members_of(value: Mapping[str, Any], call: Call) -> list[tuple[str, str]]:
    found = []
    for key, inner in value.items():
        if inner == call.name:
            found.append(("name", key))
        elif inner == dict(call.arguments):
            found.append(("args", key))
        else:
            raise Refused(f"calls: the member {key!r} beside the name is {inner!r:.60}")
    return found


def _second_item(asked: Asked) -> Mapping[str, Any] | None:
    """The second of two calls."""
    if asked.two is None:
        return None
    for span in _json_spans(asked.two.wire):
        items = span.value if isinstance(span.value, list) else [span.value]
        for item in items:
            if isinstance(item, dict) and ASKED.names[1] in json.dumps(item):
                return item
    return None


# calls whose name stands in a header


def _named_calls(asker: Asker, asked: Asked, outline: Outline) -> tuple[Variant, CallMarkers]:
    name, key, text = ASKED.names[0], ASKED.keys[0], ASKED.texts[0]
    wire = asked.one.wire
    at = wire.rfind(name, 0, wire.index(text)) if text in wire else -1
    if at < 0 or wire.find(key, at) < 0:
        raise Refused("calls: name, argument's name and value are not written in this order")
    opening, rest = wire[:at], wire[at + len(name) :]
    beside = None
    if asked.beside is not None:
        behind = asked.beside.wire.partition(ASKED.content)[2]
        if name in behind:
            beside = behind.partition(name)[0]
    spans = [span for span in _json_spans(rest) if span.value == {key: text}]
    if spans:
        arguments, name_behind, closing = Arguments(), rest[: spans[0].start], rest[spans[0].end :]
        between = _between_objects(asked)
    else:
        arguments, name_behind, closing, between = _separate(asker, asked, rest)
    closing, optional = _closed(asked, closing)
    calls = CallMarkers(name_behind=name_behind, arguments=arguments, end_optional=optional)
    calls, between = _identified(asked, calls, between)
    around = _around(outline, opening, beside, closing, between, asked.one.opening)
    calls = replace(
        calls,
        section=around.section,
        before=around.before,
        behind=around.behind,
        separator=around.separator,
        parallel=asked.two is not None,
        lead=around.lead,
    )
    if around.block:
        calls = replace(calls, block=around.block)
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
    for span in _json_spans(wire):
        if span.value == {ASKED.keys[0]: ASKED.texts[0]}:
            return wire[span.end : wire.index(ASKED.names[1])]
    raise Refused("calls: two calls are not written as one is")


def _identified(asked: Asked, calls: CallMarkers, between: str | None) -> tuple[CallMarkers, str | None]:
    """Takes an id or a counter out of the header."""
    header, id = calls.name_behind, asked.one.calls[0].id
    if id in header:
        before, _, behind = header.partition(id)
        return replace(calls, id_before=before, name_behind=behind, id_form=_form(id)), between
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
        raise Refused("calls: what stands behind the name differs from call to call, and is no counter")
    behind = header[len(shared) + len(number[0]) :]
    return _counted(calls, shared, behind), between


def _counted(calls: CallMarkers, counted: str, behind: str) -> CallMarkers:
    """A counter after ``counted``. If nothing else is between them, name and counter together are the call's id."""
    if re.search(r"""[\s"'<>\[\](){}=,|]""", counted):
        return replace(calls, counted=counted, name_behind=behind)
    return replace(calls, counted=counted, name_behind=behind, id_form="counter")


def _variant(calls: CallMarkers) -> Variant:
    if calls.block:
        return "recipient"
    if calls.arguments.syntax == "gemma":
        return "gemma-like"
    if calls.arguments.syntax == "object":
        if "```" in calls.name_behind:
            return "markdown-block"
        if calls.id_form == "counter":
            return "prefixed-indexed"
        opener, sep = calls.before.strip(), calls.name_behind.strip()
        if opener.endswith("]") and sep.endswith("]"):
            return "bracket-tag"
        return "tagged-json"
    if calls.name_behind.strip() == "(" and calls.behind.strip().startswith(")"):
        return "python-call"
    return "tagged-args"


# arguments that stand each by itself


def _separate(asker: Asker, asked: Asked, rest: str) -> tuple[Arguments, str, str, str | None]:
    """The arguments' markers; the texts between the name and the first one, after the last one, and between calls."""
    key, text = ASKED.keys[0], ASKED.texts[0]
    before_key, _, tail = rest.partition(key)
    key_behind, _, closing = tail.partition(text)
    if asked.more is None or asked.none is None:
        raise Refused("calls: the template shows no call with two arguments, or none without any")
    other_key = ASKED.keys[1]
    wire = asked.more.wire
    if not 0 <= wire.find(text) < wire.find(other_key):
        raise Refused("calls: two arguments are not written in the order in which they were given")
    between_args = wire[wire.index(text) + len(text) : wire.index(other_key)]
    quote, key_behind = _quoted(asker, key_behind, between_args, closing)
    syntax = {"": "raw", '"': "json", "'": "python"}.get(quote, "gemma")
    between_args, closing = between_args[len(quote) :], closing[len(quote) :]
    empty = asked.none.wire.partition(ASKED.names[0])[2]
    behind = shared_start(between_args, closing)
    left = between_args[len(behind) :]
    if not behind.strip() and syntax == "raw":
        raise Refused("calls: nothing stands behind an argument's value")
    key_before = shared_end(left, before_key)
    separator = _minus(left, key_before)
    name_behind = _minus(before_key, key_before)
    between = None
    if asked.two is not None:
        texts = asked.two.wire
        between = texts[texts.index(text) + len(text) + len(quote) : texts.index(ASKED.names[1])]
        if not between.startswith(behind):
            raise Refused("calls: two calls are not written as one is")
        between = between[len(behind) :]
    closing = closing[len(behind) :]
    if not empty.startswith(name_behind) and not name_behind.startswith(empty[:1] or "\0"):
        raise Refused("calls: a call without arguments is not written as one with arguments is")
    arguments = Arguments(
        syntax=syntax,  # type: ignore[arg-type]
        key_before=key_before,
        key_behind=key_behind,
        behind=behind,
        separator=separator,
        quote=quote if syntax == "gemma" else "",
    )
    if syntax == "gemma":
        return _gemma(arguments, name_behind, closing, between)
    return _typed(asker, arguments), name_behind, closing, between


def _quoted(asker: Asker, key_behind: str, between: str, closing: str) -> tuple[str, str]:
    """The quote around strings, which numbers do not have; and the text after a key without that quote."""
    number = ASKED.number
    answer = asker.shown("a number", calls=[_call(0, {ASKED.keys[0]: number})])
    if answer is None or str(number) not in answer.wire:
        raise Refused("calls: a number is not written as it is")
    bare = answer.wire.partition(ASKED.keys[0])[2].partition(str(number))[0]
    if bare == key_behind:
        return "", key_behind
    if key_behind.startswith(bare):
        quote = key_behind[len(bare) :]
        if between.startswith(quote) and closing.startswith(quote):
            return quote, bare
    return "", key_behind


def _gemma(
    arguments: Arguments, name_behind: str, closing: str, between: str | None
) -> tuple[Arguments, str, str, str | None]:
    """One object in Gemma's syntax: ``{key:"value",key:7}`` with bare keys."""
    given = (
        name_behind[-1:],
        arguments.key_before,
        arguments.key_behind,
        arguments.behind,
        arguments.separator,
    )
    if given != ("{", "", ":", "", ",") or not closing.startswith("}"):
        raise Refused(
            f"calls: strings are quoted by {arguments.quote!r}, and the arguments are no object of Gemma's"
        )
    if between is not None:
        between = between[1:]
    return Arguments(syntax="gemma", quote=arguments.quote), name_behind[:-1], closing[1:], between


_OTHERS: tuple[tuple[str, Any], ...] = (
    ("boolean", True),
    ("null", None),
    ("array", ["agate", None, True, 7]),
    ("object", {"onyx": {"jade": "ruby"}}),
    ("number", ASKED.number),
)


def _typed(asker: Asker, arguments: Arguments) -> Arguments:
    """How values other than strings are spelt, and whether an attribute names their type."""
    python, kinds = False, {}
    for kind, value in _OTHERS:
        answer = asker.ask(f"a value: {kind}", calls=[_call(0, {ASKED.keys[0]: value})])
        if answer is None:
            continue
        tail = answer.wire.partition(ASKED.keys[0])[2]
        as_json, as_python = json.dumps(value), str(value)
        spelt = [
            text for text in (as_json, json.dumps(value, separators=(",", ":")), as_python) if text in tail
        ]
        if not spelt:
            if kind in ("boolean", "null"):
                raise Refused(
                    f"calls: the value {as_json} is written in a way that is neither JSON nor Python"
                )
            continue
        if spelt[0] == as_python != as_json:
            python = True
        before = tail.partition(spelt[0])[0]
        if before != arguments.key_behind:
            kinds[kind] = before
    if kinds and arguments.syntax != "raw":
        raise Refused("calls: an attribute says of what type a value is, and strings are quoted")
    if kinds and arguments.key_behind in kinds.values():
        raise Refused(
            "calls: an attribute says of what type some values are, and is that of strings for others"
        )
    words = tuple(dict.fromkeys(kinds.values()))
    syntax = _literal(arguments.syntax, python)
    return replace(arguments, python=python and arguments.syntax == "raw", syntax=syntax, kinds=words)


def _literal(syntax: str, python: bool) -> Any:
    return "python" if syntax == "json" and python else syntax
