"""Arguments that stand each by itself: the markers of their names and values, and how values are spelt.

A call with two arguments shows which text follows a value and which comes before a name. Values of every JSON type,
each in a call of its own, show how they are spelt: as JSON, as Python prints them, as nested elements, and whether the
markup around a value says its type.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from ...answers import Elements, Gemma, Json, Python, Raw
from ...templates.probe.differences import shared_end, shared_start, units
from ...values import Syntax
from .around import minus
from .found import Arguments, Kind, Refused
from .probes import ASKED, Asker, Rendering
from .questions import Asked, call_of

SPECIAL = "moss&fern<ivy>oak\"sedge'reed\nlarch\\alder"
"""A text in which a word is between any two characters that a template may escape."""
SPECIAL_NAME = 'moss&fern"sedge'
_NAME = "\0"
"""Stands for the argument's name in the text that closes its value."""
_NUMBERS = {"number": 1.5, "integer": ASKED.number}
_OTHERS: dict[str, Any] = {
    **_NUMBERS,
    "boolean": True,
    "null": None,
    "array": ["agate", True, 7],
    "object": {"onyx": {"jade": "ruby"}},
}
"""A value of each JSON type but a string."""


_Form = tuple[str, ...]
"""The text before an argument's name, after it, and after the value, as in `Kind`."""


@dataclass(frozen=True, slots=True)
class Separate:
    """The arguments, and the texts around all of them: between the name and the first one, after the last one, and from
    the last one to the name of the next call (None if two calls are never shown)."""

    arguments: Arguments
    name_after: str
    closing: str
    between: str | None


def separate(asker: Asker, asked: Asked, rest: str) -> Separate:
    """``rest``: the text after the name in a call with one argument."""
    key, other, text = ASKED.keys[0], ASKED.keys[1], ASKED.texts[0]
    before_key, _, tail = rest.partition(key)
    key_after, _, closing = tail.partition(text)
    closing = closing.replace(key, _NAME)
    if asked.more is None:
        raise Refused("calls: the template shows no call with two arguments")
    wire = asked.more.wire
    if not 0 <= wire.find(text) < wire.find(other):
        raise Refused("calls: two arguments are not written in the order in which they were given")
    between_args = wire[wire.index(text) + len(text) : wire.index(other)].replace(key, _NAME)
    quote, key_after = _quoted(asker, key_after, between_args, closing)
    between_args, closing = between_args[len(quote) :], closing[len(quote) :]
    after = _closer(between_args, closing)
    left = between_args[len(after) :]
    if not after.strip() and not quote:
        raise Refused("calls: nothing stands after an argument's value")
    key_before = shared_end(left, before_key)
    separator = minus(left, key_before)
    name_after = minus(before_key, key_before)
    between = None
    if asked.two is not None:
        texts = asked.two.wire
        between = texts[texts.index(text) + len(text) + len(quote) : texts.index(ASKED.names[1])]
        between = between.replace(key, _NAME)
        if not between.startswith(after):
            raise Refused("calls: two calls are not written as one is")
        between = between[len(after) :].replace(_NAME, key)
    closing = closing[len(after) :].replace(_NAME, key)
    again, _, after = after.rpartition(_NAME)
    if _NAME in again:
        raise Refused("calls: the text after a value names the argument more than once")
    if quote and quote not in _QUOTED:
        found = (name_after[-1:], key_before, key_after, after, separator)
        return _bare_object(found, name_after, closing, between, quote)
    until = (again or after).rstrip()
    syntax = _QUOTED[quote] if quote else Raw(until)
    arguments = Arguments(syntax, False, key_before, key_after, again, after, separator)
    return Separate(_typed(asker, arguments, name_after), name_after, closing, between)


_QUOTED: dict[str, Syntax] = {'"': Json(), "'": Python()}
"""The syntaxes whose strings are in these quotes."""


def _closer(between: str, closing: str) -> str:
    """The text that closes a value: what both texts begin with. If the closer names the argument, it ends with the
    marker that has the name in it, and with the white space after that."""
    after = shared_start(between, closing)
    if _NAME not in after:
        return after
    named, _, rest = after.rpartition(_NAME)
    found = units("<" + rest)[0][1:] if rest[:1] not in "<[" else ""
    left = rest[len(found) :]
    return named + _NAME + found + left[: len(left) - len(left.lstrip())]


