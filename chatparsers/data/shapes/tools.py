"""The tools of a row, wherever they are and however they are spelt, as the chat-completions API has them."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from .talk import Unreadable, read_json

_SPELLINGS = {
    "dict": "object",
    "int": "integer",
    "integer": "integer",
    "float": "number",
    "double": "number",
    "str": "string",
    "string": "string",
    "bool": "boolean",
    "boolean": "boolean",
    "list": "array",
    "array": "array",
    "tuple": "array",
    "set": "array",
    "object": "object",
    "number": "number",
    "null": "null",
}
_KEYWORDS = frozenset(
    {"type", "properties", "required", "$ref", "anyOf", "oneOf", "allOf", "$schema", "$defs"}
)
_decoder = json.JSONDecoder()


def openai_tools(value: Any) -> list[dict[str, Any]]:
    """A list of tools, an object, JSON text of either, or a list of JSON texts. Bare functions are wrapped, and
    Python's names of types become JSON's. Raises `Unreadable` for anything else."""
    value = read_json(value, "tools: expected JSON")
    if value is None:
        return []
    if isinstance(value, Mapping):
        value = [value]
    if not isinstance(value, list):
        raise Unreadable(f"tools: expected a list, found {type(value).__name__}")
    out = []
    for place, tool in enumerate(value):
        if isinstance(tool, str):
            try:
                tool = json.loads(tool)
            except (ValueError, RecursionError):
                tool = {"name": tool} if re.fullmatch(r"[\w.\-]+", tool) else tool
        declared = tool.get("functionDeclarations") if isinstance(tool, Mapping) else None
        for one in declared if isinstance(declared, list) else [tool]:
            function = function_of(one)
            if function is None:
                raise Unreadable(f"tools[{place}]: expected an object with a name, found {one!r:.60}")
            out.append({"type": "function", "function": function})
    return out


def function_of(tool: Any) -> dict[str, Any] | None:
    """The function that a tool declares; None if it is no tool."""
    function = tool.get("function", tool) if isinstance(tool, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        return None
    found = {key: value for key, value in function.items() if key not in ("input_schema", "type")}
    schema = function.get("input_schema", function.get("parameters"))
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError:
            schema = None
    if schema is not None:
        found["parameters"] = _schema(_wrapped(schema))
    return found


def _wrapped(schema: Any) -> Any:
    """The schema of an object; arguments by name alone are wrapped."""
    if (
        not isinstance(schema, Mapping)
        or not schema
        or not _KEYWORDS.isdisjoint(key for key, value in schema.items() if not isinstance(value, Mapping))
        or isinstance(schema.get("properties"), Mapping)
        or not all(isinstance(value, Mapping) for value in schema.values())
    ):
        return schema
    needed = [
        name
        for name, value in schema.items()
        if "default" not in value and "optional" not in str(value.get("type", ""))
    ]
    return {"type": "object", "properties": dict(schema), "required": needed}


def _schema(schema: Any) -> Any:
    """A schema with JSON's names of types."""
    if not isinstance(schema, Mapping):
        return schema
    out: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "type":
            kind = _type(value)
            if kind is not None:
                out[key] = kind
        elif key in ("properties", "$defs", "definitions") and isinstance(value, Mapping):
            out[key] = {name: _schema(item) for name, item in value.items()}
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
            out[key] = [_schema(item) for item in value]
        elif key in ("items", "additionalProperties", "not"):
            out[key] = _schema(value)
        elif key == "required" and not isinstance(value, list):
            continue  # some datasets say it of each argument
        else:
            out[key] = value
    return out


def _type(value: Any) -> Any:
    """A type, or several, as JSON names them; None if any value is meant."""
    if isinstance(value, list):
        kinds = [kind for kind in map(_type, value) if kind is not None]
        return kinds or None
    if not isinstance(value, str):
        return value
    word = re.match(r"[A-Za-z]*", value.strip())
    name = (word.group() if word else "").lower()
    kind = None if name in ("any", "optional", "union") else _SPELLINGS.get(name, value)
    if kind != value:
        warnings.warn("tools: Python's names of types are read as JSON's", UserWarning, stacklevel=2)
    return kind


def tools_in_text(text: str) -> list[dict[str, Any]]:
    """The tools that a system text holds as JSON: a list of them, or several objects. Empty if it holds none."""
    found: list[dict[str, Any]] = []
    for value in _json_in(text):
        items = value if isinstance(value, list) else [value]
        functions = [function_of(item) for item in items]
        if items and all(f is not None and ("parameters" in f or "description" in f) for f in functions):
            found += [{"type": "function", "function": f} for f in functions if f is not None]
    return found


def _json_in(text: str) -> Iterator[Any]:
    """Every outermost JSON list or object in a text, in order."""
    at = 0
    while (match := re.compile(r"[\[{]").search(text, at)) is not None:
        try:
            value, at = _decoder.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            at = match.end()
            continue
        if isinstance(value, (list, dict)):
            yield value
