"""Reads a ``response_template`` of transformers into a format.

Such a template says how the parts of an assistant's message are cut out of a finished text: for each field an opener, a
closer, and how the text between them is read. Here the same data becomes a tree of the builder's primitives. So the
parser streams it, and the grammar comes with it.

Where the two languages differ, the contract decides. Text that no field takes is content. An opener of reasoning counts
only where reasoning may begin. At most one line break beside a tagged value, and two beside a thought, are not part
of it. A part of the language that has no counterpart raises `DefinitionError`, which names the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..core import Argument, Builder, Format, Gemma, Json, Node, Raw, Tool
from ..core.definition.idioms import Options
from ..core.definition.nodes import Space, Span
from ..errors import DefinitionError
from ..templates.probe.differences import is_marker, units
from .patterns import ANY, Group, Look, Maybe, OneOf, Parts, Run, White, read_pattern, refuse, texts

_ROOT = "response_template"
_REASONING = ("reasoning_content", "thinking", "reasoning")
_TEMPLATE_KEYS = ("version", "defaults", "fields", "start_anchor", "start_anchor_pattern")
_FIELD_KEYS = (
    *("open", "open_pattern", "close", "close_pattern", "content", "content_args"),
    *("repeats", "join", "optional", "transform", "transform_each"),
)
_JSON_SPACE = Space("", True)
"""White space that the model may write or leave out."""
_PLACEHOLDER = re.compile(r"\{(\w+(?:\.\w+)*)\}").fullmatch

Openers: TypeAlias = "tuple[Parts, ...]"
"""Alternatives, the longest first."""


@dataclass(frozen=True, slots=True)
class _Text:
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
class _Tags:
    """Arguments in tags: the parts before the argument's name, between name and value, and after the value. ``also``:
    texts that end the value in place of these, and are not part of it."""

    before: Parts
    name: str
    between: Parts
    after: Parts
    json: bool
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Lines:
    """Arguments in lines."""

    line_end: str
    colon: str


@dataclass(frozen=True, slots=True)
class _Calls:
    """The field of calls.

    ``keys``: the members of a call that is a JSON object, as pairs of part and key; ``array``: the objects stand in a
    list. Without ``keys`` the opener has the name, and the arguments are in ``tags``, in ``lines``, or else one object,
    in which strings stand between ``quote`` markers (JSON if it is empty).
    """

    open: Openers
    close: Openers
    lead: str
    repeats: bool
    keys: tuple[tuple[str, str], ...] = ()
    array: bool = False
    tags: _Tags | None = None
    lines: _Lines | None = None
    quote: str = ""


@dataclass(frozen=True, slots=True)
class Definition:
    """Builds the tree of a format that was read."""

    reasoning: _Text | None
    content: _Text | None
    calls: _Calls | None

    def __call__(self, p: Builder) -> Node:
        calls, given = None, self.calls
        if given is not None:
            item = _json_calls(p, given) if given.keys else _named_calls(p, given)
            calls = p.calls(item, p.space(given.lead[:1])) if given.repeats else item
        content = None if self.content is None else self.content.span(p, True)
        body = p.body(calls, content=content, lead="" if given is None else given.lead)
        if self.reasoning is None:
            return body
        thought = self.reasoning.span(p, False)
        assert thought.close is not None
        return p.think(thought.open, thought.close) + body


def read_response_template(spec: Mapping[str, Any], *, stops: Sequence[str] = ()) -> Format:
    """The format of a ``response_template``. ``stops``: texts that end the turn, besides those that it names.

    Raises `DefinitionError`, which names the place, for what a format cannot say.
    """
    _expect(spec, Mapping, _ROOT, "an object")
    _known(spec, _TEMPLATE_KEYS, _ROOT)
    if spec.get("version", 1) != 1:
        refuse(f"{_ROOT}.version", f"expected 1, found {spec['version']!r}")
    fields = spec.get("fields")
    _expect(fields, Mapping, f"{_ROOT}.fields", "an object")
    reasoning = content = calls = None
    ends: tuple[str, ...] = ()
    for name, field in fields.items():  # type: ignore[union-attr]
        place = f"{_ROOT}.fields.{name}"
        _expect(field, Mapping, place, "an object")
        _known(field, _FIELD_KEYS, place)
        if name in _REASONING:
            if reasoning is not None:
                refuse(place, "there is another field of reasoning", "keep one of them")
            reasoning = _text(field, place)
            if not reasoning.open or not reasoning.close:
                refuse(place, "reasoning needs an opener and a closer", "give open and close")
        elif name == "content":
            content = _text(field, place)
            if not content.open:
                closers = _markers(field, "close", place)
                ends = tuple(text for parts in closers for text in texts(parts, f"{place}.close"))
                content = None
        elif name == "tool_calls":
            calls = _read_calls(field, place)
        else:
            refuse(place, "a message has only content, reasoning_content (or thinking) and tool_calls")
    made = Format(
        name="response-template",
        title="Read from a response_template",
        url="https://huggingface.co/docs/transformers/main/chat_response_parsing",
        build=Definition(reasoning, content, calls),
        stops=tuple(dict.fromkeys((*ends, *stops))),
    )
    try:
        made.tree(Options(tools=True))
    except DefinitionError as error:
        refuse(_ROOT, str(error).partition(": ")[2])
    return made


def _expect(value: object, kind: type, place: str, expected: str) -> None:
    if not isinstance(value, kind):
        refuse(place, f"expected {expected}, found {type(value).__name__}")


def _known(given: Mapping[str, Any], keys: Sequence[str], place: str) -> None:
    for key in given:
        if key not in keys:
            refuse(f"{place}.{key}", f"expected one of {', '.join(keys)}")


# fields


def _markers(field: Mapping[str, Any], kind: str, place: str) -> Openers:
    """The alternatives of ``open`` or ``close``; empty if the field has none."""
    literal, pattern = field.get(kind), field.get(f"{kind}_pattern")
    if literal is not None and pattern is not None:
        refuse(f"{place}.{kind}", f"there is also {kind}_pattern", "keep one of them")
    if pattern is not None:
        return (read_pattern(pattern, f"{place}.{kind}_pattern"),)
    listed = [literal] if isinstance(literal, str) else [] if literal is None else literal
    if not isinstance(listed, list) or not all(isinstance(text, str) and text for text in listed):
        refuse(f"{place}.{kind}", "expected a text, or a list of texts, none of them empty")
    return tuple((text,) for text in sorted(dict.fromkeys(listed), key=len, reverse=True))


def _text(field: Mapping[str, Any], place: str) -> _Text:
    if field.get("content", "text") != "text":
        refuse(
            f"{place}.content", f"expected text, found {field['content']!r}", "only calls have a structure"
        )
    for key in ("transform", "transform_each"):
        if field.get(key):
            refuse(f"{place}.{key}", "text is passed on as it arrives", "leave it out")
    if field.get("join"):
        refuse(f"{place}.join", f"the parts of a message are joined by nothing, not by {field['join']!r}")
    args = _args(field, ("strip",), place)
    opened = _without_lead(_markers(field, "open", place))[1]
    closed = _without_lead(_markers(field, "close", place))[1]
    return _Text(opened, closed, args.get("strip", True))


def _args(field: Mapping[str, Any], known: Sequence[str], place: str) -> Mapping[str, Any]:
    args = field.get("content_args", {})
    _expect(args, Mapping, f"{place}.content_args", "an object")
    _known(args, known, f"{place}.content_args")
    return dict(args)


def _without_lead(markers: Openers) -> tuple[str, Openers]:
    """White space that an alternative begins with is the template's own, as far as it is two line breaks."""
    begun = any(parts and isinstance(parts[0], White) for parts in markers)
    return ("\n\n" if begun else ""), tuple(
        parts[1:] if parts and isinstance(parts[0], White) else parts for parts in markers
    )


