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

from ...core import Elements, Gemma, Json, Python, Raw
from ...templates.probe.differences import shared_end, shared_start, units
from ...values import Syntax
from .around import minus
from .found import Arguments, Kind, Refused, Wrap
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
    if asked.more is None or asked.none is None:
        raise Refused("calls: the template shows no call with two arguments, or none without any")
    wire = asked.more.wire
    if not 0 <= wire.find(text) < wire.find(other):
        raise Refused("calls: two arguments are not written in the order in which they were given")
    between_args = wire[wire.index(text) + len(text) : wire.index(other)].replace(key, _NAME)
    quote, key_after = _quoted(asker, key_after, between_args, closing)
    between_args, closing = between_args[len(quote) :], closing[len(quote) :]
    empty = asked.none.wire.partition(ASKED.names[0])[2]
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
    if not empty.startswith(name_after) and not name_after.startswith(empty[:1] or "\0"):
        raise Refused("calls: a call without arguments is not written as one with arguments is")
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
    """How values other than strings are spelt, and whether the markup around them names their type."""
    python, elements = False, ""
    forms: dict[str, tuple[str, str, str]] = {}
    wraps: dict[tuple[str, str], list[str]] = {}
    missing: list[str] = []
    for kind, value in _OTHERS.items():
        answer = asker.calling(f"a value: {kind}", calls=[call_of(0, {ASKED.keys[0]: value})])
        if answer is None:
            continue
        before, _, tail = answer.wire.partition(ASKED.names[0])[2].partition(ASKED.keys[0])
        as_json, as_python = json.dumps(value), str(value)
        spelt = [
            (text, at)
            for text in (as_json, json.dumps(value, separators=(",", ":")), as_python)
            if (at := _spelt_at(tail, text, arguments)) >= 0
        ]
        if spelt:
            text, at = spelt[0]
            python |= text == as_python != as_json
            forms[kind] = (before.removeprefix(name_after), tail[:at], "")
        elif marks := _marks(tail, (as_json, as_python), arguments):
            opener, close, text = marks
            if opener.startswith(arguments.key_after.strip()):
                wraps.setdefault(
                    (opener.removeprefix(arguments.key_after.strip()).strip(), close), []
                ).append(kind)
            else:
                forms[kind] = (before.removeprefix(name_after), opener, close)
            python |= text == as_python != as_json
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
        return _kinds(arguments, forms, python, ())
    value = asker.calling("a value with special characters", calls=[call_of(0, {ASKED.keys[0]: SPECIAL})])
    name = asker.calling("a name with special characters", calls=[call_of(0, {SPECIAL_NAME: ASKED.texts[0]})])
    found = [_wrap(marks, kinds) for marks, kinds in wraps.items()]
    found += _wrapped_strings(asker, arguments, value)
    arguments = replace(arguments, escapes=_escapes(name, SPECIAL_NAME), wraps=tuple(found))
    return _kinds(arguments, forms, python, _escapes(value, SPECIAL))


def _marks(tail: str, spellings: tuple[str, ...], arguments: Arguments) -> tuple[str, str, str] | None:
    """The text between an argument's name and its value, the mark between the value and the closer, and the value as it
    is spelt; None if no mark is there."""
    after = (arguments.again + ASKED.keys[0] if arguments.again else arguments.after).strip()
    for text in spellings:
        at = tail.find(text)
        end = tail.find(after, at + len(text))
        if at >= 0 and after and end >= 0:
            close = tail[at + len(text) : end].strip()
            if close and not re.search(r"\s", close):
                return tail[:at], close, text
    return None


def _after_key(opener: str, arguments: Arguments) -> str | None:
    """The mark between the text after an argument's name and its value; None if there is none, or another text."""
    known = arguments.key_after.strip()
    return opener.strip().removeprefix(known).strip() or None if opener.strip().startswith(known) else None


def _wrap(marks: tuple[str, str], kinds: list[str]) -> Wrap:
    every = set(kinds) >= set(_OTHERS) - {"integer"}
    return Wrap(*marks, ("json",) if every else tuple(kind for kind in kinds if kind != "integer"))


def _wrapped_strings(asker: Asker, arguments: Arguments, answer: Rendering | None) -> list[Wrap]:
    """The marks around strings that hold certain characters."""
    tail = "" if answer is None else answer.wire.partition(ASKED.names[0])[2].partition(ASKED.keys[0])[2]
    marks = _marks(tail, (SPECIAL,), arguments)
    if marks is None:
        return []
    opener, close, plain = _after_key(marks[0], arguments), marks[1], ""
    for char in re.findall(r"\W", SPECIAL):
        text = f"moss{char}fern"
        one = asker.calling(f"a value with {char!r}", calls=[call_of(0, {ASKED.keys[0]: text})])
        tail = "" if one is None else one.wire.partition(ASKED.names[0])[2].partition(ASKED.keys[0])[2]
        if one is not None and _spelt_at(tail, text, arguments) < 0:
            plain += re.escape(char)
    return [Wrap(opener, close, ("string",), f"[^{plain}]")] if plain and opener else []


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


def _spelt_at(tail: str, text: str, arguments: Arguments) -> int:
    """Where a value follows its name, if it is spelt so; -1 if not."""
    closer = arguments.after
    if arguments.again:
        closer = arguments.again + ASKED.keys[0] + closer
    at = tail.find(text + closer)
    return at if at >= 0 else tail.find(text + closer.strip())


def _kinds(
    arguments: Arguments,
    forms: dict[str, tuple[str, str, str]],
    python: bool,
    escapes: tuple[tuple[str, str], ...],
) -> Arguments:
    """The syntax of the values, with the markers for each type if they are not the same for all."""
    raw = arguments.syntax if isinstance(arguments.syntax, Raw) else None
    syntax: Syntax = Python() if python else arguments.syntax
    if raw is not None:
        syntax = replace(raw, python=python, escapes=escapes)
    own = (arguments.key_before, arguments.key_after, "")
    found = set(forms.values())
    if found <= {own}:
        return replace(arguments, syntax=syntax)
    if raw is None:
        raise Refused("calls: an attribute says of what type a value is, and strings are quoted")
    if own in found:
        raise Refused(
            "calls: an attribute says of what type some values are, and is that of strings for others"
        )
    if forms.get("integer") == forms.get("number"):
        forms.pop("integer", None)
    said = {"json": found.pop()} if len(found) == 1 else forms
    kinds = [Kind(kind, *form) for kind, form in {"string": own, **said}.items()]
    return replace(arguments, syntax=syntax, kinds=tuple(kinds))


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
    around = (
        arguments.key_before[-len(begin) :],
        arguments.key_after,
        arguments.again,
        arguments.after[:1],
    )
    if around != (begin, ">", close, ">"):
        raise Refused("calls: an argument stands in other tags than the elements that are nested in it")
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
