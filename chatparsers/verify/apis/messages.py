"""Anthropic's Messages API, as a client asks and reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..answer import Answer, AnswerCall, Finish, count, data_of, objects, text
from ..events import Event

PATH = "/v1/messages"
_FINISH: dict[object, Finish] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "calls",
}
_NOT_OURS = ("messages", "tools", "tool_choice", "parallel_tool_calls", "stop", "response_format", "seed")
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "tool_use"}


def request(body: Mapping[str, Any]) -> dict[str, Any]:
    """A chat-completions request in the shape of this API."""
    asked = {name: value for name, value in body.items() if name not in _NOT_OURS}
    system = [each["content"] for each in body["messages"] if each["role"] == "system"]
    if system:
        asked["system"] = "\n".join(system)
    asked["messages"] = list(_messages(body["messages"]))
    if body.get("tools"):
        asked["tools"] = [_tool(tool["function"]) for tool in body["tools"]]
        choice = body.get("tool_choice", "auto")
        named = isinstance(choice, dict)
        chosen: dict[str, Any] = {"type": "tool" if named else _CHOICES[str(choice)]}
        if named:
            chosen["name"] = choice["function"]["name"]
        if body.get("parallel_tool_calls") is False and choice != "none":
            chosen["disable_parallel_tool_use"] = True
        asked["tool_choice"] = chosen
    stops = body.get("stop")
    if stops:
        asked["stop_sequences"] = [stops] if isinstance(stops, str) else list(stops)
    wanted = body.get("response_format")
    if wanted:
        asked["output_config"] = {
            "format": {"type": "json_schema", "schema": (wanted.get("json_schema") or {}).get("schema", {})}
        }
    return asked


def _messages(messages: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for message in messages:
        role, content = message["role"], message.get("content")
        if role == "system":
            continue
        if role == "tool":
            block = {"type": "tool_result", "tool_use_id": message.get("tool_call_id"), "content": content}
            yield {"role": "user", "content": [block]}
            continue
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) and content else []
        calls = [
            {
                "type": "tool_use",
                "id": call["id"],
                "name": call["function"]["name"],
                "input": data_of(call["function"]["arguments"]),
            }
            for call in message.get("tool_calls") or ()
        ]
        yield {"role": role, "content": content if isinstance(content, list) else [*blocks, *calls]}


def _tool(function: Mapping[str, Any]) -> dict[str, Any]:
    given = {"name": function["name"], "input_schema": function.get("parameters") or {"type": "object"}}
    return {**given, **({"description": function["description"]} if function.get("description") else {})}


def streamed(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body that asks for a stream."""
    return {**body, "stream": True}


def read(data: Mapping[str, Any]) -> Answer:
    """A whole answer."""
    said = Answer(id=text(data.get("id")) or None)
    _usage(said, data.get("usage"))
    _ended(said, data.get("stop_reason"))
    if not isinstance(data.get("content"), list):
        said.fault("no list of content blocks in the answer", dict(data), "answer-shape")
    for block in objects(data.get("content")):
        _begun(said, block)
        if block.get("type") == "tool_use":
            said.calls[-1].arguments = block.get("input")
    return said


def read_events(events: Iterable[Event]) -> Answer:
    """An answer joined from its events, with what breaks their order."""
    said, started, stopped = Answer(), False, False
    kind, index = "", -1  # of the block that is open
    for event in events:
        data = event.data
        if isinstance(data, str):
            said.fault("an event that is no JSON object", data[:200])
            continue
        name = data.get("type")
        if event.name != name:
            said.fault(f"the event {event.name!r} has data of the type {name!r}")
        if name == "error":
            said.fault("an error in the stream", data.get("error"), "error-in-stream")
        elif name == "ping":
            continue
        elif name == "message_start":
            message = data.get("message") or {}
            said.id, started = text(message.get("id")) or None, True
            _usage(said, message.get("usage"))
        elif not started or stopped:
            said.fault(f"{name} before message_start or after message_stop", data)
        elif name == "content_block_start":
            if kind or data.get("index") != index + 1:
                said.fault("a block begins in another one, or not under the next index", data)
            index, block = index + 1, data.get("content_block") or {}
            kind = text(block.get("type"))
            _begun(said, block)
        elif name == "content_block_delta":
            _delta(said, kind, data if data.get("index") == index else {})
        elif name == "content_block_stop":
            if not kind or data.get("index") != index:
                said.fault("a block ends that is not open", data)
            kind = ""
        elif name == "message_delta":
            _ended(said, (data.get("delta") or {}).get("stop_reason"))
            _usage(said, data.get("usage"))
        elif name == "message_stop":
            stopped = True
    if kind:
        said.fault(f"a block of {kind} does not end")
    if not stopped:
        said.fault("the stream ends without message_stop")
    if said.completion is None:
        said.fault("the stream has no usage")
    return said


def _begun(said: Answer, block: Mapping[str, Any]) -> None:
    kind = block.get("type")
    if kind == "text":
        said.content += text(block.get("text"))
    elif kind == "thinking":
        said.reasoning += text(block.get("thinking"))
    elif kind == "tool_use":
        said.calls.append(AnswerCall(block.get("id"), block.get("name")))


def _delta(said: Answer, kind: str, data: Mapping[str, Any]) -> None:
    delta = data.get("delta") or {}
    if delta.get("type") == "signature_delta":
        return
    if not kind or _DELTAS.get(text(delta.get("type"))) != kind:
        said.fault(f"a delta that is not of the open block ({kind or 'none'})", dict(data))
    elif kind == "text":
        said.content += text(delta.get("text"))
    elif kind == "thinking":
        said.reasoning += text(delta.get("thinking"))
    else:
        said.calls[-1].arguments += text(delta.get("partial_json"))


def _usage(said: Answer, usage: object) -> None:
    if isinstance(usage, dict):
        cached = [count(usage.get(f"cache_{each}_input_tokens")) or 0 for each in ("read", "creation")]
        given = count(usage.get("input_tokens"))
        if given is not None:
            said.prompt, said.cached = given + sum(cached), count(usage.get("cache_read_input_tokens"))
        if count(usage.get("output_tokens")) is not None:
            said.completion = count(usage["output_tokens"])


def _ended(said: Answer, reason: object) -> None:
    said.reason = reason
    said.finish = _FINISH.get(reason) if isinstance(reason, str) else None