def _quoted(asker: Asker, key_after: str, between: str, closing: str) -> tuple[str, str]:
    """The quote around strings, which numbers do not have; and the text after a key without that quote."""
    number = ASKED.number
    answer = asker.calling("a number", calls=[call_of(0, {ASKED.keys[0]: number})])
    if answer is None or str(number) not in answer.wire:
        raise Refused("calls: a number is not written as it is")
    bare = answer.wire.partition(ASKED.keys[0])[2].partition(str(number))[0]
    if bare == key_after:
        return "", key_after
    if key_after.startswith(bare):
        quote = key_after[len(bare) :]
        if between.startswith(quote) and closing.startswith(quote):
            return quote, bare
    return "", key_after


def _bare_object(
    found: tuple[str, ...], name_after: str, closing: str, between: str | None, quote: str
) -> Separate:
    """One object with bare keys and strings between two equal markers: ``{key:"value",key:7}``."""
    if found != ("{", "", ":", "", ",") or not closing.startswith("}"):
        raise Refused(
            f"calls: strings are quoted by {quote!r}, and the arguments are no object with bare keys"
        )
    if between is not None:
        between = between[1:]
    return Separate(Arguments(Gemma(quote)), name_after[:-1], closing[1:], between)


def _typed(asker: Asker, arguments: Arguments, name_after: str) -> Arguments:
    """How values other than strings are written, and whether the markup around them names their type."""
    python, elements = False, ""
    forms: dict[str, _Form] = {}
    missing: list[str] = []
    for kind, value in _OTHERS.items():
        answer = asker.calling(f"a value: {kind}", calls=[call_of(0, {ASKED.keys[0]: value})])
        if answer is None:
            continue
        before, _, tail = answer.wire.partition(ASKED.names[0])[2].partition(ASKED.keys[0])
        as_json, as_python = json.dumps(value), str(value)
        spellings = (as_json, json.dumps(value, separators=(",", ":")), as_python)
        ways = [(text, around) for text in spellings if (around := _around_value(tail, text, arguments))]
        if ways:
            text, around = ways[0]
            python |= text == as_python != as_json
            forms[kind] = (before.removeprefix(name_after), *around)
        elif kind == "object":
            elements = _prefix(tail, arguments)
        elif kind != "array":
            missing.append(as_json)
    if elements and missing == ["null"] and not python:  # elements leave members out that are null
        item = _item(asker, arguments, elements)
        return replace(arguments, syntax=Elements(elements, item))
    if missing:
        raise Refused(f"calls: the value {missing[0]} is written in a way that is neither JSON nor Python")
    if elements:
        raise Refused("calls: nested elements hold values that are spelt as in Python, or null")
    if not isinstance(arguments.syntax, Raw):
        return _kinds(arguments, forms, python)
    value = asker.calling("a value with special characters", calls=[call_of(0, {ASKED.keys[0]: SPECIAL})])
    name = asker.calling("a name with special characters", calls=[call_of(0, {SPECIAL_NAME: ASKED.texts[0]})])
    arguments = replace(
        arguments,
        syntax=replace(arguments.syntax, escapes=_escapes(value, SPECIAL)),
        escapes=_escapes(name, SPECIAL_NAME),
    )
    return _kinds(arguments, forms, python, *_marked_strings(asker, arguments, value))


def _around_value(tail: str, text: str, arguments: Arguments) -> tuple[str, ...]:
    """The text between an argument's name and its value, and the mark between the value and the closer; ``()`` if the
    value is not written as ``text``. ``tail``: the text after the name."""
    closer = arguments.again + ASKED.keys[0] if arguments.again else ""
    for after in (closer + arguments.after, (closer + arguments.after).strip()):
        at = tail.find(text + after)
        if at >= 0:
            return tail[:at], ""
    at, after = tail.find(text), closer.strip() or arguments.after.strip()
    end = tail.find(after, at + len(text))
    close = tail[at + len(text) : end].strip() if at >= 0 and after and end >= 0 else ""
    return (tail[:at], close) if close and not re.search(r"\s", close) else ()


def _marked_strings(asker: Asker, arguments: Arguments, answer: Rendering | None) -> tuple[_Form | None, str]:
    """How strings with certain characters are written, if between marks; and the expression for all others."""
    opener, close = _string(answer, SPECIAL, arguments) or ("", "")
    known, marked = arguments.key_after.strip(), ""
    if not close or not opener.strip().removeprefix(known) or not opener.strip().startswith(known):
        return None, ""
    for char in re.findall(r"\W", SPECIAL):
        text = f"moss{char}fern"
        one = asker.calling(f"a value with {char!r}", calls=[call_of(0, {ASKED.keys[0]: text})])
        if one is not None and "" not in _string(one, text, arguments)[1:]:
            marked += re.escape(char)
    return ((arguments.key_before, opener, close), f"[^{marked}]") if marked else (None, "")


