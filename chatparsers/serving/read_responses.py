"""Reads requests of OpenAI's Responses API.

Its input is a list of items. What one answer of the model became (reasoning, text, calls) are several items in a row;
they are joined to one message of the assistant again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..templates import to_json
from .compaction import summary_of
from .errors import ApiError
from .fields import boolean, integer, is_null, mapping, sequence, string, whole_request
from .freeform import arguments_of
from .images import ImageLimits
from .known import RESPONSES, common
from .logprobs import INCLUDED, asked_responses
from .request import Request, response_schema, stops, template_options, text_parts
from .sealed import Seals
from .tools import SEARCH, Toolkit, responses_choice, responses_tools
from .unsupported import ELSEWHERE, Drops

_ROLES = ("system", "developer", "user", "assistant")
_TEXT = ("input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text")
_WRITTEN = ("reasoning", "function_call", "custom_tool_call", "tool_search_call")
_CUT = ("incomplete", "in_progress")
_DROPPED = ("store",)
_PAIRS, _KEY, _TEXT_OF_PAIR = 16, 64, 512
_STATELESS = "this server keeps no conversations: send the whole input"
_KEPT = {
    "previous_response_id": _STATELESS,
    "conversation": _STATELESS,
    "background": "this server answers at once: leave background out",
    "store": "this server keeps no answers: leave store out, or send false",
}
"""What only a server that keeps answers can give."""
_UNSUPPORTED = {
    "n": ELSEWHERE["n"],
    "logprobs": f"log probabilities are asked for by include: [{INCLUDED!r}]",
    "prompt": "this server keeps no prompts: send instructions and input",
}


def read_responses(
    body: object,
    *,
    drop_unsupported: bool = False,
    images: ImageLimits | None = None,
    seals: Seals | None = None,
    history: Sequence[Mapping[str, Any]] | None = None,
) -> Request:
    """The request of a body for ``/v1/responses``. Raises `ApiError` with the path of the wrong field.

    ``drop_unsupported``: images and the like, items of other servers' tools, and these tools are left out and not
    refused. ``images``: what images may be in the input (`Request.images`); None: none. ``seals``: what opens thoughts
    that are sealed.

    ``history``: the items before the input, of a server that keeps them; None if it keeps none.

    >>> from chatparsers.serving import read_responses
    >>> read_responses({"model": "m", "input": "Is it cold?"}).prepare["messages"]
    [{'role': 'user', 'content': 'Is it cold?'}]
    """
    body = whole_request(body)
    drops = Drops(drop_unsupported, images, seals)
    drops.fields(body, _UNSUPPORTED if history is not None else {**_UNSUPPORTED, **_KEPT}, _DROPPED)
    metadata_of(body)
    messages: list[dict[str, Any]] = []
    instructions = body.get("instructions")
    if not is_null(instructions):
        messages.append({"role": "system", "content": text_parts(instructions, "instructions", _TEXT, drops)})
    given = body.get("input")
    before = 0
    items = [(item, f"history[{index}]") for index, item in enumerate(history or ())]
    if not isinstance(given, str) and not (given is None and history):  # else it goes on with what is there
        listed = sequence(given, "input", "a string or a list of items")
        items += [(mapping(item, f"input[{index}]"), f"input[{index}]") for index, item in enumerate(listed)]
    kit, loads = responses_tools(body.get("tools"), items, drops)
    begun = not isinstance(given, str) and bool(items) and _begun(items[-1][0])
    for index, (item, path) in enumerate(items):
        found = loads.get(path, ())
        _item(item, path, messages, kit, drops, found, begun=begun and index + 1 == len(items))
        before = len(messages) if index < len(history or ()) else before
    if isinstance(given, str):
        messages.append({"role": "user", "content": given})
    if not messages:
        raise ApiError("expected a string or at least one item", param="input")
    for message in messages:
        message.pop("open", None)
        message.pop("cut", None)
    reasoning = mapping(body.get("reasoning") or {}, "reasoning")
    choice, kit = responses_choice(body.get("tool_choice"), kit)
    text = mapping(body.get("text") or {}, "text")
    format = text.get("format")
    drops.verbosity(text.get("verbosity"), "text.verbosity")
    return Request(
        **common(body, RESPONSES, kit, drops),
        messages=messages,
        kept=before if history else 0,
        tool_choice=choice,
        parallel_tool_calls=boolean(body, "parallel_tool_calls", True),
        response_format=response_schema(format, "text.format", format),
        **template_options(body, reasoning.get("effort"), "reasoning.effort"),
        keeps_thoughts=reasoning.get("context") == "all_turns",
        max_calls=integer(body, "max_tool_calls", 1),
        continue_final_message=begun,
        stops=stops(body.get("stop"), "stop"),
        max_tokens=integer(body, "max_output_tokens", 1),
        include_usage=True,
        logprobs=asked_responses(body),
        token_ids=boolean(body, "return_token_ids", False),
    )


def metadata_of(body: Mapping[str, Any]) -> dict[str, str]:
    """The metadata of a request. They go back to the client, so they have the API's own bounds."""
    pairs = mapping(body.get("metadata") or {}, "metadata")
    if len(pairs) > _PAIRS:
        raise ApiError(f"expected at most {_PAIRS} pairs, found {len(pairs)}", param="metadata")
    for key, text in pairs.items():
        path = f"metadata.{key[:_KEY]}"
        if len(key) > _KEY or len(string(text, path)) > _TEXT_OF_PAIR:
            said = f"expected at most {_KEY} characters for a key and {_TEXT_OF_PAIR} for its text"
            raise ApiError(said, param=path)
    return dict(pairs)


