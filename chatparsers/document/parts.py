"""The operands of a node in a document: how each sort of them is written, read and described."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, TypeAlias

from ..answers.idioms import Builder
from ..answers.nodes import Node, Span, Tag
from ..errors import DefinitionError, did_you_mean
from ..schema.tools import Argument, Tool
from ..values import Elements, Gemma, Json, Python, Raw, Syntax, of_every_syntax
from . import classes
from .refusals import below, refuse

Data: TypeAlias = Any
"""A value of JSON."""

VERSION = 1
"""The version of documents that this package writes and reads."""
STOPS = "\uf8f2"
"""Stands for the stops of the turn, in the tree of which a document is written."""


class Writer(Protocol):
    """What writes nodes."""

    def node(self, node: Any) -> Data: ...
    def call(self, node: Any) -> Data: ...
    def own(self, node: Any) -> Data: ...
    def argument(self, node: Any) -> Data: ...


class Scope(Protocol):
    """What reads nodes, at a place where ``tool`` and ``arg`` are the tool and the argument."""

    @property
    def p(self) -> Builder: ...
    @property
    def tool(self) -> Tool: ...
    @property
    def arg(self) -> Argument: ...

    def node(self, data: Data, at: str) -> Node: ...
    def section(self, data: Data, at: str) -> Node | None: ...
    def half(self, data: Data, at: str) -> Node: ...
    def call(self, data: Data, at: str) -> Callable[[Tool], Node]: ...
    def argument(self, data: Data, at: str) -> Callable[[Argument], Node]: ...


class Part(NamedTuple):
    """One sort of operand. ``read`` is given a JSON path for its errors; ``schema`` is a JSON Schema."""

    write: Callable[[Writer, Any], Data]
    read: Callable[[Scope, Data, str], Any]
    schema: Mapping[str, Any]


NEEDED: Any = object()
"""The default of a field that must be there."""


class Field(NamedTuple):
    """One key of an object. ``attribute``: the node's, "" for the node itself. A value equal to ``default`` is left
    out."""

    key: str
    part: Part
    attribute: str = ""
    default: Any = NEEDED


class Record(NamedTuple):
    """An object with these keys. ``make`` makes what it stands for of the attributes."""

    fields: tuple[Field, ...]
    make: Callable[..., Any]
    tells: str = ""
    """The key that tells a kind of node; "" for an object whose place tells what it is."""

    def write(self, writer: Writer, given: Any) -> Data:
        found = {}
        for key, part, attribute, default in self.fields:
            value = attrgetter(attribute)(given) if attribute else given
            if default is NEEDED or value != default:
                found[key] = part.write(writer, value)
        return found

    def read(self, scope: Scope, data: Data, at: str) -> Any:
        if not isinstance(data, dict):
            refuse(at, "an object", data)
        keys = [field.key for field in self.fields]
        for key in data:
            if key not in keys:
                kind = f"{self.tells!r} has no such key" if self.tells else "there is no such key"
                raise DefinitionError(f"{below(at, key)}: {kind}: {did_you_mean(key, keys)}")
        found = {}
        for key, part, attribute, default in self.fields:
            if key in data:
                found[attribute or key] = part.read(scope, data[key], below(at, key))
            elif default is NEEDED:
                raise DefinitionError(f"{at}: expected the key {key!r}; write it")
        try:
            return self.make(scope, **found)
        except DefinitionError as error:
            raise located(at, error) from error.__cause__

    @property
    def schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {field.key: field.part.schema for field in self.fields},
            "required": [field.key for field in self.fields if field.default is NEEDED],
            "additionalProperties": False,
        }


def located(at: str, error: DefinitionError) -> DefinitionError:
    """``error``, which says where it is."""
    return error if str(error).startswith("$") else DefinitionError(f"{at}: {error}")


def _plain(kind: type, expected: str, schema: Mapping[str, Any]) -> Part:
    def read(scope: Scope, data: Data, at: str) -> Any:
        if type(data) is not kind or (isinstance(data, int) and data < 0):
            refuse(at, expected, data)
        return data

    return Part(lambda writer, value: value, read, schema)


def _read_true(scope: Scope, data: Data, at: str) -> bool:
    if data is not True:
        refuse(at, "true", data)
    return True


def _chosen(names: Mapping[str, Any]) -> Part:
    """One of these names."""
    back = {value: name for name, value in names.items()}

    def read(scope: Scope, data: Data, at: str) -> Any:
        if not isinstance(data, str) or data not in names:
            refuse(at, " or ".join(map(repr, names)), data)
        return names[data]

    return Part(lambda writer, value: back[value], read, {"enum": list(names)})


TEXT = _plain(str, "a text", {"type": "string"})
FLAG = _plain(bool, "true or false", {"type": "boolean"})
COUNT = _plain(int, "a whole number from 0 on", {"type": "integer", "minimum": 0})
TRUE = Part(lambda writer, value: True, _read_true, {"const": True})

STOPS_SCHEMA = {
    "type": "object",
    "properties": {"stops": {"const": True}},
    "required": ["stops"],
    "additionalProperties": False,
}
_TEXTS_SCHEMA = {"type": "array", "items": {"anyOf": [{"type": "string"}, STOPS_SCHEMA]}}


def _write_texts(writer: Writer, value: tuple[str, ...] | str) -> Data:
    if isinstance(value, str):
        return value
    return [{"stops": True} if text == STOPS else text for text in value]


def _read_texts(scope: Scope, data: Data, at: str) -> tuple[str, ...]:
    if not isinstance(data, list):
        refuse(at, "a list of texts", data)
    found: list[str] = []
    for place, text in enumerate(data):
        if text == {"stops": True} and text["stops"] is True:
            found += scope.p.stops
        else:
            found.append(TEXT.read(scope, text, below(at, place)))
    return tuple(found)


def _read_text_or_texts(scope: Scope, data: Data, at: str) -> str | tuple[str, ...]:
    return data if isinstance(data, str) else _read_texts(scope, data, at)


TEXTS = Part(_write_texts, _read_texts, _TEXTS_SCHEMA)
_TEXT_OR_TEXTS = Part(_write_texts, _read_text_or_texts, {"anyOf": [{"type": "string"}, _TEXTS_SCHEMA]})


def _read_pairs(scope: Scope, data: Data, at: str) -> tuple[tuple[str, str], ...]:
    if not isinstance(data, list):
        refuse(at, "a list of pairs of texts", data)
    for place, pair in enumerate(data):
        if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair)):
            refuse(below(at, place), "a pair of texts", pair)
    return tuple((char, escaped) for char, escaped in data)


PAIRS = Part(
    lambda writer, value: [list(pair) for pair in value],
    _read_pairs,
    {
        "type": "array",
        "items": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2},
    },
)

CLASS = Part(
    lambda writer, value: classes.written(value),
    lambda scope, data, at: classes.read(data, at),
    {"$ref": "#/$defs/class"},
)
"""The inside of a class, as `p.chars` takes it."""


def _write_one(writer: Writer, value: str) -> Data:
    bracketed = value.startswith("[") and value.endswith("]")
    return "" if not value else classes.written(value[1:-1] if bracketed else value)


ONE = Part(_write_one, lambda scope, data, at: f"[{classes.read(data, at)}]", CLASS.schema)
"""A regular expression for one character, as `p.name` takes it."""

NAMED = _chosen({"tool": Tag.NAME, "argument": Tag.ARG_NAME, "id": Tag.ID})
"""Whose a name is."""
REGION = _chosen(
    {
        "content": Tag.CONTENT,
        "reasoning": Tag.REASONING,
        "call": Tag.CALL,
        "thought": Tag.THOUGHT,
        "stray": Tag.STRAY,
        "unread": Tag.UNREAD,
    }
)
"""What kind of text it is."""


def _read_of(scope: Scope, data: Data, at: str) -> Tool | Argument:
    if data not in ("tool", "argument"):
        refuse(at, "'tool' or 'argument'", data)
    return scope.tool if data == "tool" else scope.arg


OF = Part(
    lambda writer, value: "tool" if isinstance(value, Tool) else "argument",
    _read_of,
    {"enum": ["tool", "argument"]},
)

_NODE_SCHEMA = {"$ref": "#/$defs/node"}
NODE = Part(
    lambda writer, value: writer.node(value), lambda scope, data, at: scope.node(data, at), _NODE_SCHEMA
)
SECTION = Part(NODE.write, lambda scope, data, at: scope.section(data, at), _NODE_SCHEMA)
"""A part of a body, which an ``if_tools`` may leave out."""

READ_HALF = Part(NODE.write, lambda scope, data, at: scope.half(data, at), _NODE_SCHEMA)
"""What is parsed of any tool, and never generated."""


def _read_nodes(scope: Scope, data: Data, at: str) -> tuple[Node, ...]:
    if not isinstance(data, list):
        refuse(at, "a list of nodes", data)
    return tuple(scope.node(one, below(at, place)) for place, one in enumerate(data))


NODES = Part(
    lambda writer, value: [writer.node(node) for node in value],
    _read_nodes,
    {"type": "array", "items": _NODE_SCHEMA},
)
CALL = Part(
    lambda writer, value: writer.call(value), lambda scope, data, at: scope.call(data, at), _NODE_SCHEMA
)
ARGUMENT = Part(
    lambda writer, value: writer.argument(value),
    lambda scope, data, at: scope.argument(data, at),
    _NODE_SCHEMA,
)


def _read_own(scope: Scope, data: Data, at: str) -> dict[str, Callable[[Tool], Node]]:
    if not isinstance(data, dict):
        refuse(at, "an object of nodes by the names of tools", data)
    for name, one in data.items():
        scope.half(one, below(at, name))  # no tool has this name where a document is checked
    return {name: scope.call(one, below(at, name)) for name, one in data.items()}


OWN = Part(
    lambda writer, value: writer.own(value),
    _read_own,
    {"type": "object", "additionalProperties": _NODE_SCHEMA},
)


def _make_span(scope: Scope, open: Node, close: Node | None = None, optional: bool = False) -> Span:
    return Span(open, close, optional)


_span = Record(
    (
        Field("open", NODE, "open"),
        Field("close", NODE, "close", None),
        Field("optional", FLAG, "optional", False),
    ),
    _make_span,
)
SPAN = Part(_span.write, _span.read, _span.schema)

# value syntaxes

_SORTS = {
    "str": TEXT,
    "str | None": TEXT,
    "str | tuple[str, ...]": _TEXT_OR_TEXTS,
    "bool": FLAG,
    "tuple[tuple[str, str], ...]": PAIRS,
}
"""How the fields of a syntax are written in a document, by their types."""
_KEYS = {"named": "next_argument", "seams": "next_call", "chars": "class"}
"""The keys of fields that are called otherwise in a document."""


def _syntax(kind: type[Syntax], name: str) -> Record:
    def field(one: Any) -> Field:
        sort = ONE if one.name == "chars" else _SORTS[str(one.type)]
        default = NEEDED if one.default is MISSING else one.default
        return Field(_KEYS.get(one.name, one.name), sort, one.name, default)

    def make(scope: Scope, syntax: str, **given: Any) -> Syntax:
        return kind(**given)

    tells = Field("syntax", _chosen({name: name}), "syntax")
    return Record((tells, *map(field, fields(kind))), make)  # type: ignore[arg-type]


SYNTAXES: Mapping[type[Syntax], tuple[str, Record]] = of_every_syntax(
    "document/parts.py",
    {
        kind: (kind.__name__.lower(), _syntax(kind, kind.__name__.lower()))
        for kind in (Json, Python, Gemma, Elements, Raw)
    },
)
_BY_NAME = dict(SYNTAXES.values())


def _write_syntax(writer: Writer, value: Syntax) -> Data:
    name, record = SYNTAXES[type(value)]
    found = Record(record.fields[1:], record.make).write(writer, value)
    return {"syntax": name, **found} if found else name


def _read_syntax(scope: Scope, data: Data, at: str) -> Syntax:
    whole = {"syntax": data} if isinstance(data, str) else data
    name = whole.get("syntax") if isinstance(whole, dict) else None
    if not isinstance(name, str) or name not in _BY_NAME:
        refuse(at, "a value syntax: " + ", ".join(_BY_NAME), data if name is None else name)
    found: Syntax = _BY_NAME[name].read(scope, whole, at)
    return found


SYNTAX = Part(
    _write_syntax,
    _read_syntax,
    {
        "anyOf": [
            {"enum": [name for name, record in SYNTAXES.values() if len(record.schema["required"]) == 1]},
            *(record.schema for _, record in SYNTAXES.values()),
        ]
    },
)
