"""Tools as the request names them, and what a parser must know of a schema: which types an argument may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .errors import RequestError

__all__ = ["ANYTHING", "Argument", "Tool", "Toolset", "read_tools", "types_of"]

Schema = Any
"""A JSON Schema: a mapping, or True/False."""

ANYTHING = frozenset({"string", "number", "integer", "boolean", "null", "object", "array"})
"""Every JSON type: what a schema without a type admits."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument of a tool: its name, its schema, whether it is required; ``root`` holds what ``$ref`` points
    into."""

    name: str
    schema: Schema
    required: bool
    root: Schema = True

    @property
    def types(self) -> frozenset[str]:
        return types_of(self.schema, self.root)


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A function that the model may call; ``parameters`` is the JSON Schema of its arguments."""

    name: str
    parameters: Schema = True
    description: str = ""
    arguments: Mapping[str, Argument] = field(init=False)

    def __post_init__(self) -> None:
        schema = _resolve(self.parameters, self.parameters, 0)
        properties = schema.get("properties", {}) if isinstance(schema, Mapping) else {}
        required = schema.get("required", ()) if isinstance(schema, Mapping) else ()
        found = {
            name: Argument(name, sub, name in required, self.parameters)
            for name, sub in (properties.items() if isinstance(properties, Mapping) else ())
        }
        object.__setattr__(self, "arguments", found)


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


def _resolve(schema: Schema, root: Schema, depth: int) -> Schema:
    """``schema`` with a local ``$ref`` followed (at most 32 in a row); True where it leads nowhere."""
    while isinstance(schema, Mapping) and "$ref" in schema:
        depth += 1
        ref = schema["$ref"]
        if depth > 32 or not isinstance(ref, str) or not ref.startswith("#"):
            return True
        target: Schema = root
        for part in filter(None, ref[1:].split("/")):
            part = part.replace("~1", "/").replace("~0", "~")
            if isinstance(target, Mapping) and part in target:
                target = target[part]
            elif isinstance(target, list) and part.isdigit() and int(part) < len(target):
                target = target[int(part)]
            else:
                return True
        schema = target
    return schema


def _type_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (int, float)):
        return "number"
    if value is None:
        return "null"
    return "array" if isinstance(value, list) else "object"


def types_of(schema: Schema, root: Schema = True, _depth: int = 0) -> frozenset[str]:
    """The JSON types that values of ``schema`` may have (``integer`` counts as ``number`` too where it is given)."""
    schema = _resolve(schema, root, _depth)
    if not isinstance(schema, Mapping) or _depth > 32:
        return ANYTHING
    found = ANYTHING
    declared = schema.get("type")
    if isinstance(declared, str):
        found = frozenset({declared}) & ANYTHING or ANYTHING
    elif isinstance(declared, (list, tuple)):
        found = frozenset(t for t in declared if isinstance(t, str)) & ANYTHING or ANYTHING
    if isinstance(schema.get("enum"), (list, tuple)):
        listed = frozenset(map(_type_of, schema["enum"]))
        found = (found & (listed | {"integer"} if "number" in listed else listed)) or listed
    elif "const" in schema:
        found = frozenset({_type_of(schema["const"])})
    for keyword in ("anyOf", "oneOf"):
        options = schema.get(keyword)
        if isinstance(options, (list, tuple)) and options:
            found = found & frozenset().union(*(types_of(o, root, _depth + 1) for o in options))
    for option in schema.get("allOf", ()) if isinstance(schema.get("allOf"), (list, tuple)) else ():
        found = found & types_of(option, root, _depth + 1)
    if declared is None and found == ANYTHING:
        if "properties" in schema:
            found = frozenset({"object"})
        elif "items" in schema or "prefixItems" in schema:
            found = frozenset({"array"})
    if schema.get("nullable") is True:
        found = found | {"null"}
    return found or ANYTHING
