"""OpenAI-shaped messages in the shape that a template reads; the shape is what probing found (``Wants``)."""

from __future__ import annotations

import marshal
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from os import urandom
from typing import Any, Literal

from ..errors import TemplateError
from ..streams.message import Message
from .jinja.exact import from_json
from .jinja.failure import place
from .jinja.limits import current
from .jinja.traced import Traced, concatenated, interleaved
from .probe.differences import is_marker, units

TEXTS = frozenset({str, Traced})
_SCALARS = frozenset({int, float, bool, type(None), *TEXTS})
FAILED = "Error: "
"""What stands before the result of a call that failed: no template has a place for that."""
REASONING = ("reasoning_content", "reasoning", "thinking")
"""The fields under which a message may have its reasoning."""
_KEYS = frozenset(REASONING)
SHAPED = _KEYS | {"tool_calls"}
"""The fields that templates read in different shapes, beside the content."""

BEFORE_CALLS: Any = ("text", "before", "calls")
"""The key of a text that the template drops beside calls, in a message: a pair of the text and of what the format
writes between it and the name of the first call. A caller's JSON has no such key."""
MARK = f"call{urandom(16).hex()}"
"""Comes before the name of such a call, in a rendering too."""
_MARKED = re.compile(MARK + r"(\d+)x")

CallIds = Literal["keep", "fill", "short", "function"]
ReasoningAs = Literal["reasoning_content", "reasoning", "thinking", "part", "blocks", "any"]


@dataclass(frozen=True, slots=True)
class Wants:
    """The shape in which a template reads messages.

    ``content_as``: text, a list of parts, or either. ``empty_content``: the value for no text beside calls.
    ``arguments_as``: an object, or JSON text. ``call_ids``: ``keep`` the caller's; ``fill`` in missing ids;
    also replace ids that are not ``short`` (nine alphanumerics) or not ``function`` ids
    (``functions.NAME:INDEX``). ``reasoning_as``: the field that the template reads, a content ``part`` of type
    thinking, Apertus-style ``blocks``, or None if reasoning is lost; ``any``: all three fields, to ask whether one is
    read. ``join_content``: beside a call the template
    shows only reasoning or only content, so the two are joined. ``join_results``: of several texts of a result it shows
    the first, so they are joined. ``no_tools``: the value for no tools.
    ``functions``: the tools also go into the text variable ``functions``. ``flat_tools``: a tool is its function,
    without ``{"type": "function", …}`` around it.
    """

    content_as: Literal["text", "parts", "either"] = "text"
    empty_content: Literal["text", "none"] = "text"
    arguments_as: Literal["dict", "text"] = "dict"
    call_ids: CallIds = "keep"
    reasoning_as: ReasoningAs | None = None
    join_content: bool = False
    join_results: bool = False
    no_tools: Literal["none", "list"] = "none"
    functions: bool = False
    flat_tools: bool = False


def own(value: Any) -> Any:
    """A copy of all containers in a JSON-like value, so that no template can change what the caller holds.

    A `Message` of ours becomes such a value."""
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind is dict or isinstance(value, Mapping):
        return {key: item if type(item) in TEXTS else own(item) for key, item in value.items()}
    if kind is list or isinstance(value, (list, tuple)):
        return [own(item) for item in value]
    return value.to_openai() if kind is Message else value


def own_tools(tools: Iterable[Mapping[str, Any]] | None) -> list[dict[str, Any]] | None:
    """As `own`, for the tools of a request: they are plain data, which `marshal` copies ten times as fast."""
    if tools is None:
        return None
    try:
        copied: list[dict[str, Any]] = marshal.loads(marshal.dumps(list(tools)))
    except ValueError:  # some mapping or number of another type
        copied = own(list(tools))
    return copied


def is_message(value: object) -> bool:
    """Whether it is an object with a role."""
    return (type(value) is dict or isinstance(value, Mapping)) and isinstance(value.get("role"), str)


def described(tools: list[dict[str, Any]] | None) -> list[dict[str, Any]] | None:
    """The tools; each tool and argument gets a description if it has none, as some templates raise without it."""

    def function(tool: dict[str, Any]) -> dict[str, Any]:
        parameters = tool.get("parameters")
        properties = parameters.get("properties") if isinstance(parameters, dict) else None
        if isinstance(parameters, dict) and isinstance(properties, dict):
            whole = {k: {"description": "", **v} if isinstance(v, dict) else v for k, v in properties.items()}
            tool = {**tool, "parameters": {**parameters, "properties": whole}}
        return {"description": "", **tool}

    if tools is None:
        return None
    return [
        {**tool, "function": function(tool["function"])}
        if isinstance(tool.get("function"), dict)
        else function(tool)
        for tool in tools
    ]


def reasoning_of(message: Mapping[str, Any]) -> str:
    """The reasoning of a message, under any of the usual keys; ``""`` if the message has no reasoning."""
    if _KEYS.isdisjoint(message):
        return ""
    for key in REASONING:
        text = message.get(key)
        if text and isinstance(text, str):
            return text
    return ""


