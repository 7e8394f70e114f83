"""The tools of a request, as each API spells them, and how its answers spell their calls.

The model sees functions. An API has more: a namespace that holds functions, whose names are flattened here, and a
freeform (custom) tool, whose call is one text and which becomes a function with one argument, `INPUT`. A `Toolkit` has
both sides: the functions for the model, and the `ToolSpelling` of those calls that are not plain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .errors import ApiError
from .fields import boolean, is_null, mapping, sequence, string
from .lark import regular
from .unsupported import Drops

INPUT = "input"
"""The argument that holds the text of a freeform tool's call."""
_SHAPES = {
    "chat": "type 'function' and an object function with name, description and parameters",
    "responses": "type 'function' beside name, description and parameters",
    "messages": "name, description and input_schema",
}
_APIS = {"chat": "chat completions", "responses": "the Responses API", "messages": "the Messages API"}
_MODES = {"auto": "auto", "any": "required", "none": "none"}


@dataclass(frozen=True, slots=True)
class ToolSpelling:
    """How an API spells the calls of a tool. ``name``: its name there. ``namespace``: what contains the name, or None.
    ``custom``: the call is one text."""

    name: str
    namespace: str | None = None
    custom: bool = False


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The tools of a request. ``functions`` are OpenAI-shaped; None if there are none."""

    functions: list[dict[str, Any]] | None = None
    spellings: dict[str, ToolSpelling] = field(default_factory=dict)
    _called: dict[tuple[str | None, str], str] = field(init=False, repr=False, compare=False)
    """The functions by how a client calls them: by a namespace, or None, and a name."""

    def __post_init__(self) -> None:
        called: dict[tuple[str | None, str], str] = {(None, name): name for name in self.names()}
        for name in self.names():
            spelt = self.spelling(name)
            called.setdefault((None, spelt.name), name)
            called.setdefault((spelt.namespace, spelt.name), name)
        object.__setattr__(self, "_called", called)

    def spelling(self, name: str) -> ToolSpelling:
        """How the calls of the function are spelt."""
        return self.spellings.get(name) or ToolSpelling(name)

    def names(self) -> list[str]:
        """The names of the functions."""
        return [function["function"]["name"] for function in self.functions or ()]

    def named(self, name: str, path: str, namespace: str | None = None) -> str:
        """The function that a client calls so. Raises `ApiError` if there is none."""
        found = self._called.get((namespace, name))
        if found is None:
            raise ApiError(f"no tool is named {name!r}", param=path)
        return found

    def only(self, names: set[str]) -> Toolkit:
        """The toolkit with these functions alone."""
        kept = [one for one in self.functions or () if one["function"]["name"] in names]
        return replace(self, functions=kept or None)


# tools


def chat_tools(value: object, drops: Drops) -> Toolkit:
    """The tools of a chat completion."""
    functions, spellings = [], {}
    for tool, at in _each(value, "tools"):
        kind = tool.get("type")
        _of_this_api(tool, at, "chat")
        if kind in ("function", None):
            function = mapping(tool.get("function"), f"{at}.function")
            string(function.get("name"), f"{at}.function.name")
            given = {name: value for name, value in function.items() if value is not None}
            functions.append({"type": "function", "function": given})
        elif kind == "custom":
            made = _custom(mapping(tool.get("custom"), f"{at}.custom"), f"{at}.custom", drops)
            functions.append(made)
            spellings[made["function"]["name"]] = ToolSpelling(made["function"]["name"], custom=True)
        else:
            drops.tool(kind, at, "of type 'function' and 'custom'")
    return Toolkit(functions or None, spellings)


def responses_tools(value: object, drops: Drops) -> Toolkit:
    """The tools of a response. The functions of a namespace join the others; if a name is taken, the
    namespace's comes before it."""
    functions: list[dict[str, Any]] = []
    spellings: dict[str, ToolSpelling] = {}
    _add_responses(value, "tools", None, drops, functions, spellings, set())
    return Toolkit(functions or None, spellings)


