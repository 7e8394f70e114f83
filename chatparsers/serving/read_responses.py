"""Reads requests of OpenAI's Responses API.

Its input is a list of items. What one answer of the model became (reasoning, text, calls) are several items in a row;
they are joined to one message of the assistant again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import ApiError
from .request import (
    Request,
    boolean,
    choice_mode,
    integer,
    is_null,
    mapping,
    named_choice,
    refuse,
    response_schema,
    sampling,
    sequence,
    stops,
    string,
    template_options,
    text_parts,
    tools_in,
    whole_request,
)

__all__ = ["read_responses"]

_ROLES = ("system", "developer", "user", "assistant")
_TEXT = ("input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text")
_PAIRS, _KEY, _TEXT_OF_PAIR = 16, 64, 512
_STATELESS = "this server keeps no conversations: send the whole input"
_UNSUPPORTED = {
    "previous_response_id": _STATELESS,
    "conversation": _STATELESS,
    "background": "this server answers at once: leave background out",
    "prompt": "this server keeps no prompts: send instructions and input",
    "top_logprobs": "log probabilities are not given: leave top_logprobs out",
}


def read_responses(body: object) -> Request:
    """The request of a body for ``/v1/responses``. Raises `ApiError` with the path of the wrong field."""
    body = whole_request(body)
    refuse(body, _UNSUPPORTED)
    _metadata(body.get("metadata"))
    messages: list[dict[str, Any]] = []
    instructions = body.get("instructions")
    if not is_null(instructions):
        messages.append({"role": "system", "content": text_parts(instructions, "instructions", _TEXT)})
    given = body.get("input")
    if isinstance(given, str):
        messages.append({"role": "user", "content": given})
    else:
        for index, item in enumerate(sequence(given, "input")):
            _item(mapping(item, f"input[{index}]"), f"input[{index}]", messages)
    if not messages:
        raise ApiError("expected a string or at least one item", param="input")
    for message in messages:
        message.pop("open", None)
    reasoning = mapping(body.get("reasoning") or {}, "reasoning")
    kwargs, thinking = template_options(body, reasoning.get("effort"), "reasoning.effort")
    tools = _tools(body.get("tools"))
    text = mapping(body.get("text") or {}, "text")
    format = text.get("format")
    return Request(
        model=string(body.get("model", ""), "model"),
        messages=messages,
        tools=tools,
        tool_choice=_choice(body.get("tool_choice"), tools),
        parallel_tool_calls=boolean(body, "parallel_tool_calls", True),
        response_format=response_schema(format, "text.format", format),
        thinking=thinking,
        template_kwargs=kwargs,
        stops=stops(body.get("stop"), "stop"),
        max_tokens=integer(body, "max_output_tokens", 1),
        sampling=sampling(body),
        stream=boolean(body, "stream", False),
        include_usage=True,
        body=body,
    )


def _metadata(value: object) -> None:
    """Metadata go back to the client, so they have the API's own bounds."""
    pairs = mapping({} if value is None else value, "metadata")
    if len(pairs) > _PAIRS:
        raise ApiError(f"expected at most {_PAIRS} pairs, found {len(pairs)}", param="metadata")
    for key, text in pairs.items():
        path = f"metadata.{key[:_KEY]}"
        if len(key) > _KEY or len(string(text, path)) > _TEXT_OF_PAIR:
            said = f"expected at most {_KEY} characters for a key and {_TEXT_OF_PAIR} for its text"
            raise ApiError(said, param=path)


def _item(item: Mapping[str, Any], path: str, messages: list[dict[str, Any]]) -> None:
    """Adds an item to the messages."""
    kind = item.get("type", "message" if "role" in item else None)
    if kind == "message":
        role = item.get("role")
        if role not in _ROLES:
            raise ApiError(f"expected one of {', '.join(_ROLES)}, found {role!r}", param=f"{path}.role")
        content = text_parts(item.get("content"), f"{path}.content", _TEXT)
        if role != "assistant":
            messages.append({"role": role, "content": content})
            return
        message = _assistant(messages)
        message["content"] += content if isinstance(content, str) else _joined(content)
    elif kind == "reasoning":
        listed = item.get("content") or item.get("summary") or []
        text = _joined(text_parts(listed, f"{path}.content", _TEXT))
        message = _assistant(messages)
        message["reasoning_content"] = message.get("reasoning_content", "") + text
    elif kind == "function_call":
        arguments = item.get("arguments")
        function = {
            "name": string(item.get("name"), f"{path}.name"),
            "arguments": string("" if arguments is None else arguments, f"{path}.arguments"),
        }
        call = {
            "id": string(item.get("call_id"), f"{path}.call_id"),
            "type": "function",
            "function": function,
        }
        _assistant(messages).setdefault("tool_calls", []).append(call)
    elif kind == "function_call_output":
        output = text_parts(item.get("output"), f"{path}.output", _TEXT)
        call_id = string(item.get("call_id"), f"{path}.call_id")
        messages.append({"role": "tool", "tool_call_id": call_id, "content": output})
    elif kind == "item_reference":
        raise ApiError(_STATELESS, param=path, code="unsupported_parameter")
    else:
        known = "'message', 'reasoning', 'function_call' or 'function_call_output'"
        raise ApiError(f"expected an item of type {known}, found {kind!r}", param=f"{path}.type")


def _assistant(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The assistant's message that the items of one answer are joined to."""
    if not messages or not messages[-1].get("open"):
        messages.append({"role": "assistant", "content": "", "open": True})
    return messages[-1]


def _joined(parts: str | list[dict[str, Any]]) -> str:
    return parts if isinstance(parts, str) else "".join(part["text"] for part in parts)


def _tools(value: object) -> list[dict[str, Any]] | None:
    if is_null(value):
        return None
    tools = []
    for tool, at in tools_in(value, ("function",), "of type 'function'"):
        function: dict[str, Any] = {"name": string(tool.get("name"), f"{at}.name")}
        for name in ("description", "parameters", "strict"):
            if tool.get(name) is not None:
                function[name] = tool[name]
        tools.append({"type": "function", "function": function})
    return tools


def _choice(value: object, tools: list[dict[str, Any]] | None) -> str | dict[str, Any]:
    mode = choice_mode(value, tools)
    if mode is not None:
        return mode
    choice = mapping(value, "tool_choice")
    if choice.get("type") != "function":
        raise ApiError(
            f"expected the type 'function', found {choice.get('type')!r}", param="tool_choice.type"
        )
    return named_choice(choice.get("name"), "tool_choice.name", tools)
