"""The tools of a request, as each API spells them, and how its answers spell their calls.

The model sees functions. An API has more: a namespace that holds functions, whose names are flattened here; a
freeform (custom) tool, whose call is one text and which becomes a function with one argument, `INPUT`; and the search
for tools that the client runs (`tool_search`), whose call has an item of its own. A `Toolkit` has both sides: the
functions for the model, and the `ToolSpelling` of those calls that are not plain.

Functions that load later (`defer_loading`, or those that come in the middle of the messages) are apart: `Chat.prepare`
shows each where a message loads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from .client_tools import CLIENT_TOOLS
from .errors import ApiError
from .fields import boolean, is_null, mapping, sequence, string
from .lark import regular
from .unsupported import Drops

INPUT = "input"
"""The argument that holds the text of a freeform tool's call."""
SEARCH = "tool_search"
"""The function that a search for tools becomes, which the client runs."""
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
    ``kind``: of the part that a call is; the call of a ``custom`` one is one text."""

    name: str
    namespace: str | None = None
    kind: Literal["call", "custom", "search"] = "call"


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The tools of a request. ``functions`` are OpenAI-shaped; None if there are none. ``later``: those that messages
    load."""

    functions: list[dict[str, Any]] | None = None
    later: list[dict[str, Any]] = field(default_factory=list)
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
        return [function["function"]["name"] for function in (*(self.functions or ()), *self.later)]

    def named(self, name: str, path: str, namespace: str | None = None) -> str:
        """The function that a client calls so. Raises `ApiError` if there is none."""
        found = self._called.get((namespace, name))
        if found is None:
            raise ApiError(f"no tool is named {name!r}", param=path)
        return found

    def only(self, names: set[str]) -> Toolkit:
        """The toolkit with these functions alone."""
        kept, later = (
            [one for one in some if one["function"]["name"] in names]
            for some in (self.functions or (), self.later)
        )
        return replace(self, functions=kept or None, later=later)


# tools


def chat_tools(value: object, drops: Drops) -> Toolkit:
    """The tools of a chat completion."""
    made = _Making(drops)
    for tool, at in _each(value, "tools"):
        kind = tool.get("type")
        _of_this_api(tool, at, "chat")
        if kind in ("function", None):
            function = mapping(tool.get("function"), f"{at}.function")
            string(function.get("name"), f"{at}.function.name")
            given = {name: value for name, value in function.items() if value is not None}
            later = given.pop("defer_loading", False) is True or tool.get("defer_loading") is True
            made.add({"type": "function", "function": given}, later=later)
        elif kind == "custom":
            made.add(_custom(mapping(tool.get("custom"), f"{at}.custom"), f"{at}.custom", drops), "custom")
        else:
            drops.tool(kind, at, "of type 'function' and 'custom'")
    return made.kit()


def responses_tools(
    value: object, items: Sequence[tuple[Mapping[str, Any], str]], drops: Drops
) -> tuple[Toolkit, dict[str, list[str]]]:
    """The tools of a response, and the names of those that items load, by the paths of the items.

    The functions of a namespace join the others; if a name is taken, the namespace's comes before it. ``items``: the
    input. Tools that come in it before the first question are there from the beginning.
    """
    made = _Making(drops)
    made.of_responses(value, "tools")
    loads: dict[str, list[str]] = {}
    asked = False
    for item, at in items:
        kind = item.get("type", "message")
        if kind == "additional_tools" and not asked:
            made.of_responses(item.get("tools"), f"{at}.tools")
        elif kind in ("additional_tools", "tool_search_output"):
            loads[at] = made.of_responses(item.get("tools"), f"{at}.tools", later=True)
        asked = (
            asked or kind not in ("message", "additional_tools") or item.get("role") in ("user", "assistant")
        )
    return made.kit(), loads


def messages_tools(value: object, drops: Drops, added: Sequence[tuple[object, str]] = ()) -> Toolkit:
    """The tools of a message. ``added``: those that messages define, each with its path: they load later."""
    made = _Making(drops)
    defined = [(mapping(tool, at), at) for tool, at in added]
    for tool, at in [*_each(value, "tools"), *defined]:
        kind = tool.get("type")
        _of_this_api(tool, at, "messages")
        known = CLIENT_TOOLS.get(kind) if isinstance(kind, str) else None
        if known is not None:
            function = known.function(string(tool.get("name") or known.name, f"{at}.name"))
        elif kind not in (None, "custom"):
            drops.tool(kind, at, "with an input_schema, and those of bash, text editor and memory,")
            continue
        else:
            function = {"name": string(tool.get("name"), f"{at}.name")}
            if tool.get("description") is not None:
                function["description"] = string(tool["description"], f"{at}.description")
            function["parameters"] = dict(mapping(tool.get("input_schema"), f"{at}.input_schema"))
        if tool.get("strict") is False:
            function["strict"] = False
        if (tool, at) in defined and function["name"] in made.names:
            continue  # it was defined before, and is now loaded once more
        later = tool.get("defer_loading") is True or (tool, at) in defined
        made.add({"type": "function", "function": function}, later=later)
    return made.kit()


