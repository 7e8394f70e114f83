"""Tools in every shape that users have them, as OpenAI's ``{"type": "function", "function": {…}}``.

Templates read that shape, and so does the rest of the package. A list that has it already is used as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from ..errors import RequestError, did_you_mean


class Dumped(Protocol):
    """A record of pydantic's, such as the ``Tool`` of MCP's package."""

    def model_dump(self) -> dict[str, Any]: ...


AnyTool: TypeAlias = Mapping[str, Any] | Callable[..., Any] | Dumped
"""A tool: an object of OpenAI's, Anthropic's or MCP's API, a Python function, or a pydantic model."""

_Functions: TypeAlias = tuple[Sequence[Mapping[str, Any]], list[Mapping[str, Any]], dict[str, int]]

_FIELDS = ("name", "description", "parameters", "strict", "return", "response", "parameter_definitions")
"""The fields of a function that some template reads."""
_SPELLINGS = ("parameters", "input_schema", "inputSchema")
"""How the APIs spell the field of the arguments' schema."""
_DROPPED = (
    *("cache_control", "defer_loading", "allowed_callers", "input_examples", "eager_input_streaming"),
    *("title", "outputSchema", "annotations", "icons", "execution", "_meta"),
    *("output_schema", "meta"),  # as MCP's package for Python dumps them
)
"""Fields of Anthropic's API and of MCP that say nothing to the model."""
_FUNCTION_KEYS = frozenset(_FIELDS)
_KNOWN = frozenset({*_FIELDS, *_SPELLINGS, *_DROPPED, "type"})
_TYPES = (None, "function", "custom")
_NONE: Mapping[str, Any] = {}


def functions_of(tools: Sequence[AnyTool]) -> _Functions:
    """The tools in OpenAI's shape, their functions, and the place of each name.

    This runs for each new list, so one that has that shape is only looked at, and returned itself. Raises
    `RequestError`, which names the tool and the field.
    """
    found = _usual(tools)
    return _checked(tools) if found is None else found


def _usual(tools: Sequence[Any]) -> _Functions | None:
    functions: list[Mapping[str, Any]] = []
    places: dict[str, int] = {}
    try:
        for tool in tools:
            function = tool["function"] if type(tool) is dict else None
            if type(function) is not dict:
                return None
            name = function["name"]
            if type(name) is not str or not name or name in places:
                return None
            if tool["type"] != "function" or len(tool) != 2 or not _FUNCTION_KEYS.issuperset(function):
                return None
            if type(function.get("parameters", _NONE)) is not dict:
                return None
            places[name] = len(functions)
            functions.append(function)
    except KeyError:
        return None
    return tools, functions, places


def _checked(tools: Sequence[AnyTool]) -> _Functions:
    shaped: list[Mapping[str, Any]] = []
    places: dict[str, int] = {}
    for index, tool in enumerate(tools):
        tool = open_ai_shaped(tool, f"tools[{index}]")
        name = tool["function"]["name"]
        if name in places:
            raise RequestError(f"tools[{index}].function.name: {name!r} is there twice: rename or drop one")
        places[name] = index
        shaped.append(tool)
    return shaped, [tool["function"] for tool in shaped], places


def open_ai_shaped(tool: AnyTool, path: str = "tool") -> dict[str, Any]:
    """One tool in OpenAI's shape. Raises `RequestError`, which begins with ``path``."""
    if not isinstance(tool, Mapping):
        from .functions import described

        tool = described(tool, path)
    function, at = tool.get("function", tool), f"{path}.function" if "function" in tool else path
    if not isinstance(function, Mapping):
        raise RequestError(
            f"{at}: expected an object with name and parameters, found {type(function).__name__}"
        )
    kind = tool.get("type")
    if kind not in _TYPES:
        raise RequestError(
            f"{path}.type: expected 'function', found {kind!r} (a tool that a server runs has no schema: leave it out)"
        )
    known = _KNOWN if function is tool else _KNOWN | {"function"}
    for place, keys in ((path, tool), (at, function)):
        for key in keys:
            if key not in known:
                raise RequestError(f"{place}: unknown field {key!r}: {_hint(str(key))}")
    # the name first, and the schema under one name, whatever the order and the spelling
    name = function.get("name")
    if not isinstance(name, str) or not name:
        raise RequestError(f"{path}.function.name: expected a name, found {name!r}")
    fields = {key: function[key] for key in function if key in _FUNCTION_KEYS}
    spelt = [key for key in _SPELLINGS if key in function]
    if len(spelt) > 1:
        raise RequestError(f"{at}: expected one schema, found {' and '.join(spelt)}: leave one of them out")
    if spelt and spelt[0] != "parameters":
        fields["parameters"] = function[spelt[0]]
    schema = fields.get("parameters")
    if not (schema is None or isinstance(schema, (Mapping, bool))):
        hint = (
            "a text: json.loads reads it"
            if isinstance(schema, str)
            else f"{type(schema).__name__}: {schema!r:.60}"
        )
        raise RequestError(f"{at}.{spelt[0]}: expected a JSON Schema, found {hint}")
    if function is tool:
        fields = {key: fields[key] for key in _FIELDS if key in fields}
    return {"type": "function", "function": fields}


def _hint(key: str) -> str:
    shown = ("name", "description", "parameters", "strict", "input_schema", "inputSchema")
    hint = did_you_mean(key, shown)
    return hint.replace("known are", "a tool has") if hint.startswith("known") else hint