def _add_responses(
    value: object,
    path: str,
    namespace: str | None,
    drops: Drops,
    functions: list[dict[str, Any]],
    spellings: dict[str, ToolSpelling],
    names: set[str],
) -> None:
    for tool, at in _each(value, path):
        _of_this_api(tool, at, "responses")
        kind = tool.get("type")
        if kind == "namespace" and namespace is None:
            name = string(tool.get("name"), f"{at}.name")
            _add_responses(tool.get("tools"), f"{at}.tools", name, drops, functions, spellings, names)
            continue
        if kind not in ("function", "custom"):
            # Codex offers the server's search in every request, whether anything is to be searched or not.
            search = isinstance(kind, str) and kind.startswith("web_search")
            drops.tool(kind, at, "of type 'function', 'custom' and 'namespace'", spare=search)
            continue
        if kind == "custom":
            made = _custom(tool, at, drops)
        else:
            function: dict[str, Any] = {"name": string(tool.get("name"), f"{at}.name")}
            for name in ("description", "parameters", "strict"):
                if tool.get(name) is not None:
                    function[name] = tool[name]
            made = {"type": "function", "function": function}
        given = made["function"]["name"]
        if namespace is not None and given in names:
            made["function"]["name"] = f"{namespace}__{given}"
        names.add(made["function"]["name"])
        if namespace is not None or kind == "custom":
            spellings[made["function"]["name"]] = ToolSpelling(given, namespace, kind == "custom")
        functions.append(made)


def messages_tools(value: object, drops: Drops) -> Toolkit:
    """The tools of a message."""
    functions = []
    for tool, at in _each(value, "tools"):
        kind = tool.get("type")
        _of_this_api(tool, at, "messages")
        if kind not in (None, "custom"):
            drops.tool(kind, at, "with an input_schema")
            continue
        function: dict[str, Any] = {"name": string(tool.get("name"), f"{at}.name")}
        if tool.get("description") is not None:
            function["description"] = string(tool["description"], f"{at}.description")
        function["parameters"] = dict(mapping(tool.get("input_schema"), f"{at}.input_schema"))
        if tool.get("strict") is False:
            function["strict"] = False
        functions.append({"type": "function", "function": function})
    return Toolkit(functions or None)


def _of_this_api(tool: Mapping[str, Any], path: str, api: str) -> None:
    """Raises `ApiError` for a function as another API spells it."""
    if tool.get("type") not in (None, "function"):
        return
    if isinstance(tool.get("function"), Mapping):
        found = "chat"
    elif tool.get("name") is None:
        return
    else:
        found = "messages" if "input_schema" in tool else "responses"
        if tool.get("type") is None and found != "messages":
            return
    if found != api:
        said = f"expected {_SHAPES[api]}, as {_APIS[api]} has it, found {_SHAPES[found]}, as {_APIS[found]} has it"
        raise ApiError(said, param=path)


