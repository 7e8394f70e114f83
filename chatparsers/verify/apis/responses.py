"""OpenAI's Responses API, as a client asks and reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..answer import Answer, AnswerCall, cached_of, count, objects, text
from ..events import DONE, Event

PATH = "/v1/responses"
_NOT_OURS = ("messages", "tools", "tool_choice", "stop", "response_format", "max_tokens", "seed")
_LAST = ("response.completed", "response.incomplete", "response.failed")
_PARTS = {"user": "input_text", "system": "input_text", "assistant": "output_text"}


def request(body: Mapping[str, Any]) -> dict[str, Any]:
    """A chat-completions request in the shape of this API, which has no stops."""
    asked = {name: value for name, value in body.items() if name not in _NOT_OURS}
    asked["input"] = list(_items(body["messages"]))
    asked["store"] = False
    if body.get("max_tokens"):
        asked["max_output_tokens"] = max(body["max_tokens"], 16)  # the least that this API takes
    if body.get("tools"):
        asked["tools"] = [{"type": "function", **tool["function"]} for tool in body["tools"]]
        choice = body.get("tool_choice", "auto")
        named = isinstance(choice, dict)
        asked["tool_choice"] = {"type": "function", "name": choice["function"]["name"]} if named else choice
    wanted = body.get("response_format")
    if wanted:
        asked["text"] = {"format": {"type": wanted["type"], **(wanted.get("json_schema") or {})}}
    return asked


def _items(messages: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in messages:
        role, content = message["role"], message.get("content")
        if role == "tool":
            yield {"type": "function_call_output", "call_id": message.get("tool_call_id"), "output": content}
            continue
        parts = content if isinstance(content, list) else [{"text": content}] if content else []
        if parts:
            yield {
                "type": "message",
                "role": role,
                "content": [{"type": _PARTS[role], "text": each["text"]} for each in parts],
            }
        for call in message.get("tool_calls") or ():
            yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def streamed(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body that asks for a stream."""
    return {**body, "stream": True}


def read(data: Mapping[str, Any]) -> Answer:
    """A whole answer."""
    said = Answer(id=text(data.get("id")) or None, reason=data.get("status"))
    usage = data.get("usage")
    if isinstance(usage, dict):
        said.prompt, said.completion = count(usage.get("input_tokens")), count(usage.get("output_tokens"))
        said.cached = cached_of(usage.get("input_tokens_details"))
    if not isinstance(data.get("output"), list):
        said.fault("no list of output items in the answer", dict(data), "answer-shape")
    for item in objects(data.get("output")):
        if item.get("type") == "message":
            said.content += "".join(text(part.get("text")) for part in objects(item.get("content")))
        elif item.get("type") == "reasoning":
            parts = [*objects(item.get("content"))] or [*objects(item.get("summary"))]
            said.reasoning += "".join(text(part.get("text")) for part in parts)
        elif item.get("type") == "function_call":
            said.calls.append(AnswerCall(item.get("call_id"), item.get("name"), item.get("arguments", "")))
    if data.get("status") == "incomplete":
        said.finish = "length"
    elif data.get("status") == "completed":
        said.finish = "calls" if said.calls else "stop"
    return said


def read_events(events: Iterable[Event]) -> Answer:
    """The answer of the last event; what the deltas before it add up to must be the same."""
    joined, last, before = Answer(), None, -1
    faults = Answer()
    calls: dict[object, AnswerCall] = {}
    for event in events:
        data = event.data
        if data == DONE:
            continue
        if isinstance(data, str):
            faults.fault("an event that is no JSON object", data[:200])
            continue
        name, number = text(data.get("type")), data.get("sequence_number")
        if event.name and event.name != name:
            faults.fault(f"the event {event.name!r} has data of the type {name!r}")
        if last is not None:
            faults.fault(f"{name} after the last event", data)
        if name == "error":
            faults.fault("an error in the stream", data, "error-in-stream")
            continue
        if type(number) is not int or number <= before:
            faults.fault("the sequence numbers do not rise", {"before": before, "now": number})
        before = number if type(number) is int else before
        _joined(joined, calls, name, data)
        last = data.get("response") if name in _LAST else last
    if not isinstance(last, dict):
        faults.fault("the stream ends without response.completed")
        joined.calls, joined.faults = list(calls.values()), faults.faults
        return joined
    said = read(last)
    joined.calls, joined.finish = list(calls.values()), said.finish
    if joined.plain() != said.plain():
        faults.fault("the deltas are not the last event's answer", [joined.plain(), said.plain()])
    said.faults += faults.faults
    return said


def _joined(said: Answer, calls: dict[object, AnswerCall], name: str, data: Mapping[str, Any]) -> None:
    if name == "response.output_text.delta":
        said.content += text(data.get("delta"))
    elif name in ("response.reasoning_text.delta", "response.reasoning_summary_text.delta"):
        said.reasoning += text(data.get("delta"))
    elif name == "response.output_item.added":
        item = data.get("item") or {}
        if item.get("type") == "function_call":
            calls[item.get("id")] = AnswerCall(item.get("call_id"), item.get("name"))
    elif name == "response.function_call_arguments.delta":
        call = calls.get(data.get("item_id"))
        if call is None:
            said.fault("arguments of a call that was not added", dict(data))
        else:
            call.arguments += text(data.get("delta"))