def _read_calls(field: Mapping[str, Any], place: str) -> _Calls:
    lead, opened = _without_lead(_markers(field, "open", place))
    if not opened:
        refuse(place, "calls need an opener", "give open or open_pattern")
    _, closed = _without_lead(_markers(field, "close", place))
    repeats, each = field.get("repeats", False), field.get("transform_each", False)
    if field.get("join") is not None:
        refuse(f"{place}.join", "calls are no text, so nothing joins them")
    groups = set(_groups((*opened, *closed)))
    sources = _sources(field.get("transform"), each, groups, f"{place}.transform")
    kind = field.get("content", "text")
    in_content = {part: key for part, (where, key) in sources.items() if where == "content"}
    if kind == "json" and "name" in in_content:
        args = _args(field, ("allow_non_json",), place)
        del args
        keys = tuple((part, key) for part, key in in_content.items() if part != "args" or key)
        return _Calls(opened, closed, lead, repeats, keys, array=each)
    if sources["name"] != ("group", "name") or in_content.get("args") != "":
        refuse(
            f"{place}.transform",
            "expected the name and the arguments from the content, or the name from the group 'name' and the whole "
            "content as the arguments",
        )
    if kind == "json":
        args = _args(field, ("unquoted_keys", "string_delims", "allow_non_json"), place)
        return _Calls(opened, closed, lead, repeats, quote=_quote(args, f"{place}.content_args"))
    if not closed:
        refuse(place, "arguments one by one need a closer", "give close or close_pattern")
    if kind == "xml-inline":
        args = _args(field, ("tag_pattern", "value_parser", "merge_duplicates"), place)
        return _Calls(opened, closed, lead, repeats, tags=_tags(args, f"{place}.content_args"))
    if kind == "kv-lines":
        args = _args(field, ("line_sep", "kv_sep", "value_parser", "strip"), place)
        _json_values(args, f"{place}.content_args")
        lines = _Lines(args.get("line_sep", "\n"), args.get("kv_sep", ":"))
        return _Calls(opened, closed, lead, repeats, lines=lines)
    refuse(f"{place}.content", f"expected json, xml-inline or kv-lines for calls, found {kind!r}")