class _Making:
    """The tools of a request, one after another. ``names``: those that are there."""

    def __init__(self, drops: Drops) -> None:
        self.names: set[str] = set()
        self._drops = drops
        self._functions: list[dict[str, Any]] = []
        self._later: list[dict[str, Any]] = []
        self._spellings: dict[str, ToolSpelling] = {}
        self._searched = False
        """Whether the tools that load later are found by a search of the server's own."""

    def kit(self) -> Toolkit:
        """The toolkit. Nobody runs a search of the server's own, so the tools that it would find are there."""
        if self._searched:
            self._functions += self._later
            self._later = []
        return Toolkit(self._functions or None, self._later, self._spellings)

    def add(
        self, made: dict[str, Any], kind: Any = "call", *, within: str | None = None, later: bool = False
    ) -> str:
        """Takes a function; returns its name."""
        given: str = made["function"]["name"]
        name = given
        if within is not None and given in self.names:
            name = made["function"]["name"] = f"{within}__{given}"
        self.names.add(name)
        if within is not None or kind != "call":
            self._spellings[name] = ToolSpelling(given, within, kind)
        (self._later if later else self._functions).append(made)
        return name

    def of_responses(
        self, value: object, path: str, within: str | None = None, *, later: bool = False
    ) -> list[str]:
        """Takes tools of the Responses API; returns their names. ``within``: their namespace. ``later``: they come in
        the middle of the messages, where one may be that was there before."""
        drops, found = self._drops, list[str]()
        for tool, at in _each(value, path):
            _of_this_api(tool, at, "responses")
            kind = tool.get("type")
            if kind == "namespace" and within is None:
                name = string(tool.get("name"), f"{at}.name")
                found += self.of_responses(tool.get("tools"), f"{at}.tools", name, later=later)
                continue
            if kind == "tool_search":
                if tool.get("execution") == "client":
                    function = _function_of({**tool, "name": SEARCH}, at)
                    found.append(self.add({"type": "function", "function": function}, "search"))
                else:
                    self._searched = True
                    drops.kinds["tool tool_search of the server: all that it would find is there"] = None
                continue
            if kind not in ("function", "custom"):
                # Codex offers the server's search in every request, whether anything is to be searched or not.
                search = isinstance(kind, str) and kind.startswith("web_search")
                drops.tool(kind, at, "of type 'function', 'custom' and 'namespace'", spare=search)
                continue
            known = self._known(tool.get("name"), within) if later else None
            if known is not None:
                found.append(known)
                continue
            made = _custom(tool, at, drops) if kind == "custom" else None
            made = made or {"type": "function", "function": _function_of(tool, at)}
            deferred = later or tool.get("defer_loading") is True
            found.append(
                self.add(made, "custom" if kind == "custom" else "call", within=within, later=deferred)
            )
        return found

    def _known(self, given: object, within: str | None) -> str | None:
        """The name of a tool that was there before; None if there is none."""
        for name in (str(given), f"{within}__{given}"):
            spelt = self._spellings.get(name) or ToolSpelling(name)
            if name in self.names and (spelt.name, spelt.namespace) == (given, within):
                return name
        return None


def _function_of(tool: Mapping[str, Any], path: str) -> dict[str, Any]:
    """A function as the Responses API has it."""
    function: dict[str, Any] = {"name": string(tool.get("name"), f"{path}.name")}
    for name in ("description", "parameters", "strict"):
        if tool.get(name) is not None:
            function[name] = tool[name]
    return function


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
    if kind not in ("function", "custom", SEARCH):
        raise ApiError(f"expected the type 'function', found {kind!r}", param="tool_choice.type")
    name = SEARCH if kind == SEARCH else choice.get("name")
    return _function(name, "tool_choice.name", kit), kit


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
        if kind not in ("function", "custom", SEARCH):
            continue
        tool = {"name": SEARCH} if kind == SEARCH else tool
        named = tool.get(kind) if isinstance(tool.get(kind), Mapping) else tool
        names.add(kit.named(string(mapping(named, at).get("name"), f"{at}.name"), f"{at}.name"))
    kit = kit.only(names)
    mode = choice.get("mode")
    if mode not in ("auto", "required"):
        raise ApiError(f"expected 'auto' or 'required', found {mode!r}", param=f"{path}.mode")
    return _mode(mode, path, kit), kit
