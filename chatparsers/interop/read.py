"""Reads a ``response_template`` of transformers into a format.

Such a template says how the parts of an assistant's message are cut out of a finished text: for each field an opener, a
closer, and how the text between them is read. Here the same data becomes a tree of the builder's primitives. So the
parser streams it, and the grammar comes with it.

A thought whose opener reads nothing is one that the prompt has opened: its opener is the last marker of the anchor.

Where the two languages differ, the contract decides. Text that no field takes is content. An opener of reasoning counts
only where reasoning may begin. At most one line break beside a tagged value, and two beside a thought, are not part
of it. A part of the language that has no counterpart raises `DefinitionError`, which names the place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeGuard

from ..answers import Format
from ..answers.idioms import Options
from ..errors import DefinitionError
from ..templates.probe.differences import is_marker, units
from .definition import ROOT, CallsField, Definition, Lines, Openers, Tags, TextField, groups, name_class
from .patterns import End, Group, Look, Maybe, OneOf, Parts, Run, White, read_pattern, refuse, texts

_REASONING = ("reasoning_content", "thinking", "reasoning")
_TEMPLATE_KEYS = ("version", "defaults", "fields", "start_anchor", "start_anchor_pattern")
_FIELD_KEYS = (
    *("open", "open_pattern", "close", "close_pattern", "content", "content_args"),
    *("repeats", "join", "optional", "transform", "transform_each"),
)
_PLACEHOLDER = re.compile(r"\{(\w+(?:\.\w+)*)\}").fullmatch


def read_response_template(spec: Mapping[str, Any], *, stops: Sequence[str] = ()) -> Format:
    """The format of a ``response_template``. ``stops``: texts that end the turn, besides those that it names.

    Raises `DefinitionError`, which names the place, for what a format cannot say.
    """
    _expect(spec, Mapping, ROOT, "an object")
    _known(spec, _TEMPLATE_KEYS, ROOT)
    if spec.get("version", 1) != 1:
        refuse(f"{ROOT}.version", f"expected 1, found {spec['version']!r}")
    fields = spec.get("fields")
    _expect(fields, Mapping, f"{ROOT}.fields", "an object")
    reasoning = content = calls = None
    ends: tuple[str, ...] = ()
    for name, field in fields.items():  # type: ignore[union-attr]
        place = f"{ROOT}.fields.{name}"
        _expect(field, Mapping, place, "an object")
        _known(field, _FIELD_KEYS, place)
        if name in _REASONING:
            if reasoning is not None:
                refuse(place, "there is another field of reasoning", "keep one of them")
            reasoning = _opened_by_prompt(_text(field, place), spec, place)
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
        refuse(ROOT, str(error).partition(": ")[2])
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


def _text(field: Mapping[str, Any], place: str) -> TextField:
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
    closed = _without_end(_without_lead(_markers(field, "close", place))[1])
    return TextField(opened, closed, args.get("strip", True))


def _without_end(markers: Openers) -> Openers:
    """The alternatives but the end of the text, which ends a text anyway."""
    options = [
        option for parts in markers for option in (parts[0].options if _is_choice(parts) else (parts,))
    ]
    return tuple(option for option in options if option != (End(),))


def _is_choice(parts: Parts) -> TypeGuard[tuple[OneOf]]:
    return len(parts) == 1 and isinstance(parts[0], OneOf)


def _opened_by_prompt(field: TextField, spec: Mapping[str, Any], place: str) -> TextField:
    """The field, whose opener is the last marker of the anchor if its own reads nothing."""
    if not field.open or not all(isinstance(part, Look) for parts in field.open for part in parts):
        return field
    ends = [
        [text for text in parts if isinstance(text, str)] for parts in _markers(spec, "start_anchor", ROOT)
    ]
    markers = {
        ([unit for text in end for unit in units(text) if is_marker(unit)] or [""])[-1] for end in ends
    }
    if len(markers) != 1 or "" in markers:
        refuse(place, "the opener reads nothing, and start_anchor has no marker that begins the thought")
    return replace(field, open=((markers.pop(),),))


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


def _read_calls(field: Mapping[str, Any], place: str) -> CallsField:
    lead, opened = _without_lead(_markers(field, "open", place))
    if not opened:
        refuse(place, "calls need an opener", "give open or open_pattern")
    _, closed = _without_lead(_markers(field, "close", place))
    repeats, each = field.get("repeats", False), field.get("transform_each", False)
    if field.get("join") is not None:
        refuse(f"{place}.join", "calls are no text, so nothing joins them")
    named = set(groups((*opened, *closed)))
    sources = _sources(field.get("transform"), each, named, f"{place}.transform")
    kind = field.get("content", "text")
    in_content = {part: key for part, (where, key) in sources.items() if where == "content"}
    if kind == "python-call-list":
        _args(field, (), place)
        if not each or in_content != {"name": "name", "args": "arguments"}:
            refuse(f"{place}.transform", "expected transform_each with '{name}' and '{arguments}'")
        return CallsField(opened, closed, lead, repeats, array=True, python=True)
    if kind == "json" and "name" in in_content:
        _args(field, ("allow_non_json",), place)
        keys = tuple((part, key) for part, key in in_content.items() if part != "args" or key)
        return CallsField(opened, closed, lead, repeats, keys, array=each)
    if sources["name"] != ("group", "name") or in_content.get("args") != "":
        refuse(
            f"{place}.transform",
            "expected the name and the arguments from the content, or the name from the group 'name' and the whole "
            "content as the arguments",
        )
    if kind == "json":
        args = _args(field, ("unquoted_keys", "string_delims", "allow_non_json"), place)
        return CallsField(opened, closed, lead, repeats, quote=_quote(args, f"{place}.content_args"))
    if not closed:
        refuse(place, "arguments one by one need a closer", "give close or close_pattern")
    if kind == "xml-inline":
        args = _args(field, ("tag_pattern", "value_parser", "merge_duplicates"), place)
        tags = _tags(args, f"{place}.content_args")
        return CallsField(opened, closed, lead, repeats, python=tags is None, tags=tags)
    if kind == "kv-lines":
        args = _args(field, ("line_sep", "kv_sep", "value_parser", "strip"), place)
        _json_values(args, f"{place}.content_args")
        lines = Lines(args.get("line_sep", "\n"), args.get("kv_sep", ":"))
        return CallsField(opened, closed, lead, repeats, lines=lines)
    kinds = "json, xml-inline, kv-lines or python-call-list"
    refuse(f"{place}.content", f"expected {kinds} for calls, found {kind!r}")


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


def _tags(args: Mapping[str, Any], place: str) -> Tags | None:
    """The tags of arguments. None for ``key=value`` with a pattern of literals as the value: keyword arguments."""
    if args.get("merge_duplicates"):
        refuse(f"{place}.merge_duplicates", "an argument that comes twice stays twice", "leave it out")
    where = f"{place}.tag_pattern"
    _, (parts,) = _without_lead((read_pattern(args.get("tag_pattern"), where),))
    places = {part.name: index for index, part in enumerate(parts) if isinstance(part, Group)}
    if list(places) != ["key", "value"]:
        refuse(where, "expected the groups key and value, in this order")
    key, value = parts[places["key"]], parts[places["value"]]
    assert isinstance(key, Group) and isinstance(value, Group)
    before, between = parts[: places["key"]], parts[places["key"] + 1 : places["value"]]
    following = parts[places["value"] + 1 :]
    if not before and between == ("=",) and not following:
        return None
    if len(value.parts) != 1 or not isinstance(value.parts[0], Run):
        refuse(where, "expected a value such as (?P<value>.*?)")
    after, also = _with_looks(following, where)
    after, closed = _with_maybe(after, where)
    parser = args.get("value_parser") or {}
    if parser.get("args", {}).get("strip"):
        between = between if between and isinstance(between[-1], White) else (*between, White(0))
        after = after if after and isinstance(after[0], White) else (White(0), *after)
    if not any(isinstance(part, str) for part in after[:2]):
        refuse(where, "expected a text that ends the value")
    if not before or not isinstance(before[0], str):
        refuse(where, "expected a text that begins an argument")
    return Tags(
        before, name_class(key, between, where), between, after, _json_values(args, place), also, closed
    )


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


def _with_maybe(after: Parts, place: str) -> tuple[Parts, tuple[str, ...]]:
    """The longest text that follows a value, and the shorter ones: ``(?:\\]\\]>)?</tag>``."""
    if not after or not isinstance(after[0], Maybe):
        return after, ()
    rest = "".join(part for part in after[1:] if isinstance(part, str))
    longest, *_ = texts(after[0].parts, place)
    if len(after) != 2 or not rest:
        refuse(place, "expected a text that ends the value after what may be missing")
    return (longest + rest,), (rest,)