def shape(
    messages: Iterable[Mapping[str, Any]],
    wants: Wants,
    name: str = "<template>",
    ids: Ids | None = None,
    first: int = 0,
) -> list[dict[str, Any]]:
    """The messages as the template wants them; raises ``TemplateError`` for a malformed message.

    They share no list with the caller's, and a template can change nothing but lists. ``ids``: those of the messages
    before these, of which there are ``first``.
    """
    shaped: list[dict[str, Any]] = []
    ids = Ids(wants.call_ids) if ids is None else ids
    # Then a role and a text stay as they are, as do most results.
    bare = wants.content_as != "parts" and wants.reasoning_as != "blocks"
    for index, message in enumerate(messages, first):
        if (
            bare
            and type(message) is dict
            and type(message.get("content")) in TEXTS
            and (
                type(message.get("role")) is str
                if len(message) == 2
                else wants.call_ids == "keep"
                and message.get("role") == "tool"
                and _SCALARS.issuperset(map(type, message.values()))
            )
        ):
            shaped.append(message)
            continue
        if not is_message(message):
            found = (
                f"an object with the keys {list(message)}"
                if isinstance(message, Mapping)
                else f"{message!r:.60}"
            )
            raise TemplateError(
                f"{place(name, index=index)}: expected an object with a role, found {found} "
                "(give it a role such as user)"
            )
        out: dict[str, Any] = {}
        for key, value in message.items():
            if key != "tool_calls":
                out[key] = value if type(value) in _SCALARS else own(value)
        calls = message.get("tool_calls")
        if calls:
            out["tool_calls"] = _calls(calls, wants, ids, name, index)
            if out.pop(BEFORE_CALLS, None):
                first_call = out["tool_calls"][0]
                for function in (first_call["function"], first_call):
                    if "name" in function:
                        function["name"] = f"{MARK}{index}x" + function["name"]
        elif out["role"] == "tool":
            ids.answer(out)
        _content(out, wants)
        shaped.append(out)
    return shaped


def with_texts(text: str, messages: Sequence[Mapping[Any, Any]], name: str) -> str:
    """The rendering of shaped messages with their texts `BEFORE_CALLS`. Raises `TemplateError` if a call is not
    rendered as the format writes it."""
    parts = []
    at = 0
    for mark in _MARKED.finditer(text):
        index = int(mark[1])
        said, head = messages[index][BEFORE_CALLS]
        before = text[at : mark.start()]
        begun = _head(head).search(before)
        if begun is None:
            raise TemplateError(
                f"{place(name, index=index)}: expected {head!r} before the call's name, found {before[-40:]!r}"
            )
        parts += [before[: begun.start()], said, before[begun.start() :]]
        at = mark.end()
    return concatenated([*parts, text[at:]])


@lru_cache(maxsize=64)
def _head(head: str) -> re.Pattern[str]:
    """What comes before a call's name, if its numbers may differ, and the marker of all calls may be missing: some
    templates write it in the first turn alone."""
    parts = units(head)
    ways = [parts[start:] for start in range(len(parts)) if start == 0 or any(map(is_marker, parts[start:]))]
    spelt = (re.sub(r"\d+", r"\\d+", re.escape("".join(way))) for way in ways)
    return re.compile(f"(?:{'|'.join(spelt)})\\Z")


class Ids:
    """The call ids of a conversation in the form the template accepts; each depends on what came before."""

    _SHORT = re.compile(r"[A-Za-z0-9]{9}")

    def __init__(self, form: CallIds) -> None:
        self._form = form
        self._number = 0
        self._replaced: dict[str, str] = {}
        self._waiting: list[str] = []  # ids of the last turn's calls without a result yet

    def copy(self) -> Ids:
        """As many ids, given on from here in another way."""
        other = Ids(self._form)
        other._number, other._replaced, other._waiting = (
            self._number,
            dict(self._replaced),
            list(self._waiting),
        )
        return other

    def turn(self) -> None:
        """A new turn with calls begins."""
        self._waiting = []

    def call(self, call: dict[str, Any], name: str) -> None:
        """Give the call its id."""
        if self._form == "keep":
            return
        number, known = self._number, call.get("id")
        self._number += 1
        if known and self._accepts(str(known), name):
            new = known
        else:
            function = concatenated(("functions.", name, f":{number}"))
            new = function if self._form == "function" else f"call{number:05d}"
        call["id"] = new
        self._replaced[str(known)] = new
        self._waiting.append(new)

    def _accepts(self, known: str, name: str) -> bool:
        if self._form == "short":
            return self._SHORT.fullmatch(known) is not None
        return self._form == "fill" or (
            known.startswith(f"functions.{name}:") and known.rpartition(":")[2].isdigit()
        )

    def answer(self, message: dict[str, Any]) -> None:
        """Give a tool's result the id of its call; results without one answer the calls in their order."""
        if self._form == "keep":
            return
        known = message.get("tool_call_id")
        if known is not None:
            message["tool_call_id"] = self._replaced.get(str(known), known)
        elif self._waiting:
            message["tool_call_id"] = self._waiting[0]
        if message.get("tool_call_id") in self._waiting:
            self._waiting.remove(message["tool_call_id"])


