"""What is to be seen in a stream of chunks or of events, in words; and the words that are a shape's own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

SUBJECTS: Mapping[str, str] = {
    "text": "content",
    "call": "arguments in later chunks",
    "call-whole": "arguments in the first chunk",
    "call-and-finish": "a call beside the end",
    "two-calls": "two calls",
    "two-in-one-delta": "two calls in a delta",
    "interleaved": "back to an earlier call",
    "second-first": "an index is left out",
    "empty-arguments": "no text of arguments",
    "no-arguments-key": "first arguments: no key",
    "null-arguments": "first arguments: null",
    "name-each-time": "name again",
    "nulls-each-time": "name null",
    "empty-each-time": "name empty",
    "text-then-call": "content, call",
    "call-then-text": "call, content",
    "stop-with-call": "a call, then stop",
    "role-each-time": "role again",
    "reasoning_content": "reasoning_content alone",
    "reasoning": "reasoning alone",
    "both-reasonings": "reasoning under both names",
    "thoughts-between": "call, reasoning",
    "usage": "usage after the end",
    "usage-running": "usage before the end",
    "cut-call": "a cut call",
    "refusal": "refusal",
    "filtered": "content_filter",
    "empty": "nothing",
    "empty-choices-first": "no choices at first",
    "custom": "custom",
    "arguments-list": "arguments: list",
    "big-integer": "a large integer",
    "float": "1.0",
    "m-text": "text",
    "m-call": "input in later deltas",
    "m-call-whole": "input in one delta",
    "m-two-calls": "two calls",
    "m-no-delta": "no delta",
    "m-empty-delta": "an empty delta alone",
    "m-input-at-start": "input at the start",
    "m-text-then-call": "text, tool_use",
    "m-call-then-text": "tool_use, text",
    "m-thinking": "a signature",
    "m-unsigned": "a thought without a signature",
    "m-thoughts-between": "tool_use, thinking",
    "m-cut-call": "a cut call",
    "m-cut-number": "a cut call",
    "m-refusal": "refusal",
    "m-big-integer": "a large integer",
    "m-empty": "no block",
}
_KINDS = {
    "content": "content",
    "reasoning": "reasoning",
    "reasoning_content": "reasoning",
    "tool_calls": "call",
    "refusal": "refusal",
}


def chat_traits(chunks: Sequence[Mapping[str, Any]]) -> set[str]:
    """Of the chunks of Chat Completions."""
    found: set[str] = set()
    texts: dict[int, str] = {}
    order: list[str] = []
    last, end = -1, None
    for number, chunk in enumerate(chunks):
        if not chunk["choices"]:
            found.add(
                "no choices at first" if not number else f"usage {'after' if end else 'before'} the end"
            )
            continue
        (choice,) = chunk["choices"]
        delta, end = choice["delta"], choice["finish_reason"] or end
        order += [_KINDS[key] for key, value in delta.items() if value and key in _KINDS]
        found |= {"role again"} if number and "role" in delta else set()
        thoughts = [key for key in ("reasoning", "reasoning_content") if key in delta]
        if thoughts:
            found.add("reasoning under both names" if len(thoughts) == 2 else f"{thoughts[0]} alone")
        calls = delta.get("tool_calls") or []
        found |= {"two calls in a delta"} if len(calls) > 1 else set()
        found |= {"a call beside the end"} if calls and choice["finish_reason"] else set()
        for call in calls:
            index, kind = call["index"], "custom" if "custom" in call else "function"
            body = call[kind]
            text = body.get("input" if kind == "custom" else "arguments", "")
            found.add(kind)
            if index not in texts:
                found |= {"an index is left out"} if index != len(texts) else set()
                if kind == "function" and "arguments" not in body:
                    found.add("first arguments: no key")
                found.add(
                    "first arguments: null"
                    if text is None
                    else "arguments in the first chunk"
                    if text
                    else ""
                )
            else:
                found |= {"back to an earlier call"} if index != last else set()
                found |= {"arguments in later chunks"} if text else set()
                if "name" in body:
                    name = body["name"]
                    found.add("name null" if name is None else "name again" if name else "name empty")
            texts[index] = texts.get(index, "") + (text or "")
            last = index
    found |= {end or ""} | ({"two calls"} if len(texts) > 1 else set()) | set(_order(order))
    found |= {"a call, then stop"} if texts and end == "stop" else set()
    found |= {"a cut call"} if end == "length" and any(map(_broken, texts.values())) else set()
    if "custom" not in found:
        found |= {trait for text in texts.values() for trait in _of_arguments(text, end == "length")}
    return found


def message_traits(events: Sequence[Mapping[str, Any]]) -> set[str]:
    """Of the events of Messages."""
    blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    found, calls = set(_order([block["type"] for block in blocks])), []
    for index, block in enumerate(blocks):
        deltas = [
            event["delta"]
            for event in events
            if event["type"] == "content_block_delta" and event["index"] == index
        ]
        if block["type"] == "thinking":
            signed = any(delta["type"] == "signature_delta" for delta in deltas)
            found.add("a signature" if signed else "a thought without a signature")
        if block["type"] == "tool_use":
            pieces = [delta["partial_json"] for delta in deltas]
            text = "".join(pieces)
            calls.append(text)
            found |= {"input at the start"} if block["input"] else set()
            found.add("no delta" if not pieces else "an empty delta alone" if not text else "")
            if text not in ("", "{}"):
                found.add("input in later deltas" if len(pieces) > 1 else "input in one delta")
            found |= {"a large integer"} if "12345678901234567890" in text else set()
    found |= {"two calls"} if len(calls) > 1 else set()
    reason = next(event["delta"]["stop_reason"] for event in events if event["type"] == "message_delta")
    found |= {"a cut call"} if reason == "max_tokens" and any(map(_broken, calls)) else set()
    return found | {reason} | (set() if blocks else {"no block"})


def _order(kinds: Sequence[str]) -> Iterator[str]:
    """The kinds that there are, and which of them comes next after which."""
    runs = [kind for kind, _ in groupby(kinds)]
    yield from runs or ["nothing"]
    yield from (f"{one}, {other}" for one, other in pairwise(runs))


def _of_arguments(text: str, cut: bool) -> Iterator[str]:
    yield "no text of arguments" if not (text or cut) else ""
    yield "1.0" if "1.0" in text else ""
    yield "a large integer" if "12345678901234567890" in text else ""
    if not _broken(text):
        yield f"arguments: {type(json.loads(text)).__name__}"


def _broken(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return True
    return False
