"""The parts of a request as users give them, read: which call is asked for, and what the answer must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from ..errors import RequestError, did_you_mean
from .modern import modern
from .tools import Toolset

ToolChoice: TypeAlias = Literal["auto", "none", "required"] | str | Mapping[str, Any]
"""One of the three modes, or the function that the model must call: its name, or OpenAI's object that names it."""


def read_choice(choice: ToolChoice, tools: Toolset) -> tuple[str, str | None]:
    """The mode, and the name of the function that the model must call. Raises `RequestError` for any other choice."""
    if isinstance(choice, str):
        if choice == "required" and not tools:
            raise RequestError("tool_choice: 'required' needs tools, and there are none")
        if choice in ("auto", "none", "required"):
            return choice, None
        if choice in tools:
            return "required", choice
        raise RequestError(
            f"tool_choice: expected 'auto', 'none', 'required' or a tool's name, found {choice!r}: "
            f"{did_you_mean(choice, tools.names())}"
        )
    if not isinstance(choice, Mapping):
        raise RequestError(
            "tool_choice: expected 'auto', 'none', 'required', a tool's name or an object that names one, "
            f"found {type(choice).__name__}"
        )
    function = choice.get("function", choice)
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(name, str) or name not in tools:
        raise RequestError(
            f"tool_choice: no tool is named {name!r}: {did_you_mean(str(name), tools.names())}"
        )
    return "required", name


_KINDS = ("text", "json_object", "json_schema", "grammar")
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_KEYWORDS = frozenset({"$ref", "allOf", "anyOf", "const", "enum", "items", "not", "oneOf", "properties"})


def read_response_format(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """OpenAI's ``response_format``, made also of a bare JSON Schema. Raises `RequestError` for anything else."""
    if not isinstance(given, Mapping):
        hint = f": write {{'type': {given!r}}}" if given in ("text", "json_object") else ""
        raise RequestError(
            "response_format.type: expected an object of OpenAI's response_format or a JSON Schema, found "
            f"{given!r:.60}{hint}"
        )
    kind = given.get("type")
    bare = kind not in _KINDS and (kind is None or isinstance(kind, list) or kind in _TYPES)
    if bare and (kind is not None or not _KEYWORDS.isdisjoint(given)):
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": given}}
    if (
        kind == "json_schema" and "json_schema" not in given and "schema" in given
    ):  # as the Responses API has it
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": given["schema"]}}
    return given


def read_schema(response_format: Mapping[str, Any]) -> Any:
    """The JSON Schema of the answer, None if none is given. Raises `RequestError` for an unknown kind."""
    kind = response_format.get("type")
    if kind == "json_object":
        return modern(response_format.get("schema", {"type": "object"}))
    if kind == "json_schema":
        named = response_format.get("json_schema", {})
        return modern(named.get("schema", True)) if isinstance(named, Mapping) else True
    if kind in ("text", "grammar", "lark", "regex", "choice"):
        return None
    raise RequestError(
        f"response_format.type: expected 'text', 'json_object', 'json_schema', 'grammar', 'lark', 'regex' or "
        f"'choice', found {kind!r}"
    )
