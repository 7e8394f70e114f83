"""The table of the kinds of nodes: how each is written in a document.

A text is a literal, an array is a sequence, and any other node is an object in which one key tells the kind. A kind of
node without a row is an error when this module is imported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from ..answers import nodes as n
from ..answers.idioms import NAME_CHARS, escaped
from ..answers.nodes import Literal, Node, Tag, of_every_kind
from ..errors import DefinitionError
from ..schema.tools import ANY_ARGUMENT, ANY_TOOL
from .parts import (
    ARGUMENT,
    CALL,
    CLASS,
    COUNT,
    FLAG,
    NAMED,
    NODE,
    NODES,
    OF,
    ONE,
    OWN,
    PAIRS,
    READ_HALF,
    REGION,
    SECTION,
    SPAN,
    SYNTAX,
    TEXT,
    TEXTS,
    TRUE,
    Field,
    Part,
    Record,
    Scope,
)


class IfTools(Node, family=True):
    """Stands for what `Builder.if_tools` chooses, in the tree of which a document is written."""

    __slots__ = ("node", "otherwise")

    def __init__(self, node: Node, otherwise: Node | None) -> None:
        self.node = node
        self.otherwise = otherwise


def _row(kind: type[Node], *fields: Field, make: Callable[..., Any] | None = None, tells: str = "") -> Record:
    """``make``: makes the node, where its operands alone do not. ``tells``: the key that tells the kind, if it is not
    the first."""
    return Record(fields, make or (lambda scope, **given: kind(**given)), tells or fields[0].key)


def _alone(kind: type[Node], tells: str, *others: Field) -> Record:
    """The row of a kind that has no operand but ``others``."""

    def make(scope: Scope, **given: Any) -> Node:
        return kind(**{name: value for name, value in given.items() if name != tells})

    return Record((Field(tells, TRUE), *others), make, tells)


def _written(scope: Scope, tag: Tag, generate: Node | None, spell: Callable[[str], str]) -> Node | None:
    """What is written as a name: the one that is given, as ``spell`` spells it; of an id, what the document says."""
    if tag is Tag.ID:
        return generate
    if generate is not None:
        raise DefinitionError("expected no key 'write', as the name that is given is written; leave it out")
    given = scope.tool if tag is Tag.NAME else scope.arg
    return None if given is ANY_TOOL or given is ANY_ARGUMENT else Literal(spell(given.name))


def _name(
    scope: Scope,
    tag: Tag,
    generate: Node | None = None,
    chars: str = NAME_CHARS,
    escapes: Any = (),
    parted: str = "",
) -> Node:
    written = _written(scope, tag, generate, lambda name: escaped(name, escapes))
    return n.Name(tag, chars, written, escapes, parted)


def _json_name(scope: Scope, tag: Tag, generate: Node | None = None) -> Node:
    def inside(name: str) -> str:
        return json.dumps(name, ensure_ascii=False)[1:-1]

    return n.JsonName(tag, _written(scope, tag, generate, inside))


def _stops(scope: Scope, stops: bool) -> Node:
    if not scope.p.stops:
        raise DefinitionError("the format has no stops; give it some, or leave this out")
    return n.Choice.of(*scope.p.stops)


_body_parts = Record(
    (
        Field("start", SECTION, "start", None),
        Field("calls", SECTION, "calls", None),
        Field("reasoning", SPAN, "reasoning", None),
        Field("content", SPAN, "content", None),
        Field("marks", SECTION, "marks", None),
        Field("closers", SECTION, "closers", None),
        Field("lead", TEXT, "lead", ""),
    ),
    lambda scope, **given: given,
)
_BODY = Part(_body_parts.write, _body_parts.read, _body_parts.schema)


_WRITTEN_ID = Field("write", NODE, "generate", None)
_NO_TOOLS: Mapping[str, Any] = {}
_CLASS = Field("class", ONE, "chars", NAME_CHARS)

ROWS: Mapping[type[Node], Record] = of_every_kind(
    "document/kinds.py",
    {
        n.Token: _row(n.Token, Field("token", TEXT, "text"), Field("also", TEXTS, "also", ())),
        n.Space: _row(n.Space, Field("space", TEXT, "text"), Field("free", FLAG, "free", False)),
        n.Choice: _row(
            n.Choice, Field("first_of", NODES, "options"), make=lambda scope, options: n.Choice.of(*options)
        ),
        n.Chars: _row(
            n.Chars,
            Field("chars", CLASS, "ranges"),
            Field("min", COUNT, "least", 1),
            Field("max", COUNT, "most", None),
        ),
        n.AnyChar: _alone(n.AnyChar, "any_char"),
        n.End: _alone(n.End, "end"),
        n.LineStart: _alone(n.LineStart, "line_start"),
        n.Until: _row(n.Until, Field("until", TEXTS, "stops")),
        n.Many: _row(
            n.Many,
            Field("repeat", NODE, "node"),
            Field("min", COUNT, "least", 0),
            Field("max", COUNT, "most", None),
        ),
        n.Peek: _row(n.Peek, Field("peek", NODE, "node")),
        n.Not: _row(n.Not, Field("not", NODE, "node")),
        n.Rule: _row(n.Rule, Field("rule", TEXT, "name"), Field("is", NODE, "node")),
        n.Ref: _row(n.Ref, Field("ref", TEXT, "name")),
        n.Tagged: _row(n.Tagged, Field("as", REGION, "tag"), Field("is", NODE, "node")),
        n.Atomic: _row(n.Atomic, Field("atomic", NODE, "node")),
        n.Cut: _alone(n.Cut, "commit"),
        n.Lenient: _row(
            n.Lenient, Field("write", NODE, "strict"), Field("read", READ_HALF, "lenient"), tells="read"
        ),
        n.Name: _row(
            n.Name,
            Field("name", NAMED, "tag"),
            _CLASS,
            Field("escapes", PAIRS, "escapes", ()),
            Field("parted", TEXT, "parted", ""),
            _WRITTEN_ID,
            make=_name,
        ),
        n.JsonName: _row(n.JsonName, Field("json_name", NAMED, "tag"), _WRITTEN_ID, make=_json_name),
        n.SameName: _row(n.SameName, Field("same_name", OF, "of")),
        n.Header: _row(
            n.Header,
            Field("header", NODE, "parsed"),
            Field("write", NODE, "generate"),
            _CLASS,
            Field("id", FLAG, "id", False),
            Field("unless", TEXTS, "unless", ()),
            make=lambda scope, chars=NAME_CHARS, **given: n.Header(chars=chars, **given),
        ),
        n.Implied: _row(n.Implied, Field("implied", TEXT, "value"), Field("of", NAMED, "tag")),
        n.Declared: _alone(n.Declared, "declared", Field("lacks", TEXT, "lacks", "")),
        n.EachTool: _row(
            n.EachTool,
            Field("call", CALL),
            Field("for_tools", OWN, "own", ()),
            make=lambda scope, call, own=_NO_TOOLS: scope.p.each_tool(call, **own),
        ),
        n.EachArg: _row(
            n.EachArg,
            Field("arguments", ARGUMENT),
            Field("separator", NODE, "separator", None),
            Field("max", COUNT, "most", None),
            Field("positional", SYNTAX, "positional", None),
            make=lambda scope, arguments, **given: n.EachArg(
                scope.tool, arguments, arguments(ANY_ARGUMENT), **given
            ),
        ),
        n.Args: _row(
            n.Args,
            Field("object", SYNTAX, "syntax"),
            Field("commits", FLAG, "commit", True),
            make=lambda scope, **given: n.Args(scope.tool, **given),
        ),
        n.Value: _row(
            n.Value, Field("value", SYNTAX, "syntax"), make=lambda scope, syntax: n.Value(scope.arg, syntax)
        ),
        n.JsonValue: _alone(n.JsonValue, "json_value"),
        n.JsonText: _alone(n.JsonText, "json_text"),
        n.Calls: _row(
            n.Calls,
            Field("calls", NODE, "item"),
            Field("separator", NODE, "separator", Literal("")),
            make=lambda scope, item, separator="": scope.p.calls(item, separator),
        ),
        n.Think: _row(
            n.Think,
            Field("thought", SPAN, "span"),
            Field("always", FLAG, "always", False),
            make=lambda scope, **given: n.Tagged(Tag.THOUGHT, n.Think(**given)),
        ),
        n.Body: _row(n.Body, Field("body", _BODY), make=lambda scope, body: scope.p.body(**body)),
    },
    n.Literal,
    n.Sequence,
)

OPTIONAL = _row(n.Many, Field("optional", NODE, "node"), make=lambda scope, node: n.Many(node, 0, 1))
"""A node, or nothing: how a `Many` that comes at most once is written."""
IF_TOOLS = Record(
    (Field("if_tools", NODE, "node"), Field("else", NODE, "otherwise", None)),
    lambda scope, node, otherwise=None: scope.p.if_tools(node, otherwise),
    "if_tools",
)
STOPS = Record((Field("stops", TRUE),), _stops, "stops")
"""Each of the texts that end the turn."""
USE = "use"
"""The key of what stands for a node under ``shared``."""

BY_KEY: Mapping[str, Record] = {row.tells: row for row in (*ROWS.values(), OPTIONAL, IF_TOOLS, STOPS)}
"""The rows by the keys that tell the kind."""
