"""Tools as the request names them, and their arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import DefinitionError, RequestError
from .references import ANYTHING, Document, Schema, Unresolved

__all__ = ["ANYTHING", "ANY_ARGUMENT", "ANY_TOOL", "Argument", "Schema", "Tool", "Toolset", "read_tools"]

_ANY = Document(True)


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool: its name, its schema, whether it is required; ``document`` is what the schema's
    references lead into."""

    name: str
    schema: Schema
    required: bool
    document: Document = _ANY

    @property
    def types(self) -> frozenset[str]:
        """The JSON types that its values may have."""
        return self.document.types(self.schema)


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A function that the model may call; ``parameters`` is the JSON Schema of its arguments."""

    name: str
    parameters: Schema = True
    description: str = ""
    document: Document = field(init=False)
    arguments: Mapping[str, Argument] = field(init=False)

    def __post_init__(self) -> None:
        document = Document(self.parameters)
        schema = _followed(self.parameters, document)
        properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
        required = schema.get("required", ()) if isinstance(schema, Mapping) else ()
        found = {
            name: Argument(name, sub, name in required, document)
            for name, sub in (properties.items() if isinstance(properties, Mapping) else ())
        }
        object.__setattr__(self, "document", document)
        object.__setattr__(self, "arguments", found)


class _AnyTool(Tool):
    """Its fields are never set, so that a look at one ends in ``__getattr__``."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name in ("name", "parameters", "description", "document", "arguments"):
            raise DefinitionError(
                f"ANY_TOOL has no {name}: the parser reads one tree for all tools. Pass the tool on to p.name(), "
                "p.args() and p.each_arg(); where one tool is written in another way, ask `tool is ANY_TOOL` first"
            )
        raise AttributeError(name)

    def __repr__(self) -> str:
        return "ANY_TOOL"

    def __reduce__(self) -> str:
        return "ANY_TOOL"


class _AnyArgument(Argument):
    """As `_AnyTool`."""

    __slots__ = ()

    def __init__(self) -> None:
        pass

    def __getattr__(self, name: str) -> Any:
        if name in ("name", "schema", "required", "document"):
            raise DefinitionError(
                f"ANY_ARGUMENT has no {name}: the parser reads one tree for all arguments. Pass the argument on to "
                "p.arg_name() and p.value(); where one is written in another way, ask `arg is ANY_ARGUMENT` first"
            )
        raise AttributeError(name)

    def __repr__(self) -> str:
        return "ANY_ARGUMENT"

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __reduce__(self) -> str:
        return "ANY_ARGUMENT"


ANY_TOOL: Tool = _AnyTool()
"""Stands for whatever tool the model names, in the tree that the parser reads."""

ANY_ARGUMENT: Argument = _AnyArgument()
"""Stands for whatever argument the model names, in the tree that the parser reads."""


class Toolset:
    """The tools of a request, by name: the environment that a running parser asks.

    Making one costs the same for 2 tools as for 500: nothing is read until a name is asked for. What is no tool
    is passed over then; `check` says what is wrong with it.
    """

    __slots__ = ("_functions", "_raw", "_tools")

    def __init__(self, raw: Sequence[Mapping[str, Any]] = ()) -> None:
        self._raw = raw
        self._functions: dict[str, Mapping[str, Any]] | None = None
        self._tools: dict[str, Tool] = {}

    def _index(self) -> dict[str, Mapping[str, Any]]:
        found = self._functions
        if found is None:
            found = {}
            for tool in self._raw:
                function = tool.get("function", tool) if isinstance(tool, Mapping) else None
                name = function.get("name") if isinstance(function, Mapping) else None
                if isinstance(function, Mapping) and isinstance(name, str):
                    found.setdefault(name, function)
            self._functions = found
        return found

    def __bool__(self) -> bool:
        return bool(self._raw)

    def __contains__(self, name: object) -> bool:
        return name in self._index()

    def names(self) -> tuple[str, ...]:
        """The tools' names, in the order of the request."""
        return tuple(self._index())

    def get(self, name: str) -> Tool | None:
        """The tool of that name, None where the request has none."""
        tool = self._tools.get(name)
        if tool is None:
            function = self._index().get(name)
            if function is None:
                return None
            parameters = function.get("parameters")
            if parameters is None:
                parameters = function.get("input_schema", {"type": "object", "properties": {}})
            tool = self._tools[name] = Tool(name, parameters, str(function.get("description") or ""))
        return tool

    def all(self) -> tuple[Tool, ...]:
        """All tools, in the order of the request."""
        return tuple(tool for name in self._index() if (tool := self.get(name)) is not None)

    def check(self) -> None:
        """Raises `RequestError` where the request's tools are not OpenAI-shaped; it says which one and what of it."""
        seen: set[str] = set()
        for index, tool in enumerate(self._raw):
            if not isinstance(tool, Mapping):
                raise RequestError(f"tools[{index}]: expected an object, found {type(tool).__name__}")
            function = tool.get("function", tool)
            name = function.get("name") if isinstance(function, Mapping) else None
            if not isinstance(name, str) or not name:
                raise RequestError(f"tools[{index}].function.name: expected a name, found {name!r}")
            if name in seen:
                raise RequestError(
                    f"tools[{index}].function.name: {name!r} is there twice: rename or drop one"
                )
            seen.add(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Toolset, (self._raw,)


def read_tools(tools: Iterable[Mapping[str, Any]] | None) -> Toolset:
    """The tools of a request: a list of OpenAI's ``{"type": "function", "function": {…}}`` or of bare functions.

    Raises `RequestError` where it is no list; what is in it is checked by `Toolset.check`.
    """
    if isinstance(tools, (Mapping, str, bytes)):
        raise RequestError(f"tools: expected a list of tools, found {type(tools).__name__}")
    return Toolset(tools if isinstance(tools, (list, tuple)) else tuple(tools or ()))


def _followed(schema: Schema, document: Document) -> Schema:
    """``schema`` behind its ``$ref``; True where that leads nowhere."""
    seen: set[int] = set()
    while isinstance(schema, Mapping) and "$ref" in schema and id(schema) not in seen:
        seen.add(id(schema))
        try:
            schema = document.resolve(schema["$ref"], schema)
        except Unresolved:
            return True
    return schema