def _string(answer: Rendering | None, text: str, arguments: Arguments) -> tuple[str, ...]:
    wire = "" if answer is None else answer.wire
    return _around_value(wire.partition(ASKED.names[0])[2].partition(ASKED.keys[0])[2], text, arguments)


def _escapes(answer: Rendering | None, asked: str) -> tuple[tuple[str, str], ...]:
    """The characters that are in another way between the words of a text, each with its spelling."""
    words, found = re.findall(r"\w+", asked), []
    if answer is None or words[0] not in answer.wire:
        return ()
    at = answer.wire.index(words[0]) + len(words[0])
    for word, char in zip(words[1:], re.findall(r"\W", asked), strict=True):
        begin = answer.wire.find(word, at)
        if begin < 0:
            return ()
        found.append((char, answer.wire[at:begin]))
        at = begin + len(word)
    return tuple((char, spelling) for char, spelling in found if spelling != char)


def _kinds(
    arguments: Arguments, forms: dict[str, _Form], python: bool, marked: _Form | None = None, chars: str = ""
) -> Arguments:
    """The syntax of the values, with the markers for each type if they are not the same for all. ``marked``: those of
    strings with other characters than ``chars``."""
    raw = arguments.syntax if isinstance(arguments.syntax, Raw) else None
    syntax: Syntax = Python() if python else arguments.syntax
    if raw is not None:
        syntax = replace(raw, python=python)
    own = (arguments.key_before, arguments.key_after, "")
    others = {kind: form for kind, form in forms.items() if form != own}
    if not others and marked is None:
        return replace(arguments, syntax=syntax)
    if raw is None:
        raise Refused("calls: an attribute says of what type a value is, and strings are quoted")
    every = bool(others) and len(others) == len(forms)
    if not every and any(not close for _, _, close in others.values()):
        raise Refused(
            "calls: an attribute says of what type some values are, and is that of strings for others"
        )
    if others.get("integer") == others.get("number"):
        others.pop("integer", None)
    if every and len(set(others.values())) == 1:
        others = {"json": next(iter(others.values()))}
    typed = [Kind(kind, *form) for kind, form in others.items()]
    typed += [Kind("string", *marked)] if marked is not None else []
    plain = Kind("string" if every else None, *own, chars=chars)
    same = [kind for kind in typed if kind.before == plain.before and kind.after.startswith(plain.after)]
    plain_last = any(kind.after != plain.after for kind in same)  # a mark may seem to begin a plain value
    kinds = (*typed, plain) if plain_last else (plain, *typed)
    return replace(arguments, syntax=syntax, kinds=kinds)


# nested elements


def _prefix(tail: str, arguments: Arguments) -> str:
    """The marker before each tag, if an object is written as nested elements; ``""`` if it is not. ``tail``: the text
    after the argument's name. Raises `Refused` if the elements are not as the builder has them."""
    pieces, at = [], 0
    for word in ("onyx", "jade", "ruby", "jade", "onyx"):
        found = tail.find(word, at)
        if found < 0:
            return ""
        pieces.append(tail[at:found])
        at = found + len(word)
    begin, inner, opened, close, closes = pieces
    begin = begin.removeprefix(arguments.key_after)
    prefix = begin.removesuffix("<")
    tags = (begin, inner, opened, close, closes, tail[at : at + 1])
    if tags != (f"{prefix}<", f">{prefix}<", ">", f"{prefix}</", f">{prefix}</", ">"):
        raise Refused(
            f"calls: an object is written as {tail[:at]!r:.200}, which is neither JSON nor nested elements"
        )
    if not prefix:
        raise Refused("calls: values are nested elements, and no marker tells their tags from text")
    return prefix


def _item(asker: Asker, arguments: Arguments, prefix: str) -> str:
    """The name of the elements of an array."""
    answer = asker.calling("a value: array", calls=[call_of(0, {ASKED.keys[0]: _OTHERS["array"]})])
    tail = "" if answer is None else answer.wire.partition(ASKED.keys[0])[2]
    tag = re.escape(prefix)
    found = re.match(rf">{tag}<([^<>/\s]+)>agate{tag}</\1>{tag}<\1>", tail)
    if found is None:
        raise Refused(f"calls: an array is written as {tail!r:.200}, which is not a list of elements")
    return found[1]
