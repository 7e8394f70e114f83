"""The tree of a format that was read from a ``response_template``: a record for each field, and the nodes of each."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..answers import Argument, Builder, Gemma, Json, Node, Python, Raw, Tool
from ..answers.nodes import Space, Span
from ..formats._shapes import listed, python_call
from ..templates.probe.differences import is_marker, units
from . import patterns
from .patterns import ANY, Group, Look, Maybe, OneOf, Parts, Run, White, refuse, texts

ROOT = "response_template"
_JSON_SPACE = Space("", True)
"""White space that the model may write or leave out."""

Openers: TypeAlias = "tuple[Parts, ...]"
"""Alternatives, the longest first."""


@dataclass(frozen=True, slots=True)
class TextField:
    """A field of text between two markers. ``close`` is empty if it goes up to the next field."""

    open: Openers
    close: Openers
    strip: bool

    def span(self, p: Builder, optional: bool) -> Span:
        space = [p.space()] if self.strip else []
        gap = p.reads("", "\n\n", "\n", " ", "") if self.strip else p.literal("")
        close = p.sequence(gap, _choice(p, self.close), *space) if self.close else None
        return p.span(p.sequence(_choice(p, self.open), *space), close, optional=optional)


@dataclass(frozen=True, slots=True)
class Tags:
    """Arguments in tags: the parts before the argument's name, between name and value, and after the value. ``also``:
    texts that end the value in place of these, and are not part of it. ``closed``: texts that do so and are part of the
    tag."""

    before: Parts
    name: str
    between: Parts
    after: Parts
    json: bool
    also: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lines:
    """Arguments in lines."""

    line_end: str
    colon: str


@dataclass(frozen=True, slots=True)
class CallsField:
    """The field of calls.

    ``keys``: the members of a call that is a JSON object, as pairs of part and key; ``array``: the objects are in a
    list. ``python``: the calls are a list as in Python, or, after a name in the opener, keyword arguments are. Without
    either the opener has the name; the arguments are in ``tags``, in ``lines``, or else one object, in which strings
    are between ``quote`` markers (JSON if it is empty).
    """

    open: Openers
    close: Openers
    lead: str
    repeats: bool
    keys: tuple[tuple[str, str], ...] = ()
    array: bool = False
    python: bool = False
    tags: Tags | None = None
    lines: Lines | None = None
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """Builds the tree of a format that was read."""

    reasoning: TextField | None
    content: TextField | None
    calls: CallsField | None

    def __call__(self, p: Builder) -> Node:
        calls, given = None, self.calls
        if given is not None:
            item = _calls_in(p, given) if given.keys or given.array else _named_calls(p, given)
            calls = p.calls(item, p.space(given.lead[:1])) if given.repeats else item
        content = None if self.content is None else self.content.span(p, True)
        body = p.body(calls, content=content, lead="" if given is None else given.lead)
        if self.reasoning is None:
            return body
        thought = self.reasoning.span(p, False)
        assert thought.close is not None
        return p.think(thought.open, thought.close) + body


def groups(openers: Openers) -> Iterator[str]:
    for parts in openers:
        for part in parts:
            if isinstance(part, Group):
                yield part.name
                yield from groups((part.parts,))
            elif isinstance(part, Maybe):
                yield from groups((part.parts,))
            elif isinstance(part, OneOf):
                yield from groups(part.options)


def name_class(group: Group, following: Parts, place: str) -> str:
    """The regular expression of one character of a name."""
    run = group.parts[0] if len(group.parts) == 1 else None
    if not isinstance(run, Run):
        refuse(place, f"expected a class of characters in the group {group.name!r}, such as [^>]+")
    end = next((part for part in following if not isinstance(part, White)), "")
    if run.chars.startswith("^") and isinstance(end, str) and not end[:1].isspace():
        return f"[{run.chars}{re.escape(end[:1])}]"  # what follows is no part of the name
    if run.chars != ANY:
        return f"[{run.chars}]"
    if not isinstance(end, str) or not end:
        refuse(place, f"expected a text after the group {group.name!r}, as it takes any characters")
    return f"[^{re.escape(end[0])}\\n]"


def _literal(p: Builder, text: str) -> Node:
    """A literal, in which whole markers are tokens."""
    pieces: list[str | Node] = []
    for unit in units(text):
        pieces.append(p.token(unit) if is_marker(unit) else unit)
    return p.sequence(*pieces)


def _choice(p: Builder, markers: Openers) -> Node:
    """The first that matches; any of them is generated."""
    options = [_nodes(p, parts) for parts in markers]
    return options[0] if len(options) == 1 else p.choice(*options)


def _nodes(
    p: Builder, parts: Parts, tool: Tool | None = None, arg: Argument | None = None, then: Parts = ()
) -> Node:
    """``then``: what follows the parts."""
    found: list[Node] = []
    for index, part in enumerate(parts):
        following = (*parts[index + 1 :], *then)
        if isinstance(part, str):
            found.append(_literal(p, part))
        elif isinstance(part, White):
            found.append(p.space(" ") if part.least else _JSON_SPACE)
        elif isinstance(part, Maybe):
            found.append(p.optional(_nodes(p, part.parts, tool)))
        elif isinstance(part, patterns.End):
            found.append(p.reads("", p.end()))
        elif isinstance(part, patterns.Again):
            if arg is None or part.name != "key":
                refuse(ROOT, f"{part.name!r} is read once more: expected that of key, in a tag_pattern")
            found.append(p.same_name(arg))
        elif isinstance(part, Look):
            seen = _nodes(p, part.parts, tool)
            found.append(p.reads("", p.peek(seen) if part.follow else p.negate(seen)))
        elif isinstance(part, OneOf):
            unwritten = (Look, patterns.End)
            written = [
                option for option in part.options if not any(isinstance(one, unwritten) for one in option)
            ]
            generated, parsed = (
                p.choice(*(_nodes(p, option, tool) for option in options))
                for options in (written or part.options, part.options)
            )
            found.append(parsed if written == [*part.options] else p.reads(generated, parsed))
        elif isinstance(part, Run):
            if part.chars == ANY:
                end = next((text for text in following if isinstance(text, str)), None)
                if end is None:
                    refuse(ROOT, "expected a text after characters of any kind, as nothing else ends them")
                found.append(p.until(end))
            else:
                found.append(p.chars(_ranges(part.chars), part.least, part.most))
        elif tool is not None and part.name in ("name", "id"):
            found.append(_name(p, part, following, tool))
        else:
            found.append(_nodes(p, part.parts, tool))
    return p.sequence(*found)


def _ranges(chars: str) -> str:
    """A class without the categories, whose meaning differs between engines."""
    return chars.replace(r"\w", "a-zA-Z0-9_").replace(r"\d", "0-9").replace(r"\s", r" \t\r\n")


def _name(p: Builder, group: Group, following: Parts, tool: Tool) -> Node:
    if group.name == "name":
        return p.name(tool, name_class(group, following, ROOT))
    if any(True for _ in groups((group.parts,))):
        written = _nodes(p, tuple(_bounded(part) for part in group.parts), tool)
        return p.header(_nodes(p, group.parts, tool), written, id=True)
    run = group.parts[0]
    chars = _ranges(run.chars) if isinstance(run, Run) and run.chars != ANY else "a-zA-Z0-9"
    return p.id(p.chars("0-9" if chars == "0-9" else "a-zA-Z0-9", 9, 9), name_class(group, following, ROOT))


def _bounded(part: Any) -> Any:
    """A run with a bound, so that a grammar ends."""
    return Run(part.chars, max(part.least, 1), 4) if isinstance(part, Run) else part


def _calls_in(p: Builder, given: CallsField) -> Node:
    """Calls that have their names in the content: JSON objects, or a list as in Python."""
    keys: dict[str, Any] = dict(given.keys)
    if given.python:
        inside = listed(p, python_call(p))
    else:
        inside = p.array(p.json_call(**keys)) if given.array else p.json_call(**keys)
    section = _choice(p, given.open) + _JSON_SPACE + inside
    return section + _JSON_SPACE + _choice(p, given.close) if given.close else section


def _named_calls(p: Builder, given: CallsField) -> Node:
    closer = _choice(p, given.close) if given.close else p.literal("")

    def call(tool: Tool) -> Node:
        then = given.tags.before if given.tags else ()
        header = p.sequence(p.choice(*(_nodes(p, parts, tool, then=then) for parts in given.open)))
        if given.python:
            comma = p.space() + "," + p.space(" ")
            return (
                header + p.each_arg(tool, lambda arg: _keyword(p, arg), comma, Python()) + p.space() + closer
            )
        if given.tags is not None:
            tags = given.tags
            if any(_ends_in_name(parts) for parts in given.open):  # only a tag tells a call from prose
                header += p.reads("", p.space() + p.peek(p.choice(_nodes(p, tags.before), closer)))
            return header + p.space() + p.each_arg(tool, lambda arg: _tagged(p, tags, arg)) + closer
        if given.lines is not None:
            lines = given.lines
            ends = tuple(text for parts in given.close for text in texts(parts, ROOT))
            arguments = p.each_arg(tool, lambda arg: _line(p, lines, ends, arg), p.literal(lines.line_end))
            return header + p.space() + arguments + p.space() + closer
        begun = p.reads("", p.space() + p.peek("{"))
        return header + begun + p.args(tool, Gemma(quote=given.quote) if given.quote else Json())

    each = p.each_tool(call)
    ended = given.python or given.tags or given.lines or not given.close
    return each if ended else each + _JSON_SPACE + closer


def _ends_in_name(parts: Parts) -> bool:
    written = [part for part in parts if not isinstance(part, White)]
    return isinstance(written[-1], Group)


def _keyword(p: Builder, arg: Argument) -> Node:
    return p.arg_name(arg) << "=" << p.value(arg, Python())


def _tagged(p: Builder, tags: Tags, arg: Argument) -> Node:
    between, after = tags.between, tags.after
    begun = p.trim("\n") if between and isinstance(between[-1], White) else p.literal("")
    padded = isinstance(after[0], White)
    rest = after[1:] if padded else after
    end = rest[0]
    assert isinstance(end, str)
    pad = "\n" if padded else ""
    if begun != p.literal(""):
        between = between[:-1]
    ended = tuple(dict.fromkeys(text for also in (*tags.closed, *tags.also) for text in (pad + also, also)))
    value = p.value(arg, Json() if tags.json else Raw(until=pad + end, also=ended))
    name = _nodes(p, tags.before) + p.arg_name(arg, tags.name) + _nodes(p, between) + begun
    closer = _nodes(p, rest, arg=arg)
    if tags.also or tags.closed:
        others = [p.space() + p.peek(p.choice(*tags.also))] if tags.also else []
        closer = p.reads(closer, closer, *tags.closed, *others)
    return name + value + (p.space() if tags.json else p.trim(pad)) + closer + _JSON_SPACE


def _line(p: Builder, lines: Lines, ends: tuple[str, ...], arg: Argument) -> Node:
    until = tuple(dict.fromkeys((lines.line_end, *(f"\n{end}" for end in ends), *ends)))
    name = p.arg_name(arg, f"[^{re.escape(lines.colon[0])}\\n]") + lines.colon + p.trim(" ")
    return name + p.value(arg, Raw(until=until))