def _calls(calls: Any, wants: Wants, ids: Ids, name: str, index: int) -> list[dict[str, Any]]:
    out = []
    ids.turn()
    if not isinstance(calls, list):
        raise TemplateError(
            f"{place(name, index=index)}, tool_calls: expected a list of calls, found {calls!r:.60} (make it a list)"
        )
    for position, call in enumerate(calls):
        function = call.get("function", call) if type(call) is dict or isinstance(call, Mapping) else None
        if not (type(function) is dict or isinstance(function, Mapping)) or not isinstance(
            function.get("name"), str
        ):
            raise TemplateError(
                f"{place(name, index=index)}, tool_calls[{position}]: expected an object with function.name and "
                f"function.arguments, found {call!r:.60} (write it as the OpenAI API does)"
            )
        inner: dict[str, Any] = {}  # members stay in the caller's order: some templates dump them
        shaped: dict[str, Any] = {} if function is not call and "type" in call else {"type": "function"}
        if function is not call:
            for key, value in call.items():
                kept = value if type(value) in _SCALARS else inner if key == "function" else own(value)
                shaped[key] = kept
        else:
            shaped["function"] = inner
        for key, value in function.items():
            inner[key] = value if type(value) in _SCALARS or key == "arguments" else own(value)
        try:
            arguments = _arguments(function.get("arguments"), wants.arguments_as)
        except ValueError as error:
            found = f"{function.get('arguments')!r:.60}"
            raise TemplateError(
                f"{place(name, index=index)}, tool_calls[{position}]: expected arguments that are a JSON object, found "
                f"{found} (leave such a call out, or put its text into the content)"
            ) from error
        inner["arguments"] = arguments
        if function is not call and "arguments" in call:
            shaped["arguments"] = arguments
        ids.call(shaped, function["name"])
        out.append(shaped)
    return out


def _arguments(arguments: Any, form: Literal["dict", "text"]) -> Any:
    """Arguments as an object or as JSON text, numbers verbatim. Raises ValueError for what is no JSON object."""
    if arguments is None or arguments == "":
        arguments = {}
    if isinstance(arguments, str):
        try:
            value = from_json(arguments)
        except RecursionError as error:
            raise ValueError("it nests too deep") from error
        if not isinstance(value, dict):
            raise ValueError("it is no object")
        return arguments if form == "text" else current().read(value, arguments)
    if not isinstance(arguments, Mapping):
        raise ValueError("it is no object")
    return current().json(arguments) if form == "text" else own(arguments)


def _content(message: dict[str, Any], wants: Wants) -> None:
    """Puts content and reasoning into the fields that the template reads."""
    content = message.get("content")
    if type(content) in TEXTS and wants.content_as != "parts" and message["role"] != "assistant":
        return
    content = "" if content is None else content
    # Even a template that reads lists may show only the first part of an assistant's message.
    joined = wants.content_as == "text" or (wants.content_as == "either" and message["role"] == "assistant")
    joined = joined or (wants.join_results and message["role"] == "tool")
    if joined and isinstance(content, list) and all(map(is_text, content)):
        # As llama.cpp and vLLM join them.
        content = interleaved("\n", [part if isinstance(part, str) else part["text"] for part in content])
    if wants.content_as == "parts" and isinstance(content, str) and content:
        content = [{"type": "text", "text": content}]
    if message["role"] == "assistant":
        content = _reasoning(message, content, wants)
        if message.get("tool_calls") and not content and wants.empty_content == "none":
            content = None
    message["content"] = content


def is_text(part: object) -> bool:
    """Whether a part of a content is a text."""
    return isinstance(part, str) or (isinstance(part, Mapping) and isinstance(part.get("text"), str))


def _reasoning(message: dict[str, Any], content: Any, wants: Wants) -> Any:
    reasoning = ""
    if not _KEYS.isdisjoint(message):
        reasoning = reasoning_of(message)
        for key in REASONING:
            if message.get(key) is None or isinstance(message[key], str):
                message.pop(key, None)
    if (
        reasoning
        and wants.join_content
        and message.get("tool_calls")
        and content
        and isinstance(content, str)
    ):
        reasoning, content = reasoning + "\n\n" + content, ""
    if wants.reasoning_as == "blocks" and isinstance(content, str):
        thoughts = [{"type": "thoughts", "text": reasoning}] if reasoning else []
        return {"blocks": thoughts + ([{"type": "response", "text": content}] if content else [])}
    if not reasoning:
        return content
    if wants.reasoning_as == "part" and isinstance(content, (str, list)):
        texts = (
            content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
        )
        return [{"type": "thinking", "thinking": reasoning}, *texts]
    if wants.reasoning_as == "any":
        message.update(dict.fromkeys(REASONING, reasoning))
        return content
    # If the template reads no field, the usual one does no harm.
    field = wants.reasoning_as if wants.reasoning_as in REASONING else "reasoning_content"
    message[field] = reasoning
    return content