def _sources(transform: object, each: bool, groups: set[str], place: str) -> dict[str, tuple[str, str]]:
    """Where each part of a call comes from: ``("group", name)``, or ``("content", key)`` with ``""`` for all of it."""
    if not isinstance(transform, Mapping):
        refuse(place, "expected the object of a call", 'write {"type": "function", "function": …}')
    unknown = sorted(set(transform) - {"type", "id", "function"})
    if unknown or transform.get("type", "function") != "function":
        refuse(
            place, 'expected type ("function"), id and function', f"leave out {', '.join(unknown) or 'type'}"
        )

    def source(value: object, where: str) -> tuple[str, str]:
        found = _PLACEHOLDER(value) if isinstance(value, str) else None
        if found is None:
            refuse(f"{place}.{where}", f"expected one placeholder such as '{{content}}', found {value!r}")
        root, *path = found[1].split(".")
        if each and root not in groups:
            root, path = "content", [root, *path]
        if root in groups and not path:
            return "group", root
        if root != "content" or len(path) > 1:
            refuse(f"{place}.{where}", f"{value!r} is no group and no member of the content")
        return "content", "".join(path)

    function = transform.get("function")
    if isinstance(function, str):
        if source(function, "function") != ("content", ""):
            refuse(f"{place}.function", "expected '{content}' or an object with name and arguments")
        found = {"name": ("content", "name"), "args": ("content", "arguments")}
    elif isinstance(function, Mapping) and {"name", "arguments"} == set(function):
        found = {
            "name": source(function["name"], "function.name"),
            "args": source(function["arguments"], "function.arguments"),
        }
    else:
        refuse(f"{place}.function", "expected '{content}' or an object with name and arguments")
    if "id" in transform:
        found["id"] = source(transform["id"], "id")
    return found


def _groups(openers: Openers) -> Iterator[str]:
    for parts in openers:
        for part in parts:
            if isinstance(part, Group):
                yield part.name
                yield from _groups((part.parts,))
            elif isinstance(part, Maybe):
                yield from _groups((part.parts,))
            elif isinstance(part, OneOf):
                yield from _groups(part.options)


def _quote(args: Mapping[str, Any], place: str) -> str:
    """The marker around strings, ``""`` for JSON."""
    pairs = args.get("string_delims", [])
    if not pairs and not args.get("unquoted_keys"):
        return ""
    if len(pairs) != 1 or len(pairs[0]) != 2 or pairs[0][0] != pairs[0][1] or not args.get("unquoted_keys"):
        refuse(
            f"{place}.string_delims",
            "expected JSON, or unquoted_keys with one pair of equal delimiters around strings",
        )
    return str(pairs[0][0])