def _each(value: object, path: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    for index, tool in enumerate([] if is_null(value) else sequence(value, path)):
        yield mapping(tool, f"{path}[{index}]"), f"{path}[{index}]"


def _custom(tool: Mapping[str, Any], path: str, drops: Drops) -> dict[str, Any]:
    """A freeform tool as a function of one text.

    A regular expression becomes the text's pattern, so that the sampler keeps to it. So does a grammar in Lark that is
    one; the model reads it in the description. Of one that is none, the description alone is left.
    """
    name = string(tool.get("name"), f"{path}.name")
    said = [string(tool["description"], f"{path}.description")] if tool.get("description") else []
    text: dict[str, Any] = {"type": "string", "description": "The whole text of the call."}
    given = mapping(tool.get("format") or {"type": "text"}, f"{path}.format")
    if given.get("type") == "grammar":
        grammar = mapping(given.get("grammar", given), f"{path}.format")  # chat nests it, Responses does not
        definition = string(grammar.get("definition"), f"{path}.format.definition")
        if grammar.get("syntax") == "regex":
            text["pattern"] = f"^(?:{definition})$"
        else:
            said.append(f"The text of {INPUT!r} must match this grammar (Lark):\n{definition}")
            pattern = regular(definition)
            if pattern is None:
                drops.kinds["grammar that recurs"] = None
            else:
                text["pattern"] = f"^(?:{pattern})$"
    elif given.get("type") != "text":
        raise ApiError(
            f"expected 'text' or 'grammar', found {given.get('type')!r}", param=f"{path}.format.type"
        )
    parameters = {"type": "object", "properties": {INPUT: text}, "required": [INPUT]}
    function = {"name": name, "description": "\n\n".join(said), "parameters": parameters}
    return {"type": "function", "function": function}


# choices


def chat_choice(value: object, kit: Toolkit) -> tuple[str | dict[str, Any], Toolkit]:
    """The choice of a chat completion, and the tools that it leaves."""
    if value is None or isinstance(value, str):
        return _mode(value, "tool_choice", kit), kit
    choice = mapping(value, "tool_choice")
    kind = choice.get("type", "function")
    if kind == "allowed_tools":
        allowed = mapping(choice.get("allowed_tools"), "tool_choice.allowed_tools")
        return _allowed(allowed, "tool_choice.allowed_tools", kit)
    if kind not in ("function", "custom"):
        raise ApiError(f"expected the type 'function', found {kind!r}", param="tool_choice.type")
    function = mapping(choice.get(kind), f"tool_choice.{kind}")
    return _function(function.get("name"), f"tool_choice.{kind}.name", kit), kit


def responses_choice(value: object, kit: Toolkit) -> tuple[str | dict[str, Any], Toolkit]:
    """The choice of a response, and the tools that it leaves."""
    if value is None or isinstance(value, str):
        return _mode(value, "tool_choice", kit), kit
    choice = mapping(value, "tool_choice")
    kind = choice.get("type")
    if kind == "allowed_tools":
        return _allowed(choice, "tool_choice", kit)
    if kind not in ("function", "custom"):
        raise ApiError(f"expected the type 'function', found {kind!r}", param="tool_choice.type")
    return _function(choice.get("name"), "tool_choice.name", kit), kit


def messages_choice(value: object, kit: Toolkit) -> tuple[str | dict[str, Any], bool]:
    """The choice of a message, and whether several calls are allowed."""
    if value is None:
        return "auto", True
    choice = mapping(value, "tool_choice")
    parallel = not boolean(choice, "disable_parallel_tool_use", False)
    kind = choice.get("type")
    if kind == "tool":
        return _function(choice.get("name"), "tool_choice.name", kit), parallel
    if not isinstance(kind, str) or kind not in _MODES:
        raise ApiError(f"expected 'auto', 'any', 'tool' or 'none', found {kind!r}", param="tool_choice.type")
    if kind == "any" and not kit.functions:
        raise ApiError("'any' needs tools, and there are none", param="tool_choice")
    return _MODES[kind], parallel


def _mode(value: str | None, path: str, kit: Toolkit) -> str:
    mode = "auto" if value is None else value
    if mode not in ("auto", "none", "required"):
        message = f"expected 'auto', 'none', 'required' or an object that names a function, found {value!r}"
        raise ApiError(message, param=path)
    if mode == "required" and not kit.functions:
        raise ApiError("'required' needs tools, and there are none", param=path)
    return mode


def _function(value: object, path: str, kit: Toolkit) -> dict[str, Any]:
    return {"type": "function", "function": {"name": kit.named(string(value, path), path)}}


def _allowed(choice: Mapping[str, Any], path: str, kit: Toolkit) -> tuple[str, Toolkit]:
    """Some of the tools, and a mode among them. A tool that was dropped is no longer there to be allowed."""
    names = set()
    for index, tool in enumerate(sequence(choice.get("tools"), f"{path}.tools")):
        at = f"{path}.tools[{index}]"
        tool = mapping(tool, at)
        kind = tool.get("type", "function")
        if kind not in ("function", "custom"):
            continue
        named = tool.get(kind) if isinstance(tool.get(kind), Mapping) else tool
        names.add(kit.named(string(mapping(named, at).get("name"), f"{at}.name"), f"{at}.name"))
    kit = kit.only(names)
    mode = choice.get("mode")
    if mode not in ("auto", "required"):
        raise ApiError(f"expected 'auto' or 'required', found {mode!r}", param=f"{path}.mode")
    return _mode(mode, path, kit), kit
