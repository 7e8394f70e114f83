"""Tools in fewer words than their JSON Schemas: a line of arguments, or declarations of TypeScript.

Strategy. One walk writes a schema as a type: names, unions, arrays, members. The two ways differ in how they spell the
parts. A definition that a reference names is written once and named everywhere, so the text grows with the schema, and
recursion ends. What a type cannot say (``not``, ``if``, patterns of names) is left out; the grammar still holds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ...schema.document import Document, Schema, Unresolved
from ..jinja.exact import to_json

ToolsAs: TypeAlias = Literal["json", "compact", "typescript"]
"""How tools are written where the template shows none: whole JSON Schemas, or shorter."""

_DEEP = 24
"""Schemas in schemas; below that it says ``object``."""
_BARE = re.compile(r"[A-Za-z_][\w.-]*")
_WORDS = frozenset(
    {"true", "false", "null", "string", "number", "integer", "boolean", "object", "any", "never"}
)
_LIMITS = (
    ("minimum", "maximum", "{} to {}", "at least {}", "at most {}"),
    ("exclusiveMinimum", "exclusiveMaximum", "above {}, below {}", "above {}", "below {}"),
    ("minLength", "maxLength", "{} to {} characters", "at least {} characters", "at most {} characters"),
    ("minItems", "maxItems", "{} to {} items", "at least {} items", "at most {} items"),
)


def declared(function: Mapping[str, Any], how: ToolsAs) -> str:
    """The function with its arguments; in JSON, or as ``how`` says."""
    if how == "json":
        return to_json(function)
    parameters: Schema = function.get("parameters") or {}
    writer = (_Compact if how == "compact" else _TypeScript)(parameters)
    return writer.function(str(function.get("name")), str(function.get("description") or ""))


class _Types:
    """Writes the types of one tool. A subclass spells members, values and notes."""

    integer: tuple[str, ...] = ("integer",)
    """The type of whole numbers, and a note if it has no name."""
    unknown = "any"

    def __init__(self, root: Schema) -> None:
        self.root = root
        self.document = Document(root)
        self.named: dict[str, str] = {}
        """The definitions by name, each as it is written; "" while it is being written."""
        self._names: dict[int, str] = {}

    def value(self, value: Any) -> str:
        return to_json(value)

    def noted(self, type: str, note: str) -> str:
        raise NotImplementedError

    def map(self, values: str) -> str:
        raise NotImplementedError

    def members(self, members: Sequence[tuple[str, bool, Schema]], depth: int) -> str:
        raise NotImplementedError

    def type(self, schema: Schema, depth: int = 0) -> str:
        """The type that the schema means."""
        if not isinstance(schema, Mapping):
            return self.unknown if schema is not False else "never"
        if depth > _DEEP:
            return "object"
        if "$ref" in schema:
            return self._reference(schema, depth)
        if "const" in schema:
            return self.value(schema["const"])
        if isinstance(schema.get("enum"), (list, tuple)):
            return " | ".join(dict.fromkeys(map(self.value, schema["enum"])))
        for keyword, joint in (("anyOf", " | "), ("oneOf", " | "), ("allOf", " & ")):
            parts = schema.get(keyword)
            if isinstance(parts, (list, tuple)) and parts:
                rest = {key: value for key, value in schema.items() if key != keyword}
                types = [self.type(part, depth + 1) for part in parts]
                if rest.get("properties"):
                    return " & ".join([self.type(rest, depth + 1), self._grouped(types, joint)])
                return joint.join(dict.fromkeys(types))
        kinds = schema.get("type")
        listed = list(kinds) if isinstance(kinds, (list, tuple)) else [kinds]
        found = [self._one(schema, kind, depth) for kind in listed]
        if schema.get("nullable") is True:
            found.append("null")
        return " | ".join(dict.fromkeys(found))

    def _grouped(self, types: list[str], joint: str) -> str:
        return f"({joint.join(dict.fromkeys(types))})" if len(set(types)) > 1 else types[0]

    def _one(self, schema: Mapping[str, Any], kind: object, depth: int) -> str:
        if kind == "object" or (kind is None and "properties" in schema):
            return self._object(schema, depth)
        if kind == "array" or (kind is None and "items" in schema):
            return self.noted(self._array(schema, depth), ", ".join(_limits(schema, 3, 4)))
        if kind == "integer":
            return self.noted(self.integer[0], ", ".join([*self.integer[1:], *_limits(schema, 0, 2)]))
        if kind == "number":
            return self.noted("number", ", ".join(_limits(schema, 0, 2)))
        if kind == "string":
            said = [str(schema[key]) for key in ("format", "pattern") if isinstance(schema.get(key), str)]
            return self.noted("string", ", ".join([*said, *_limits(schema, 2, 3)]))
        return str(kind) if kind in ("boolean", "null") else self.unknown

    def _object(self, schema: Mapping[str, Any], depth: int) -> str:
        listed = list(self.listed(schema))
        if listed:
            return self.members(listed, depth + 1)
        others = schema.get("additionalProperties")
        return self.map(self.type(others, depth + 1)) if isinstance(others, Mapping) and others else "object"

    def _array(self, schema: Mapping[str, Any], depth: int) -> str:
        prefix = schema.get("prefixItems")
        if isinstance(prefix, (list, tuple)) and prefix:
            return f"[{', '.join(self.type(item, depth + 1) for item in prefix)}]"
        items = self.type(schema.get("items", True), depth + 1)
        return f"({items})[]" if " " in items and not items.startswith("{") else f"{items}[]"

    def listed(self, schema: Schema) -> Iterator[tuple[str, bool, Schema]]:
        """The members that a schema names, each with whether it is required."""
        members = schema.get("properties") if isinstance(schema, Mapping) else None
        required = schema.get("required") if isinstance(schema, Mapping) else None
        names = required if isinstance(required, (list, tuple)) else ()
        for name, member in members.items() if isinstance(members, Mapping) else ():
            yield str(name), name in names, member

    def _reference(self, schema: Mapping[str, Any], depth: int) -> str:
        try:
            target = self.document.resolve(schema["$ref"], schema)
        except Unresolved:
            return self.unknown
        name = self._names.get(id(target))
        if name is None:
            word = re.sub(r"\W+", "_", str(schema["$ref"]).rpartition("/")[2]).strip("_") or "Root"
            name = word if word not in self.named else f"{word}{len(self.named) + 1}"
            self._names[id(target)] = name
            self.named[name] = ""
            self.named[name] = self.type(target, min(depth, 1))
        return name

    def function(self, name: str, about: str) -> str:
        raise NotImplementedError


def _limits(schema: Mapping[str, Any], first: int, last: int) -> Iterator[str]:
    for low, high, both, least, most in _LIMITS[first:last]:
        given = [schema.get(key) for key in (low, high)]
        shown = [to_json(number) for number in given if _number(number)]
        if len(shown) == 2 and shown[0] == shown[1] and first > 1:
            yield both.replace("{} to {}", shown[0])
        elif shown:
            yield (both if len(shown) == 2 else least if _number(given[0]) else most).format(*shown)


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _about(schema: Schema) -> str:
    """What a schema says of its value in words, on one line."""
    if not isinstance(schema, Mapping):
        return ""
    said = schema.get("description")
    text = " ".join(said.split()) if isinstance(said, str) else ""
    if schema.get("default") is None:
        return text
    default = f"default {to_json(schema['default'])}"
    return f"{text} ({default})" if text else default


class _Compact(_Types):
    """``path (string): File to read, limit: integer, unit?: celsius | fahrenheit``"""

    def value(self, value: Any) -> str:
        bare = isinstance(value, str) and _BARE.fullmatch(value) and value not in _WORDS
        return value if bare else to_json(value)

    def noted(self, type: str, note: str) -> str:
        return f"{type} {note}" if note and type.isidentifier() else f"{type} ({note})" if note else type

    def map(self, values: str) -> str:
        return f"{{[name]: {values}}}"

    def members(self, members: Sequence[tuple[str, bool, Schema]], depth: int) -> str:
        return f"{{{self.line(members, depth)}}}"

    def line(self, members: Sequence[tuple[str, bool, Schema]], depth: int) -> str:
        out = []
        for name, required, schema in members:
            shown = (name if _BARE.fullmatch(name) else to_json(name)) + ("" if required else "?")
            about, type = _about(schema), self.type(schema, depth)
            out.append(f"{shown} ({type}): {about}" if about else f"{shown}: {type}")
        return ", ".join(out)

    def function(self, name: str, about: str) -> str:
        members = list(self.listed(self.root))
        whole = "" if members else self.type(self.root)
        lines = [f"{name}: {about}" if about else name]
        arguments = self.line(members, 0) if members else "" if whole in ("object", "any") else whole
        if arguments:
            lines.append(f"  {arguments}")
        lines += [f"  {key} = {text}" for key, text in self.named.items()]
        return "\n".join(lines)


class _TypeScript(_Types):
    """Declarations of TypeScript, with descriptions as comments."""

    integer = ("number", "integer")

    def noted(self, type: str, note: str) -> str:
        return f"{type} /* {note.replace('*/', '* /')} */" if note else type

    def map(self, values: str) -> str:
        return f"Record<string, {values}>"

    def members(self, members: Sequence[tuple[str, bool, Schema]], depth: int) -> str:
        lines = []
        for name, required, schema in members:
            about = _about(schema)
            if about:
                lines.append(f"// {about}")
            shown = (name if name.isidentifier() else to_json(name)) + ("" if required else "?")
            lines.append(f"{shown}: {self.type(schema, depth)};")
        inner = "\n".join(lines).replace("\n", "\n  ")
        return f"{{\n  {inner}\n}}"

    def function(self, name: str, about: str) -> str:
        members = list(self.listed(self.root))
        arguments = f"args: {self.members(members, 0)}" if members else self.type(self.root)
        arguments = "" if arguments in ("object", "any") else arguments
        lines = [f"// {line}".rstrip() for line in about.splitlines()]
        shown = name if name.isidentifier() else to_json(name)
        types = [f"type {key} = {text};" for key, text in self.named.items()]
        return "\n".join([*types, *lines, f"declare function {shown}({arguments}): any;"])
