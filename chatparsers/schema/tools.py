"""The tools of a request, and their arguments."""

from __future__ import annotations

import marshal
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from ..errors import DefinitionError, RequestError
from ..kept import Kept
from .document import SPELLINGS, Document, Schema, respelt
from .modern import modern
from .tool_shapes import AnyTool, functions_of

_ANY = Document(True)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool: its name, its schema, whether it is required. ``document`` resolves the references of the
    schema. ``beside``: the names of all arguments of the tool."""

    name: str
    schema: Schema
    required: bool
    document: Document = field(default=_ANY, repr=False)
    beside: tuple[str, ...] = field(default=(), repr=False, compare=False)

    def __hash__(self) -> int:
        return hash(self.name)

    @property
    def types(self) -> frozenset[str]:
        """The JSON types that its values may have."""
        return self.document.types(self.schema)

    def other_type(self, value: object, path: str) -> str:
        """What `Document.other_type` says of a value of the argument."""
        return self.document.other_type(self.schema, value, path)


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A function that the model may call; ``parameters`` is the JSON Schema of its arguments.

    ``strict``: whether a grammar keeps to the schema; False, as its ``strict: false`` says, guides to any object.
    ``arguments`` are the arguments that the schema names, also through its references and compositions. ``other``
    stands for an argument of any other name.
    """

    name: str
    parameters: Schema = True
    description: str = ""
    strict: bool = True
    document: Document = field(init=False, repr=False)
    arguments: Mapping[str, Argument] = field(init=False, repr=False)
    other: Argument = field(init=False, repr=False)

    def __post_init__(self) -> None:
        document = Document(self.parameters)
        members, required, others = document.members(self.parameters)
        names = tuple(members)
        found = {
            name: Argument(name, schema, name in required, document, names)
            for name, schema in members.items()
        }
        object.__setattr__(self, "document", document)
        object.__setattr__(self, "arguments", found)
        object.__setattr__(self, "other", Argument("", others, False, document, names))

    def argument(self, name: str) -> Argument:
        """The argument of that name."""
        return self.arguments.get(name, self.other)