def _json_values(args: Mapping[str, Any], place: str) -> bool:
    """Whether values are JSON. Otherwise the tool's schema types them."""
    parser = args.get("value_parser") or {}
    name = parser.get("name", "text")
    if name not in ("text", "json"):
        refuse(
            f"{place}.value_parser",
            f"expected text or json, found {name!r}",
            "the tool's schema types values",
        )
    return name == "json" and not parser.get("args", {}).get("allow_non_json")


def _tags(args: Mapping[str, Any], place: str) -> _Tags:
    if args.get("merge_duplicates"):
        refuse(f"{place}.merge_duplicates", "an argument that comes twice stays twice", "leave it out")
    where = f"{place}.tag_pattern"
    _, (parts,) = _without_lead((read_pattern(args.get("tag_pattern"), where),))
    places = {part.name: index for index, part in enumerate(parts) if isinstance(part, Group)}
    if list(places) != ["key", "value"]:
        refuse(where, "expected the groups key and value, in this order")
    key, value = parts[places["key"]], parts[places["value"]]
    assert isinstance(key, Group) and isinstance(value, Group)
    if len(value.parts) != 1 or not isinstance(value.parts[0], Run):
        refuse(where, "expected a value such as (?P<value>.*?)")
    before, between = parts[: places["key"]], parts[places["key"] + 1 : places["value"]]
    after, also = _with_looks(parts[places["value"] + 1 :], where)
    if args.get("value_parser", {}).get("args", {}).get("strip"):
        between = between if between and isinstance(between[-1], White) else (*between, White(0))
        after = after if after and isinstance(after[0], White) else (White(0), *after)
    if not any(isinstance(part, str) for part in after[:2]):
        refuse(where, "expected a text that ends the value")
    if not before or not isinstance(before[0], str):
        refuse(where, "expected a text that begins an argument")
    return _Tags(before, _one(key, between, where), between, after, _json_values(args, place), also)


def _with_looks(after: Parts, place: str) -> tuple[Parts, tuple[str, ...]]:
    """What follows a value, and the texts that end it because they follow: ``</tag>|(?=<tag)``."""
    if not after or not isinstance(after[0], OneOf):
        return after, ()
    looks = [option for option in after[0].options if len(option) == 1 and isinstance(option[0], Look)]
    read = [option for option in after[0].options if option not in looks]
    if len(read) != 1 or not all(option[0].follow for option in looks):  # type: ignore[union-attr]
        refuse(place, "expected one text that ends the value, or look-aheads beside it")
    also = [text for option in looks for text in texts(option[0].parts, place)]  # type: ignore[union-attr]
    return (*read[0], *after[1:]), tuple(also)


def _one(group: Group, following: Parts, place: str) -> str:
    """The regular expression of one character of a name."""
    run = group.parts[0] if len(group.parts) == 1 else None
    if not isinstance(run, Run):
        refuse(place, f"expected a class of characters in the group {group.name!r}, such as [^>]+")
    if run.chars != ANY:
        return f"[{run.chars}]"
    end = following[0] if following else ""
    if not isinstance(end, str) or not end:
        refuse(place, f"expected a text after the group {group.name!r}, as it takes any characters")
    return f"[^{re.escape(end[0])}\\n]"


# nodes


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


def _nodes(p: Builder, parts: Parts, tool: Tool | None = None) -> Node:
    found: list[Node] = []
    for index, part in enumerate(parts):
        following = parts[index + 1 :]
        if isinstance(part, str):
            found.append(_literal(p, part))
        elif isinstance(part, White):
            found.append(p.space(" ") if part.least else _JSON_SPACE)
        elif isinstance(part, Maybe):
            found.append(p.optional(_nodes(p, part.parts, tool)))
        elif isinstance(part, Look):
            seen = _nodes(p, part.parts, tool)
            found.append(p.reads("", p.peek(seen) if part.follow else p.negate(seen)))
        elif isinstance(part, OneOf):
            written = [option for option in part.options if not any(isinstance(one, Look) for one in option)]
            generated, parsed = (
                p.choice(*(_nodes(p, option, tool) for option in options))
                for options in (written or part.options, part.options)
            )
            found.append(parsed if written == [*part.options] else p.reads(generated, parsed))
        elif isinstance(part, Run):
            if part.chars == ANY:
                end = next((text for text in following if isinstance(text, str)), None)
                if end is None:
                    refuse(_ROOT, "expected a text after characters of any kind, as nothing else ends them")
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
        return p.name(tool, _one(group, following, _ROOT))
    if any(True for _ in _groups((group.parts,))):
        written = _nodes(p, tuple(_bounded(part) for part in group.parts), tool)
        return p.header(f"(?P<id>{_regex(group.parts)})", written)
    run = group.parts[0]
    chars = _ranges(run.chars) if isinstance(run, Run) and run.chars != ANY else "a-zA-Z0-9"
    return p.id(p.chars("0-9" if chars == "0-9" else "a-zA-Z0-9", 9, 9), _one(group, following, _ROOT))


