"""OpenAI's chat completions, as a client asks and reads them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..answer import Answer, AnswerCall, Finish, cached_of, count, objects, text
from ..events import DONE, Event

PATH = "/v1/chat/completions"
_FINISH: dict[object, Finish] = {"stop": "stop", "length": "length", "tool_calls": "calls"}


def request(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body as it is."""
    return dict(body)


def streamed(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body that asks for a stream, with the usage at its end."""
    return {**body, "stream": True, "stream_options": {"include_usage": True}}


def read(data: Mapping[str, Any]) -> Answer:
    """A whole answer."""
    said = Answer()
    _head(said, data)
    choice = next(objects(data.get("choices")), None)
    if choice is None or not isinstance(choice.get("message"), dict):
        said.fault("no message in the answer", dict(data), "answer-shape")
        return said
    message = choice["message"]
    said.content, said.reasoning = text(message.get("content")), _reasoning(message)
    _ended(said, choice.get("finish_reason"))
    for call in objects(message.get("tool_calls")):
        function = call.get("function") or {}
        said.calls.append(AnswerCall(call.get("id"), function.get("name"), function.get("arguments", "")))
    return said


def read_events(events: Iterable[Event]) -> Answer:
    """An answer joined from its deltas, with what no client can read."""
    said, calls = Answer(), dict[object, AnswerCall]()
    ends, done = 0, False
    for event in events:
        if event.data == DONE:
            done = True
            continue
        if isinstance(event.data, str):
            said.fault("an event that is no JSON object", event.data[:200])
            continue
        if done:
            said.fault("an event after [DONE]", event.data)
        if event.data.get("error"):
            said.fault("an error in the stream", event.data["error"], "error-in-stream")
            continue
        _head(said, event.data)
        for choice in objects(event.data.get("choices")):
            delta = choice.get("delta") or {}
            if ends and any(
                delta.get(part) for part in ("content", "reasoning_content", "reasoning", "tool_calls")
            ):
                said.fault("a delta after the finish reason", delta)
            said.content += text(delta.get("content"))
            said.reasoning += _reasoning(delta)
            for call in objects(delta.get("tool_calls")):
                _delta(said, calls, call)
            if choice.get("finish_reason"):
                ends += 1
                _ended(said, choice["finish_reason"])
    said.calls = list(calls.values())
    if ends != 1:
        said.fault(f"{ends} finish reasons in one stream")
    if not done:
        said.fault("the stream ends without [DONE]")
    if said.completion is None:
        said.fault("the stream was asked for its usage, and has none")
    return said


def _delta(said: Answer, calls: dict[object, AnswerCall], delta: Mapping[str, Any]) -> None:
    index, function = delta.get("index"), delta.get("function") or {}
    if index is None:
        said.fault("a delta of a call without its index", dict(delta))
        index = len(calls) if function.get("name") else max(len(calls) - 1, 0)
    known = calls.get(index)
    if known is None:
        known = calls[index] = AnswerCall(delta.get("id"), function.get("name"))
        if not delta.get("id") or not function.get("name"):
            said.fault("the first delta of a call has no id or no name", dict(delta))
    elif function.get("name"):
        said.fault("the name of a call comes twice", dict(delta))
    piece = function.get("arguments")
    if isinstance(piece, str) and isinstance(known.arguments, str):
        known.arguments += piece
    elif piece is not None:
        known.arguments = piece


def _head(said: Answer, data: Mapping[str, Any]) -> None:
    said.id = said.id or (text(data.get("id")) or None)
    usage = data.get("usage")
    if isinstance(usage, dict):
        said.prompt, said.completion = (
            count(usage.get("prompt_tokens")),
            count(usage.get("completion_tokens")),
        )
        said.cached = cached_of(usage.get("prompt_tokens_details"))


def _ended(said: Answer, reason: object) -> None:
    said.reason = reason
    said.finish = _FINISH.get(reason) if isinstance(reason, str) else None


def _reasoning(message: Mapping[str, Any]) -> str:
    return text(message.get("reasoning_content")) or text(message.get("reasoning"))
