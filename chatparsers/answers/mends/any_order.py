"""``{"arguments": {…}, "id": 3, "tool": "get_weather"}``: the members of a call in JSON in any order, with others
beside them, under the usual keys, and in OpenAI's wrapper."""

from __future__ import annotations

from collections.abc import Callable

from ...core.builder import Primitives
from ...schema.tools import ANY_TOOL
from .. import nodes as n
from ..nodes import Node, Nodelike, Tag

_NAME_KEYS = ("tool_name", "function_name", "function", "tool")
"""Other keys that models write for a call's name. It counts if it is that of a declared tool."""
_ARGS_KEYS = ("args", "input", "params")
"""Other keys that models write for its arguments. They count if an object follows."""


def any_order(
    p: Primitives,
    member: Callable[..., Node],
    keys: dict[str, str],
    name: Node,
    wrapped: bool,
    closer: Nodelike | None,
    beside: tuple[str, ...],
) -> Node:
    """The lenient reading of a JSON call: its members in any order, with others beside them. Where no member holds
    the arguments, others could be arguments themselves: then it is no call. ``member``: the key of a member, one of
    those given."""
    name_key = member(*dict.fromkeys((keys["name"], "name")))
    other_name = member(*[key for key in _NAME_KEYS if key != keys["name"]]) + name + n.Declared()
    # Rules: the program has each of them once.
    label = " ".join((*keys.values(), *beside))
    named = p.rule(f"name of {label}", name_key + name | other_name)
    args_key = member(*dict.fromkeys((keys["args"], "arguments", "parameters")))
    spare = member(*[key for key in _ARGS_KEYS if key != keys["args"]])
    objects = p.rule(f"key of {label}", args_key | spare + n.Peek(n.Literal("{")))
    wrapper = member("function") + "{"
    id = n.Sequence.of('"', n.JsonName(Tag.ID, None), '"')
    number = [member(keys["id"]) + id] if "id" in keys else []
    plain = member("type", "id", "index", *beside) + n.JsonValue()
    aside = n.Choice.of(*number, plain)

    def other(*known: Node) -> Node:
        typed = member("type") + '"function"'
        key = '"' + p.chars(r'^"\\') + '"'
        unread = n.Tagged(Tag.UNREAD, key << ":" << n.JsonValue())
        return n.Choice.of(*number, typed, n.Not(n.Choice.of(*known)) + (plain | unread))

    comma: Node = n.Space("") + "," + n.Space("")
    opening, closing = "{" + n.Space(""), n.Space("") + "}"
    if closer is not None:
        closing = closing | n.Peek(n.Sequence.of(n.Space(""), closer))
    before = p.rule(f"before {label}", p.many(other(named, objects, wrapper) + comma))
    after = p.rule(f"after {label}", p.many(comma + other(wrapper, name_key, args_key)))
    named_first = named + comma + before + objects + n.Args(ANY_TOOL)
    args_first = objects + n.Args(ANY_TOOL, commit=False) + comma + before + named + n.Cut()
    bare = opening + before + (named_first | args_first) + after + closing
    empty = p.many(aside + comma) + named + n.Declared() + p.many(comma + aside)
    bare = bare | opening + empty + closing
    if not wrapped:
        return bare
    return bare | opening + before + member("function") + bare + after + closing