def _bounded(part: Any) -> Any:
    """A run with a bound, so that a grammar ends."""
    return Run(part.chars, max(part.least, 1), 4) if isinstance(part, Run) else part


def _regex(parts: Parts) -> str:
    """A regular expression for a header."""
    found = ""
    for part in parts:
        if isinstance(part, str):
            found += re.escape(part)
        elif isinstance(part, Run):
            chars = part.chars if part.chars == ANY else f"[{part.chars}]"
            found += chars + f"{{{part.least},{'' if part.most is None else part.most}}}"
        elif isinstance(part, Group):
            found += f"(?P<{part.name}>{_regex(part.parts)})"
        else:
            refuse(_ROOT, "expected literals and classes in the group 'id'")
    return found


def _json_calls(p: Builder, given: _Calls) -> Node:
    keys: dict[str, Any] = dict(given.keys)
    call = p.json_call(**keys)
    inside = p.array(call) if given.array else call
    section = _choice(p, given.open) + _JSON_SPACE + inside
    return section + _JSON_SPACE + _choice(p, given.close) if given.close else section


def _named_calls(p: Builder, given: _Calls) -> Node:
    closer = _choice(p, given.close) if given.close else p.literal("")

    def call(tool: Tool) -> Node:
        header = p.sequence(p.choice(*(_nodes(p, parts, tool) for parts in given.open)))
        if given.tags is not None:
            tags = given.tags
            if any(_ends_in_name(parts) for parts in given.open):  # only a tag tells a call from prose
                header += p.reads("", p.space() + p.peek(p.choice(_nodes(p, tags.before), closer)))
            return header + p.space() + p.each_arg(tool, lambda arg: _tagged(p, tags, arg)) + closer
        if given.lines is not None:
            lines = given.lines
            ends = tuple(text for parts in given.close for text in texts(parts, _ROOT))
            arguments = p.each_arg(tool, lambda arg: _line(p, lines, ends, arg), p.literal(lines.line_end))
            return header + p.space() + arguments + p.space() + closer
        begun = p.reads("", p.space() + p.peek("{"))
        return header + begun + p.args(tool, Gemma(quote=given.quote) if given.quote else Json())

    each = p.each_tool(call)
    return each if given.tags or given.lines or not given.close else each + _JSON_SPACE + closer


def _ends_in_name(parts: Parts) -> bool:
    written = [part for part in parts if not isinstance(part, White)]
    return isinstance(written[-1], Group)


def _tagged(p: Builder, tags: _Tags, arg: Argument) -> Node:
    between, after = tags.between, tags.after
    begun = p.trim("\n") if between and isinstance(between[-1], White) else p.literal("")
    padded = isinstance(after[0], White)
    rest = after[1:] if padded else after
    end = rest[0]
    assert isinstance(end, str)
    pad = "\n" if padded else ""
    if begun != p.literal(""):
        between = between[:-1]
    ended = tuple(dict.fromkeys(text for also in tags.also for text in (pad + also, also)))
    value = p.value(arg, Json() if tags.json else Raw(until=pad + end, also=ended))
    name = _nodes(p, tags.before) + p.arg_name(arg, tags.name) + _nodes(p, between) + begun
    closer = _nodes(p, rest)
    if tags.also:
        closer = p.reads(closer, closer, p.space() + p.peek(p.choice(*tags.also)))
    return name + value + (p.space() if tags.json else p.trim(pad)) + closer + _JSON_SPACE


def _line(p: Builder, lines: _Lines, ends: tuple[str, ...], arg: Argument) -> Node:
    until = tuple(dict.fromkeys((lines.line_end, *(f"\n{end}" for end in ends), *ends)))
    name = p.arg_name(arg, f"[^{re.escape(lines.colon[0])}\\n]") + lines.colon + p.trim(" ")
    return name + p.value(arg, Raw(until=until))