def _begun(item: Mapping[str, Any]) -> bool:
    """Whether an item at the end is of an answer that was cut off, so that the model goes on with it."""
    written = item.get("role") == "assistant" or item.get("type") in _WRITTEN
    return written and item.get("status") in _CUT


def _item(
    item: Mapping[str, Any],
    path: str,
    messages: list[dict[str, Any]],
    kit: Toolkit,
    drops: Drops,
    loads: Sequence[str],
    *,
    begun: bool,
) -> None:
    """Adds an item to the messages. ``loads``: the tools that it loads. ``begun``: the model goes on with it."""
    kind = item.get("type", "message" if "role" in item else None)
    if kind == "message":
        role = item.get("role")
        if role not in _ROLES:
            raise ApiError(f"expected one of {', '.join(_ROLES)}, found {role!r}", param=f"{path}.role")
        content = text_parts(item.get("content"), f"{path}.content", _TEXT, drops, images=role != "assistant")
        if role != "assistant":
            messages.append({"role": role, "content": content})
            return
        message = _assistant(messages)
        message["content"] += content if isinstance(content, str) else _joined(content)
    elif kind == "reasoning":
        text = _thought(item, path, drops)
        message = _assistant(messages)
        message["reasoning_content"] = message.get("reasoning_content", "") + text
    elif kind in ("function_call", "custom_tool_call", "tool_search_call"):
        arguments = item.get("arguments")
        if kind == "tool_search_call":
            arguments = to_json(mapping(arguments or {}, f"{path}.arguments"))
        if kind == "custom_tool_call":
            arguments = arguments_of(string(item.get("input", ""), f"{path}.input"), begun=begun)
        text = string("" if arguments is None else arguments, f"{path}.arguments")
        function = {
            "name": SEARCH if kind == "tool_search_call" else _name(item, path, kit),
            "arguments": text if begun else drops.arguments(text),
        }
        call = {
            "id": _call_id(item, path),
            "type": "function",
            "function": function,
        }
        calls = _assistant(messages).setdefault("tool_calls", [])
        if calls and calls[-1]["id"] == call["id"] and messages[-1].pop("cut", False):
            calls.pop()  # the same, finished by the next answer
        calls.append(call)
        messages[-1]["cut"] = item.get("status") in _CUT
    elif kind in ("function_call_output", "custom_tool_call_output"):
        output = text_parts(item.get("output"), f"{path}.output", _TEXT, drops, images=True)
        call_id = string(item.get("call_id"), f"{path}.call_id")
        messages.append({"role": "tool", "tool_call_id": call_id, "content": output})
    elif kind == "tool_search_output":
        parts = [drops.loads(name) for name in loads] or "[no tool was found]"
        messages.append({"role": "tool", "tool_call_id": _call_id(item, path), "content": parts})
    elif kind == "additional_tools":
        if loads:  # else they were there from the beginning
            messages.append({"role": "developer", "content": [*map(drops.loads, loads)]})
    elif kind == "compaction":
        messages.append({"role": "user", "content": summary_of(item, path)})
    elif kind == "item_reference":
        raise ApiError(_STATELESS, param=path, code="unsupported_parameter")
    else:
        drops.item(kind, path, ("message", "reasoning", "function_call", "function_call_output"))


def _thought(item: Mapping[str, Any], path: str, drops: Drops) -> str:
    """The thought of an item: in plain, or as one word that this server or another wrote."""
    if not item.get("content") and not is_null(item.get("encrypted_content")):
        thought = drops.opened(string(item["encrypted_content"], f"{path}.encrypted_content"))
        if thought:
            return thought
    listed = item.get("content") or item.get("summary") or []
    return _joined(text_parts(listed, f"{path}.content", _TEXT, drops))


def _call_id(item: Mapping[str, Any], path: str) -> str:
    """The id of a call. That of a search which a server ran itself is null."""
    if item.get("call_id") is None and str(item.get("type")).startswith(SEARCH):
        return SEARCH
    return string(item.get("call_id"), f"{path}.call_id")


def _name(item: Mapping[str, Any], path: str, kit: Toolkit) -> str:
    """The function that an item calls. It need not be one of this request."""
    name, namespace = string(item.get("name"), f"{path}.name"), item.get("namespace")
    try:
        return kit.named(name, path, namespace if isinstance(namespace, str) else None)
    except ApiError:
        return name


def _assistant(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The assistant's message that the items of one answer are joined to."""
    if not messages or not messages[-1].get("open"):
        messages.append({"role": "assistant", "content": "", "open": True})
    return messages[-1]


def _joined(parts: str | list[dict[str, Any]]) -> str:
    return parts if isinstance(parts, str) else "".join(part["text"] for part in parts)
