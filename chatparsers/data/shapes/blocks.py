"""Messages of Anthropic's and Gemini's APIs: contents that are lists of typed blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...templates.messages import FAILED
from .talk import Call, Talk, Unreadable, json_text
from .tools import openai_tools
from .turns import content_of

_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking"})


def has_blocks(messages: Any) -> bool:
    """Whether a content of the messages has blocks that only Anthropic's API has."""
    return isinstance(messages, list) and any(
        isinstance(block, Mapping) and block.get("type") in _BLOCKS
        for message in messages
        if isinstance(message, Mapping) and isinstance(message.get("content"), list)
        for block in message["content"]
    )


def read_anthropic(row: dict[str, Any], talk: Talk) -> None:
    """``messages``, ``system`` and ``tools`` of the Messages API."""
    talk.tools = openai_tools(row.pop("tools", None))
    system = content_of(row.pop("system", None))
    if system:
        talk.say("system", system)
    for place, message in enumerate(row.pop("messages") or ()):
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        if message.get("role") == "assistant":
            _answer(talk, blocks)
        elif message.get("role") in ("user", "system"):
            _asked(talk, blocks, str(message["role"]))
        else:
            raise Unreadable(f"messages[{place}]: expected user or assistant, found {message.get('role')!r}")


def _answer(talk: Talk, blocks: Sequence[Any]) -> None:
    texts: list[str] = []
    thoughts: list[str] = []
    signatures: list[Any] = []
    calls: list[Call] = []
    other: list[Any] = []
    seen = ""
    for block in blocks:
        kind = block.get("type") if isinstance(block, Mapping) else None
        if kind == "text":
            if calls:
                talk.lose("text-after-calls")
            texts.append(str(block.get("text") or ""))
        elif kind == "thinking":
            if seen:
                talk.lose("order")
            thoughts.append(str(block.get("thinking") or ""))
            if block.get("signature"):
                talk.lose("signature")
                signatures.append(block["signature"])
        elif kind == "tool_use":
            calls.append((block.get("id"), str(block.get("name")), block.get("input")))
        else:
            if kind == "redacted_thinking":
                talk.lose("signature")
            other.append(block)
        seen = kind if kind in ("text", "tool_use") else seen
    talk.answer("".join(texts), "\n".join(thoughts), calls)
    talk.keep_of_message({"signatures": signatures or None, "blocks": other or None})


def _asked(talk: Talk, blocks: Sequence[Any], role: str) -> None:
    rest = []
    for block in blocks:
        if isinstance(block, Mapping) and block.get("type") == "tool_result":
            content = content_of(block.get("content"))
            if (
                block.get("is_error") is True
            ):  # no template has a place for that: the text says it, as at the gateway
                failed = isinstance(content, list)
                content = (
                    [{"type": "text", "text": FAILED}, *content] if failed else f"{FAILED}{content or ''}"
                )
            talk.result(content, block.get("tool_use_id"))
            left = {key: block[key] for key in ("is_error",) if block.get(key)}
            talk.keep_of_message(left)
        else:
            rest.append(block)
    if rest:
        talk.say(role, content_of(rest))


def read_gemini(row: dict[str, Any], talk: Talk) -> None:
    """``contents``, ``tools`` and ``systemInstruction`` of the Gemini API."""
    talk.tools = openai_tools(row.pop("tools", None))
    system = row.pop("systemInstruction", None) or row.pop("system_instruction", None)
    if system:
        parts = system.get("parts", system) if isinstance(system, Mapping) else system
        talk.say("system", content_of(parts))
    for place, content in enumerate(row.pop("contents") or ()):
        parts = content.get("parts") or []
        role = content.get("role", "user")
        if role == "model":
            _model(talk, parts)
        elif role in ("user", "function", "tool"):
            _given(talk, parts)
        else:
            raise Unreadable(f"contents[{place}]: expected user or model, found {role!r}")


def _model(talk: Talk, parts: Sequence[Mapping[str, Any]]) -> None:
    texts: list[str] = []
    thoughts: list[str] = []
    signatures: list[Any] = []
    other: list[Any] = []
    calls: list[Call] = []
    for part in parts:
        if part.get("thoughtSignature"):
            talk.lose("signature")
            signatures.append(part["thoughtSignature"])
        called = part.get("functionCall")
        if isinstance(called, Mapping):
            calls.append((called.get("id"), str(called.get("name")), called.get("args")))
        elif isinstance(part.get("text"), str):
            if part.get("thought"):
                if texts or calls:
                    talk.lose("order")
                thoughts.append(part["text"])
            else:
                if calls:
                    talk.lose("text-after-calls")
                texts.append(part["text"])
        else:
            other.append(part)
    talk.answer("".join(texts), "\n".join(thoughts), calls)
    talk.keep_of_message({"signatures": signatures or None, "parts": other or None})


def _given(talk: Talk, parts: Sequence[Mapping[str, Any]]) -> None:
    rest = []
    for part in parts:
        answer = part.get("functionResponse")
        if isinstance(answer, Mapping):
            talk.result(json_text(answer.get("response")), answer.get("id"), answer.get("name"))
        else:
            rest.append(part)
    if rest:
        content = content_of(rest)
        talk.say("user", content)
