"""Reads requests of Anthropic's Messages API.

If the last message is the assistant's, the model continues it, as the API says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..chat.loading import REFERENCE, REMOVAL
from ..templates import from_json, to_json
from ..templates.messages import FAILED
from ..templates.rewrite.outline import BESIDE_RESULT
from .documents import document_text
from .errors import ApiError
from .fields import boolean, integer, is_null, mapping, sequence, string, whole_request
from .images import ImageLimits
from .known import MESSAGES, common
from .request import Request, response_schema, stops, template_options, text_parts
from .sealed import SHOWN, Seals
from .tools import messages_choice, messages_tools
from .unsupported import ELSEWHERE, Drops

_TEXT = ("text",)
_CUT = "INVALID_JSON"
"""In an object that stands for arguments, the text of those that are no JSON."""
_CHANGES = {"tool_addition": REFERENCE, "tool_removal": REMOVAL}
"""The blocks of a system message that change which tools can be called."""
_BLOCKS = ("text", "thinking", "tool_use", "tool_result")
_UNSUPPORTED = {
    **ELSEWHERE,
    "mcp_servers": "this server calls no other servers: leave mcp_servers out",
    "container": "this server runs no code: leave container out",
}


def read_messages(
    body: object,
    *,
    counting: bool = False,
    drop_unsupported: bool = False,
    images: ImageLimits | None = None,
    seals: Seals | None = None,
) -> Request:
    """The request of a body for ``/v1/messages``. Raises `ApiError` with the path of the wrong field.

    ``counting``: the body is one for ``/v1/messages/count_tokens``, which needs no ``max_tokens``.
    ``drop_unsupported``: images and the like, and tools that a server would run, are left out and not refused.
    ``images``: what images may be in messages (`Request.images`); None: none. ``seals``: what opens thoughts that are
    sealed.

    >>> from chatparsers.serving import read_messages
    >>> request = read_messages({"model": "m", "messages": messages, "max_tokens": 100, "system": "Be short."})
    >>> [message["role"] for message in request.prepare["messages"]]
    ['system', 'user']
    """
    body = whole_request(body)
    drops = Drops(drop_unsupported, images, seals)
    drops.fields(body, _UNSUPPORTED, ("mcp_servers",))
    keeps = _edits(body.get("context_management"), drops)
    messages: list[dict[str, Any]] = []
    added: list[tuple[object, str]] = []
    if not is_null(body.get("system")):
        system = _system(text_parts(body["system"], "system", _TEXT, drops), drops)
        if system:
            messages.append({"role": "system", "content": system})
    given = sequence(body.get("messages"), "messages")
    if not given:
        raise ApiError("expected at least one message", param="messages")
    for index, message in enumerate(given):
        _message(mapping(message, f"messages[{index}]"), f"messages[{index}]", messages, drops, added)
    begun = messages[-1].get("tool_calls") if messages[-1]["role"] == "assistant" else None
    if begun:
        _open(begun[-1]["function"])
    most = integer(body, "max_tokens", 1)
    if most is None and not counting:
        raise ApiError("expected a whole number of at least 1, found nothing", param="max_tokens")
    kit = messages_tools(body.get("tools"), drops, added)
    choice, parallel = messages_choice(body.get("tool_choice"), kit)
    output = mapping(body.get("output_config") or {}, "output_config")
    given_thinking = mapping(body.get("thinking") or {}, "thinking")
    at = "output_config.format" if output.get("format") is not None else "output_format"
    format = output.get("format", body.get("output_format"))
    return Request(
        **common(body, MESSAGES, kit, drops),
        messages=messages,
        early_arguments=_early(body.get("tools")),
        tool_choice=choice,
        parallel_tool_calls=parallel,
        response_format=response_schema(format, at, format),
        **template_options(body, output.get("effort"), "output_config.effort"),
        thinking_tokens=_budget(given_thinking),
        keeps_thoughts=keeps,
        hides_thoughts=given_thinking.get("display") == "omitted",
        continue_final_message=given[-1].get("role") == "assistant",
        stops=stops(body.get("stop_sequences"), "stop_sequences"),
        max_tokens=most,
        include_usage=True,
    )


def _budget(thinking: Mapping[str, Any]) -> int | None:
    """How many tokens thoughts may take."""
    try:
        return integer(thinking, "budget_tokens", 0)
    except ApiError as error:
        raise ApiError(error.message, param="thinking.budget_tokens") from error


def _system(content: str | list[dict[str, Any]], drops: Drops) -> str:
    """The text of the system's blocks, each on lines of its own, without the line of accounting that Claude Code writes
    at the head: it differs in each request, so no engine would find the prompt in its cache."""
    blocks = [content] if isinstance(content, str) else [part["text"] for part in content]
    plain = [_ACCOUNTING.sub("", block) for block in blocks]
    if plain != blocks:
        drops.kinds["line x-anthropic-billing-header"] = None
    return "\n".join(filter(None, plain))


def _edits(given: object, drops: Drops) -> bool:
    """What the server should take out of the history when it gets long: nothing is. To keep all thoughts is no edit;
    returns whether that is asked for."""
    keeps = False
    edits = mapping(given or {}, "context_management").get("edits") or []
    for index, edit in enumerate(sequence(edits, "context_management.edits")):
        edit = mapping(edit, f"context_management.edits[{index}]")
        keeps = keeps or edit.get("keep") == "all"
        if edit.get("keep") != "all":
            drops.kinds[f"context_management {edit.get('type')}"] = None
    return keeps


_ACCOUNTING = re.compile(r"^x-anthropic-billing-header:[^\n]*\n?", re.MULTILINE)


def _early(tools: object) -> bool:
    """Whether a tool asks for its arguments while they come, whole or not."""
    listed = tools if isinstance(tools, list) else []
    return any(isinstance(tool, dict) and tool.get("eager_input_streaming") is True for tool in listed)


def _message(
    message: Mapping[str, Any],
    path: str,
    messages: list[dict[str, Any]],
    drops: Drops,
    added: list[tuple[object, str]],
) -> None:
    """``added``: the tools that messages define, each with its path."""
    role = message.get("role")
    if role not in ("user", "assistant", "system"):
        raise ApiError(f"expected 'user' or 'assistant', found {role!r}", param=f"{path}.role")
    content = message.get("content")
    if isinstance(content, str):
        messages.append({"role": role, "content": content})
        return
    at = f"{path}.content"
    blocks = [
        (mapping(block, f"{at}[{index}]"), f"{at}[{index}]")
        for index, block in enumerate(sequence(content, at, "a string or a list of blocks"))
    ]
    if role == "assistant":
        messages.append(_assistant(blocks, drops))
    else:
        messages += _user(role, blocks, drops, added)


def _user(
    role: str,
    blocks: list[tuple[Mapping[str, Any], str]],
    drops: Drops,
    added: list[tuple[object, str]],
) -> list[dict[str, Any]]:
    """The results of tools, each a message, and then the text and images."""
    results: list[dict[str, Any]] = []
    texts: list[dict[str, Any]] = []
    for block, at in blocks:
        kind = block.get("type")
        if kind == "text":
            texts.append({"type": "text", "text": string(block.get("text"), f"{at}.text")})
        elif kind == "tool_result":
            given = block.get("content")
            content = "" if given is None else text_parts(given, f"{at}.content", _TEXT, drops, images=True)
            if boolean(block, "is_error", False):
                content = _failed(content)
            call = string(block.get("tool_use_id"), f"{at}.tool_use_id")
            results.append({"role": "tool", "tool_call_id": call, "content": content})
        elif str(kind) in _CHANGES:
            texts.append(drops.loads(_changed(block, at, added), _CHANGES[str(kind)]))
        elif (image := drops.image(block, at)) is not None:
            texts.append(image)
        else:
            found = document_text(block, at)
            known = ("text", "tool_result")
            texts += drops.part(kind, at, known) if found is None else [{"type": "text", "text": found}]
    if texts and results:
        return [*results, {"role": role, "content": texts, BESIDE_RESULT: True}]
    return results or [{"role": role, "content": texts}]


def _changed(block: Mapping[str, Any], path: str, added: list[tuple[object, str]]) -> str:
    """The name of the tool that a block adds or takes away. It may define it."""
    tool = mapping(block.get("tool"), f"{path}.tool")
    if tool.get("type") != "tool_definition":
        return string(tool.get("name"), f"{path}.tool.name")
    defined = mapping(tool.get("definition"), f"{path}.tool.definition")
    added.append((defined, f"{path}.tool.definition"))
    return string(defined.get("name"), f"{path}.tool.definition.name")


def _failed(content: str | list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """The result of a call that failed. No template has a place for that, so the text says it."""
    if isinstance(content, str):
        return f"{FAILED}{content}"
    return [{"type": "text", "text": FAILED}, *content]


def _open(function: dict[str, Any]) -> None:
    """Arguments that were cut off, as this API has them: wrapped in an object, as its pages say. The model goes on with
    them."""
    arguments = from_json(function["arguments"])
    if arguments.keys() == {_CUT} and isinstance(arguments[_CUT], str):
        function["arguments"] = arguments[_CUT]


def _thought(block: Mapping[str, Any], path: str, drops: Drops) -> str:
    """The thought of a block. If it was not shown, its signature has it."""
    shown = string(block.get("thinking"), f"{path}.thinking")
    word = block.get("signature")
    return shown if shown or not isinstance(word, str) or word in ("", SHOWN) else drops.opened(word)


def _assistant(blocks: list[tuple[Mapping[str, Any], str]], drops: Drops) -> dict[str, Any]:
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for block, at in blocks:
        kind = block.get("type")
        if kind == "text":
            texts.append(string(block.get("text"), f"{at}.text"))
        elif kind == "thinking":
            thoughts.append(_thought(block, at, drops))
        elif kind == "tool_use":
            function = {
                "name": string(block.get("name"), f"{at}.name"),
                "arguments": to_json(mapping(block.get("input", {}), f"{at}.input")),
            }
            id = string(block.get("id"), f"{at}.id")
            calls.append({"id": id, "type": "function", "function": function})
        elif kind == "redacted_thinking":
            thoughts.append(drops.opened(string(block.get("data"), f"{at}.data")))
        else:
            texts += [part["text"] for part in drops.part(kind, at, _BLOCKS[:3])]
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if any(thoughts):
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message
