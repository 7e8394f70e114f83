"""The three chat APIs as a client of a gateway sees them: a plain request of each, and what it reads in an answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
COUNT = "/v1/messages/count_tokens"
ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
BODIES: dict[str, dict[str, Any]] = {
    "chat": ASK,
    "responses": {"model": "m", "input": "Hi"},
    "messages": {**ASK, "max_tokens": 100},
}
WAYS = [(api, stream) for api in PATHS for stream in (False, True)]


def tools_of(api: str, *functions: dict[str, Any]) -> list[dict[str, Any]]:
    """Functions as the tools of an API."""
    if api == "chat":
        return [{"type": "function", "function": one} for one in functions]
    if api == "responses":
        return [{"type": "function", **one} for one in functions]
    tools = []
    for one in functions:
        known = {key: value for key, value in one.items() if key != "parameters"}
        tools.append({**known, "input_schema": one.get("parameters", {})})
    return tools


def post(url: str, api: str, **more: Any) -> httpx2.Response:
    """The answer of a gateway to the plain request of an API, with more fields."""
    return httpx2.post(url + PATHS[api], json={**BODIES[api], **more}, timeout=60)


@dataclass
class Told:
    """What an answer tells: its parts, each call with its name and its arguments, and the error with which it ends."""

    reasoning: str = ""
    content: str = ""
    calls: list[list[str]] = field(default_factory=list)
    error: dict[str, Any] | None = None
    """With ``message`` and what else the API says."""

    @property
    def parts(self) -> tuple[str, str, list[Any]]:
        """The reasoning, the content, and the arguments of the calls as values."""
        return self.reasoning, self.content, [json.loads(arguments) for _, arguments in self.calls]


def told(api: str, answer: httpx2.Response) -> Told:
    """Reads a whole answer or a stream, which has no frame that its API has not."""
    if answer.status_code != 200:
        return Told(error=_error(api, answer.json()))
    if answer.headers["content-type"].startswith("text/event-stream"):
        return _STREAMS[api]([*events(answer.content.decode())])
    return _whole(api, answer.json())


def told_of(api: str, text: str, *, stream: bool = False) -> Told:
    """Reads the text of a whole answer, or of a stream."""
    return _STREAMS[api]([*events(text)]) if stream else _whole(api, json.loads(text))


def events(text: str) -> Iterator[dict[str, Any]]:
    """The events of a stream. Each is one line of data by the rules of server-sent events."""
    for frame in text.split("\n\n"):
        assert "\r" not in frame
        lines = [line for line in frame.split("\n") if line and not line.startswith(": ")]
        assert all(line.startswith(("event: ", "data: ")) for line in lines), frame
        data = [line[6:] for line in lines if line.startswith("data: ")]
        assert len(data) == (1 if lines else 0), frame
        if data and data != ["[DONE]"]:
            yield json.loads(data[0])


def _error(api: str, body: dict[str, Any]) -> dict[str, Any]:
    """The error in a body, which has the API's own shape."""
    error: dict[str, Any] = body["error"]
    if api == "messages":
        assert (
            set(body) == {"type", "error"} and body["type"] == "error" and set(error) == {"type", "message"}
        )
    else:
        assert set(body) == {"error"} and set(error) == {"message", "type", "param", "code"}
    return error


def _whole(api: str, body: dict[str, Any]) -> Told:
    found = Told()
    if api == "chat":
        message = body["choices"][0]["message"]
        found.reasoning, found.content = message.get("reasoning") or "", message["content"] or ""
        calls = [call["function"] for call in message.get("tool_calls") or ()]
        found.calls = [[call["name"], call["arguments"]] for call in calls]
    elif api == "messages":
        for block in body["content"]:
            found.reasoning += block.get("thinking", "")
            found.content += block.get("text", "")
            if block["type"] == "tool_use":
                found.calls.append([block["name"], json.dumps(block["input"])])
    else:
        for item in body["output"]:
            text = "".join(part["text"] for part in item.get("content") or ())
            if item["type"] == "reasoning":
                found.reasoning += text
            elif item["type"] == "message":
                found.content += text
            else:
                found.calls.append([item["name"], item["arguments"]])
    return found


def _chat(found: list[dict[str, Any]]) -> Told:
    read = Told()
    for event in found:
        if "error" in event:
            assert event is found[-1]
            read.error = _error("chat", event)
            break
        for delta in (choice["delta"] for choice in event["choices"]):
            read.reasoning += delta.get("reasoning") or ""
            read.content += delta.get("content") or ""
            for call in delta.get("tool_calls", ()):
                if call["index"] == len(read.calls):
                    read.calls.append([call["function"]["name"], ""])
                read.calls[call["index"]][1] += call["function"].get("arguments", "")
    return read


def _messages(found: list[dict[str, Any]]) -> Told:
    read = Told()
    for event in found:
        if event["type"] == "error":
            assert event is found[-1]
            read.error = _error("messages", event)
        block, delta = event.get("content_block", {}), event.get("delta", {})
        if block.get("type") == "tool_use":
            read.calls.append([block["name"], ""])
        read.reasoning += delta.get("thinking", "")
        read.content += delta.get("text", "")
        if "partial_json" in delta:
            read.calls[-1][1] += delta["partial_json"]
    return read


def _responses(found: list[dict[str, Any]]) -> Told:
    read = Told()
    for event in found:
        kind = event["type"].removeprefix("response.")
        if kind == "error":
            assert event is found[-1] and found[-2]["type"] == "response.failed"
            read.error = event
        elif kind == "reasoning_text.delta":
            read.reasoning += event["delta"]
        elif kind == "output_text.delta":
            read.content += event["delta"]
        elif kind == "output_item.added" and event["item"]["type"] == "function_call":
            read.calls.append([event["item"]["name"], ""])
        elif kind == "function_call_arguments.delta":
            read.calls[-1][1] += event["delta"]
        elif kind == "completed":
            assert read == _whole("responses", event["response"]), "the last event has all that was streamed"
    return read


_STREAMS = {"chat": _chat, "responses": _responses, "messages": _messages}