class _Any:
    """Stands for any tool, or for any argument. Its fields are never set, so that reading one calls ``__getattr__``."""

    __slots__ = ()
    named: ClassVar[str]
    hint: ClassVar[str]
    """What a definition does in place of reading a field."""

    def __init__(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name in type(self).__dataclass_fields__:  # type: ignore[attr-defined]
            raise DefinitionError(f"{self.named} has no {name}: {self.hint}")
        raise AttributeError(name)

    def __repr__(self) -> str:
        return self.named

    def __reduce__(self) -> str:
        return self.named

    __eq__, __hash__ = object.__eq__, object.__hash__


class _AnyTool(_Any, Tool):
    __slots__ = ()
    named = "ANY_TOOL"
    hint = (
        "the parser reads one tree for all tools. Pass the tool on to p.name(), p.args() and p.each_arg(); where one "
        "tool is written in another way, ask `tool is ANY_TOOL` first"
    )


class _AnyArgument(_Any, Argument):
    __slots__ = ()
    named = "ANY_ARGUMENT"
    hint = (
        "the parser reads one tree for all arguments. Pass the argument on to p.arg_name() and p.value(); where one is "
        "written in another way, ask `arg is ANY_ARGUMENT` first"
    )


ANY_TOOL: Tool = _AnyTool()
"""Stands for any tool that the model names, in the tree that the parser reads."""

ANY_ARGUMENT: Argument = _AnyArgument()
"""Stands for any argument that the model names, in the tree that the parser reads."""


UNKNOWN = Argument("", True, False)
"""Stands for an argument of a tool that the request does not declare: any value is right."""


class Toolset:
    """The tools of a request, by name. A running parser looks them up.

    Creating it checks that the tools have distinct names and only known fields, and raises `RequestError`, which names
    the tool and the field. A tool's schema is read at the first `get`.
    """

    __slots__ = ("_checked", "_tools", "kept", "missed", "raw", "respelt")

    def __init__(self, given: Sequence[AnyTool] = ()) -> None:
        checked = _checked(given, _seen)
        self._checked = checked
        self.raw = checked.raw
        """The tools in OpenAI's shape; the request's own list, if they have that shape there."""
        self.respelt = checked.respelt
        """A warning that names the types in other words than JSON's, which are read as JSON's; "" if there are none."""
        self._tools: dict[str, Tool] = {}
        self.kept: dict[Any, Any] = {}
        """What the parser found out about the tools' names."""
        self.missed = False
        """Whether somebody looked for a tool that is not here."""

    def __bool__(self) -> bool:
        return bool(self.raw)

    def __contains__(self, name: object) -> bool:
        return name in self._checked.places

    def names(self) -> tuple[str, ...]:
        """The tools' names, in the order of the request."""
        if not self._checked.places:
            self.missed = True
        return tuple(self._checked.places)

    def get(self, name: str) -> Tool | None:
        """The tool of that name; None if the request has no such tool."""
        tool = self._tools.get(name)
        if tool is None:
            place = self._checked.places.get(name)
            if place is None:
                self.missed = True
                return None
            tool = self._tools[name] = _tool(name, self._checked.functions[place])
        return tool

    def meant(self, name: str) -> str:
        """The declared name that ``name`` means: itself, or what is in it after a namespace (``functions.f``,
        ``default_api:f``). A name that means no tool is returned as it is."""
        places = self._checked.places
        if name in places:
            return name
        self.missed = True
        ends = (match.end() for match in _namespace(name))
        return next((name[end:] for end in ends if name[end:] in places), name)

    def all(self) -> tuple[Tool, ...]:
        """All tools, in the order of the request."""
        return tuple(tool for name in self._checked.places if (tool := self.get(name)) is not None)

    def __reduce__(self) -> tuple[Any, ...]:
        return Toolset, (self.raw,)


def _tool(name: str, function: Mapping[str, Any]) -> Tool:
    """The tool that ``function`` describes. One with the same data that was read before is returned again, so that its
    schema is not read anew in each request."""
    parameters = function.get("parameters")
    if parameters is None:
        parameters = {"type": "object", "properties": {}}
    description = str(function.get("description") or "")
    strict = function.get("strict") is not False
    data = _dumped((name, parameters, description, strict))
    if data is None:
        return Tool(name, modern(parameters), description, strict)
    tool = _read.get(data)
    if tool is None:
        name, parameters, *rest = marshal.loads(data)  # a copy, because the request's own data may change
        tool = Tool(name, modern(parameters), *rest)
        _read.add(data, tool, 2 * _size(data))
    return tool


_read: Kept[Tool] = Kept(16_000_000)
"""The tools that were read last, by their data. What a tool finds out about its schema is about as large as that."""


class _Checked:
    """A list of tools that was checked: it is not checked again while it has the same tools with the same fields.

    ``copy`` tells; it shares what is inside the fields, such as schemas, whose changes are seen where each request
    reads them. It shares the keys too, so that nearly all that is compared is the same object. ``functions`` and
    ``places``: the functions, and the place of each name. ``respelt`` is as in `Toolset`.
    """

    __slots__ = ("copy", "functions", "places", "raw", "respelt")

    def __init__(
        self,
        raw: Sequence[Mapping[str, Any]],
        functions: list[Mapping[str, Any]],
        places: Mapping[str, int],
    ) -> None:
        self.raw = raw
        self.functions = functions
        self.places = places
        plain = _dumped(list(raw), marshal.version)
        spelt = plain is None or any([search(plain) for search in _SPELT])
        self.respelt = _warning(zip(places, functions, strict=True)) if spelt else ""
        copy = [{**tool, "function": {**tool["function"]}} for tool in raw]
        self.copy = tuple(copy) if isinstance(raw, tuple) else copy
        if plain is not None and raw:
            _seen.add(id(raw), self, _size(plain) + _COPY * len(copy))


def _checked(given: Sequence[AnyTool], seen: Kept[_Checked]) -> _Checked:
    """The checked list, which is checked now if it was not, or if it has changed."""
    if not given:
        return _NO_TOOLS
    found = seen.get(id(given))
    if found is None or found.copy != given:
        return _Checked(*functions_of(given))
    return found


_seen: Kept[_Checked] = Kept(32_000_000, 16_000_000, fresh=2_000_000)
"""The tools of the last requests, by their identity, which no other list has while they are kept."""

_BYTES, _DICT, _COPY = 22, 232, 500
"""The memory of a byte of dumped data as objects, at most; of each dict besides; of a tool's copy. Usual tools take a
third of it."""


_SPELT = tuple(
    re.compile(
        b"%c(?:%b)" % (size, "|".join(name for name in SPELLINGS if len(name) == size).encode())
    ).search
    for size in sorted({*map(len, SPELLINGS)})
)
"""Searches for other names of types in dumped tools, where a text follows its length. Each begins with one byte,
because such a search runs to that byte at once."""


def _dumped(found: Any, version: int = 2) -> bytes | None:
    """The same bytes for the same data; None if it is no plain data. Later versions of marshal name an object again by
    its place: they are shorter, and tell objects apart."""
    try:
        return marshal.dumps(found, version)
    except ValueError:
        return None


def _size(dumped: bytes) -> int:
    """The bytes of memory that dumped data takes as objects, at most."""
    return _BYTES * len(dumped) + _DICT * dumped.count(b"{")


def _warning(functions: Iterable[tuple[str, Mapping[str, Any]]]) -> str:
    found = [
        f"{tool}{path}: {name!r} is read as {SPELLINGS[name]!r}"
        for tool, function in functions
        for path, name in respelt(function.get("parameters"))
    ]
    if not found:
        return ""
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"tools: expected JSON's names of types, found others: {'; '.join(found[:_SHOWN])}{more}"


_SHOWN = 5


Tools: TypeAlias = "Toolset | Iterable[AnyTool]"
"""The tools of a request as a user gives them: a list, or the ``tools`` of another turn, which are not read again."""


def read_tools(tools: Tools | None) -> Toolset:
    """The tools of a request: a list, of which each is in one of the shapes of `chatparsers.schema.tool_shapes`.

    Those of another turn are returned themselves. Raises `RequestError` for anything else.
    """
    if isinstance(tools, Toolset):
        return tools
    if isinstance(tools, (list, tuple)):
        return Toolset(tools)
    if tools is None:
        return Toolset()
    if isinstance(tools, (Mapping, str, bytes, type)) or not isinstance(tools, Iterable):
        if isinstance(tools, (str, bytes)):
            hint = ": json.loads reads a text"
        else:
            hint = ": put one tool into a list" if isinstance(tools, Mapping) or callable(tools) else ""
        raise RequestError(f"tools: expected a list of tools, found {type(tools).__name__}{hint}")
    return Toolset(tuple(tools))


_NO_TOOLS = _Checked((), [], {})
_namespace = re.compile(r"[\w-][.:/]").finditer
