"""Reads requests of OpenAI's chat-completions API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .engine_fields import asked_format, engine_fields, thinking_budget
from .errors import ApiError
from .fields import boolean, integer, is_null, mapping, sequence, string, whole_request
from .freeform import arguments_of
from .images import ImageLimits
from .known import CHAT, common
from .logprobs import asked_chat
from .request import Request, response_schema, stops, template_options, text_parts
from .sealed import Seals
from .tools import chat_choice, chat_tools
from .unsupported import Drops

_ROLES = ("system", "developer", "user", "assistant", "tool")
_DROPPED = ("web_search_options", "prediction")
_TEXT = ("text", "refusal")
_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_text", "cot_summary")
"""Where clients send a thought back: the last two are VS Code's, which has read it under one of the first."""
_UNSUPPORTED = {
    "audio": "this server writes text alone: leave audio out",
    "web_search_options": "this server searches nothing: leave web_search_options out",
    "prediction": "this server makes no use of a prediction: leave it out",
    "functions": "functions are the old form of tools: send tools",
    "function_call": "function_call is the old form of tool_choice: send tool_choice",
}


def read_chat(
    body: object,
    *,
    drop_unsupported: bool = False,
    images: ImageLimits | None = None,
    seals: Seals | None = None,
) -> Request:
    """The request of a body for ``/v1/chat/completions``. Raises `ApiError` with the path of the wrong field.

    ``drop_unsupported``: images and the like, and tools that a server would run, are left out and not refused.
    ``images``: what images may be in messages (`Request.images`); None: none. ``seals``: this API has no sealed
    thoughts.

    Of other servers' fields it reads ``chat_template_kwargs``, ``enable_thinking``, ``thinking``,
    ``continue_final_message``, ``add_generation_prompt``, ``return_token_ids``, ``top_k``, ``min_p``,
    ``repetition_penalty``, those that ask for JSON (``guided_json``, ``structured_outputs``, ``json_schema``), budgets
    for thoughts (``thinking_budget_tokens``, ``thinking_token_budget``), and `Request.engine_fields`.

    >>> from chatparsers.serving import read_chat
    >>> request = read_chat({"model": "m", "messages": messages, "max_tokens": 100})
    >>> request.max_tokens
    100
    >>> chat.prepare(**request.prepare).prompt[-22:]
    '<|im_start|>assistant\\n'
    """
    body = whole_request(body)
    drops = Drops(drop_unsupported, images)
    drops.fields(body, _UNSUPPORTED, _DROPPED)
    modes = body.get("modalities")
    if modes is not None and sequence(modes, "modalities") != ["text"]:
        raise ApiError("this server writes text alone: leave modalities out", param="modalities")
    drops.verbosity(body.get("verbosity"), "verbosity")
    given = sequence(body.get("messages"), "messages")
    continued = boolean(body, "continue_final_message", False)
    messages = [
        _message(
            mapping(message, f"messages[{index}]"),
            f"messages[{index}]",
            drops,
            begun=continued and index + 1 == len(given),
        )
        for index, message in enumerate(given)
    ]
    if not messages:
        raise ApiError("expected at least one message", param="messages")
    kit = chat_tools(body.get("tools"), drops)
    choice, kit = chat_choice(body.get("tool_choice"), kit)
    format = asked_format(body)
    schema = format.get("json_schema") if isinstance(format, Mapping) else None
    stream_options = body.get("stream_options") or {}
    most = integer(body, "max_completion_tokens", 1)
    return Request(
        **common(body, CHAT, kit, drops),
        messages=messages,
        tool_choice=choice,
        engine_fields=engine_fields(body),
        thinking_tokens=thinking_budget(body),
        parallel_tool_calls=boolean(body, "parallel_tool_calls", True),
        response_format=response_schema(
            format,
            "response_format" if format is body.get("response_format") else "structured_outputs",
            schema,
        ),
        **template_options(body, body.get("reasoning_effort"), "reasoning_effort"),
        continue_final_message=continued,
        add_generation_prompt=boolean(body, "add_generation_prompt", True),
        stops=stops(body.get("stop"), "stop"),
        max_tokens=most if most is not None else integer(body, "max_tokens", 1),
        include_usage=boolean(mapping(stream_options, "stream_options"), "include_usage", False),
        choices=integer(body, "n", 1) or 1,
        logprobs=asked_chat(body),
        regions=boolean(body, "return_regions", False),
        token_ids=boolean(body, "return_token_ids", False),
    )


def _message(message: Mapping[str, Any], path: str, drops: Drops, *, begun: bool) -> dict[str, Any]:
    """``begun``: the model is to go on with it, so its last call may be cut off."""
    role = message.get("role")
    if role not in _ROLES:
        known = ", ".join(_ROLES)
        raise ApiError(f"expected one of {known}, found {role!r}", param=f"{path}.role")
    content = message.get("content")
    calls = message.get("tool_calls")
    if message.get("function_call"):
        said = "function_call is the old form of tool_calls: send tool_calls"
        raise ApiError(said, param=f"{path}.function_call")
    if content is None and role == "assistant":
        content = message.get("refusal")
    if content is None and role != "assistant":
        raise ApiError("expected a string or a list of parts, found nothing", param=f"{path}.content")
    found: dict[str, Any] = {"role": role, "content": ""}
    if content is not None:
        found["content"] = text_parts(content, f"{path}.content", _TEXT, drops, images=role != "assistant")
    if isinstance(message.get("name"), str):
        found["name"] = message["name"]
    if role == "tool" and message.get("tool_call_id") is not None:
        found["tool_call_id"] = string(message["tool_call_id"], f"{path}.tool_call_id")
    if role == "assistant":
        for name in _THOUGHTS:
            if isinstance(message.get(name), str) and message[name]:
                found["reasoning_content"] = message[name]
                break
        if not is_null(calls):
            listed = sequence(calls, f"{path}.tool_calls")
            found["tool_calls"] = [
                _call(call, f"{path}.tool_calls[{index}]", drops, begun=begun and index + 1 == len(listed))
                for index, call in enumerate(listed)
            ]
    return found


def _call(call: object, path: str, drops: Drops, *, begun: bool) -> dict[str, Any]:
    call = mapping(call, path)
    if call.get("type") == "custom":
        custom = mapping(call.get("custom"), f"{path}.custom")
        text = string(custom.get("input", ""), f"{path}.custom.input")
        call = {
            **call,
            "function": {"name": custom.get("name"), "arguments": arguments_of(text, begun=begun)},
        }
    function = mapping(call.get("function"), f"{path}.function")
    arguments = function.get("arguments")
    text = string("" if arguments is None else arguments, f"{path}.function.arguments")
    found: dict[str, Any] = {
        "type": "function",
        "function": {
            "name": string(function.get("name"), f"{path}.function.name"),
            "arguments": text if begun else drops.arguments(text),
        },
    }
    if call.get("id") is not None:
        found["id"] = string(call["id"], f"{path}.id")
    return found
