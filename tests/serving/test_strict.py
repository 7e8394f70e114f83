"""The SDKs' own models, in strict mode, take every whole answer and every event that the writers make."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any
from uuid import UUID

import pytest

from chatparsers import get_format
from chatparsers.serving import (
    AnthropicMessages,
    ApiError,
    OpenAIChat,
    OpenAIResponses,
    Usage,
    Writer,
    sse,
)
from chatparsers.serving.logprobs import TokenLogprob, TopLogprob
from chatparsers.serving.tools import responses_tools
from chatparsers.serving.unsupported import Drops

TOOLS = [{"name": "f", "parameters": {}}, {"name": "free", "parameters": {}}]
CALL = '<tool_call>\n{"name": "f", "arguments": %s}\n</tool_call>'
TEXTS = {
    "content": "Hi there.",
    "all": "<think>\nHm.\n</think>\n\nI look.\n" + CALL % '{"a": 1e5, "b": ["snow"]}',
    "calls": CALL % "{}" + "\n" + CALL % "{}",
    "cut off": '<tool_call>\n{"name": "f", "arguments": {"a": "x',
    "nothing": "",
}
KIT = responses_tools([{"type": "custom", "name": "free"}], (), Drops())[0]
# The modules of the SDKs take a second, so they are imported when a test runs.
APIS: dict[str, tuple[Callable[[], Writer[Any, Any]], str, str]] = {
    "chat": (
        lambda: OpenAIChat("m", include_usage=True),
        "openai.types.chat:ChatCompletion",
        "openai.types.chat:ChatCompletionChunk",
    ),
    "responses": (
        lambda: OpenAIResponses("m", toolkit=KIT),
        "openai.types.responses:Response",
        "openai.types.responses:ResponseStreamEvent",
    ),
    "messages": (
        lambda: AnthropicMessages("m"),
        "anthropic.types:Message",
        "anthropic.types:RawMessageStreamEvent",
    ),
}


@cache
def adapter(model: str) -> Any:
    """Made once for all tests: it has the types of all events."""
    module, _, name = model.partition(":")
    sdk = pytest.importorskip(module, reason=f"the package {module.partition('.')[0]} is not installed")
    return pytest.importorskip("pydantic").TypeAdapter(getattr(sdk, name))


def takes(model: str, found: Iterable[Any]) -> None:
    for one in found:
        adapter(model).validate_json(json.dumps(one), strict=True)


@pytest.mark.parametrize("reason", ["stop", "length"])
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("api", APIS)
def test_strict_models_take_all(api: str, text: str, reason: Any) -> None:
    make, whole, event = APIS[api]
    writer = make()
    stream = get_format("qwen3").bind(tools=TOOLS).stream()
    found = [*writer.start(5)]
    for character in TEXTS[text]:
        for one in stream.feed(character):
            found += writer.event(one)
    for one in stream.finish(reason):
        found += writer.event(one)
    found += writer.finish(reason, Usage.of(stream.message, 5, completion=9, cached=2))
    takes(event, found)
    takes(whole, [json.loads(writer.text())])


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_strict_models_take_log_probabilities_and_ids(api: str) -> None:
    _, whole, event = APIS[api]
    writer = APIS[api][0]()
    writer.logprobs, writer.prompt_token_ids, writer.token_ids = {}, [1, 2], []
    stream = get_format("qwen3").bind(tools=TOOLS).stream()
    top: TopLogprob = {"token": "☃", "logprob": -2.5, "bytes": [226, 152, 131]}
    text = TEXTS["all"]
    found, done = [*writer.start(5)], 0
    for place in range(len(text) + 1):
        events = stream.feed(text[place]) if place < len(text) else stream.finish("stop")
        chunks = [chunk for one in events for chunk in writer.event(one)]
        for kind in stream.token_regions(done, starts=range(min(place + 1, len(text)))):
            one: TokenLogprob = {**top, "token": text[done], "top_logprobs": [top]}
            chunks = writer.tokens(kind, [one], chunks)
            done += 1
        if chunks:
            writer.ids([place], chunks)
        found += chunks
    assert done == len(text)
    found += writer.finish("stop", Usage.of(stream.message, 5, completion=9, limit=9))
    takes(event, found)
    takes(whole, [json.loads(writer.text())])
    answer: Any = writer.answer
    assert answer["prompt_token_ids"] == [1, 2] and answer["token_ids" if api == "responses" else "choices"]
    several = [OpenAIChat("m", id="a", index=index) for index in range(2)]
    for one_of in several:
        takes(APIS["chat"][2], [*one_of.start(), *one_of.finish("stop"), one_of.used(Usage(3, 4))])
    takes(APIS["chat"][1], [OpenAIChat.together(several, Usage(3, 4))])


_LIKE_OURS = '{"here":"text"} "sequence_number":2'
"""What frames have where the text of a piece goes, and their number."""


@pytest.mark.parametrize("make", [OpenAIChat, OpenAIResponses, AnthropicMessages])
@pytest.mark.parametrize(
    "text", [*TEXTS.values(), TEXTS["all"].replace('"f"', '"free"'), "☃ \ud83d and more", _LIKE_OURS]
)
def test_frames_are_those_of_the_chunks(
    text: str, make: type[Writer[Any, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What all chunks share is written once, and nothing is different by it."""
    monkeypatch.setattr("chatparsers.serving.items.uuid4", lambda: UUID(int=1))
    kit = {} if make is AnthropicMessages else {"toolkit": KIT}
    one, other = (make(_LIKE_OURS, id=_LIKE_OURS, created=1, call_id=str, **kit) for _ in range(2))
    stream = get_format("qwen3").bind(tools=TOOLS).stream()
    assert one.start() == other.start()
    for place in range(len(text) + 1):
        events = stream.feed(text[place]) if place < len(text) else stream.finish("stop")
        chunks = [chunk for event in events for chunk in other.event(event)]
        assert one.frames(events) == sse(chunks, named=other.named)
    assert one.finish("stop") == other.finish("stop")
    assert one.answer == other.answer


def test_strict_models_take_freeform_calls_and_failures() -> None:
    make, whole, event = APIS["responses"]
    writer = make()
    stream = get_format("qwen3").bind(tools=TOOLS).stream()
    text = '<tool_call>\n{"name": "free", "arguments": {"input": "a b"}}\n</tool_call>'
    found = [*writer.start(5)]
    for one in (*stream.feed(text), *stream.finish("stop")):
        found += writer.event(one)
    takes(event, [*found, *writer.finish("stop")])
    takes(whole, [writer.answer])
    assert writer.answer["output"][0]["type"] == "custom_tool_call"
    failing = make()
    takes(event, [*failing.start(), *failing.fail(ApiError("x", status=502, code="engine_error"))])


def test_a_frame_is_whole_lines_for_every_client() -> None:
    """Some clients split lines as Python does; and half of a character cannot be written as UTF-8."""
    text = "a\x85b\u2028c\u2029d\ud83d \U0001f600"
    frame = sse([{"type": "x", "text": text}], named=True)
    assert frame.splitlines()[:2] == frame.split("\n")[:2]
    assert json.loads(frame.splitlines()[1][6:])["text"] == "a\x85b\u2028c\u2029d\ufffd \U0001f600"
