"""The arguments of calls as they go out: whole characters, numbers that are floats, in every cut of the pieces."""

from __future__ import annotations

import sys
from itertools import combinations
from random import Random
from typing import Any

import pytest

pytest.importorskip("httpx2", reason="the package httpx2 is not installed")

from three_apis import told_of

from chatparsers import get_format
from chatparsers.serving import AnthropicMessages, OpenAIChat, OpenAIResponses, WholeCalls, Writer, sse
from chatparsers.serving.sendable import Sendable
from chatparsers.testing import chunkings

MOST = repr(sys.float_info.max)
WRITTEN = [
    (r'{"a": "\ud800"}', r'{"a": "\ufffd"}'),
    (r'{"a": "\uDC00b\uD83D\uDE00"}', r'{"a": "\ufffdb\uD83D\uDE00"}'),
    (r'{"a": "\ud83d\ud83d\ude00"}', r'{"a": "\ufffd\ud83d\ude00"}'),
    (r'{"a": "\ud83d\n\u00e9"}', r'{"a": "\ufffd\n\u00e9"}'),
    (r'{"a": "\\ud800 \" 1e400"}', r'{"a": "\\ud800 \" 1e400"}'),
    (r'{"\udfff": [1e400,-1E+999]}', rf'{{"\ufffd": [{MOST},-{MOST}]}}'),
    ('{"a": 1e308, "b": -0.0, "c": 1.10, "d": 1e-999}', '{"a": 1e308, "b": -0.0, "c": 1.10, "d": 1e-999}'),
    (f'{{"a": {"9" * 400}}}', f'{{"a": {MOST}}}'),
    (f'{{"a": {"9" * 300}}}', f'{{"a": {"9" * 300}}}'),
    ('{"e": true, "a": false}', '{"e": true, "a": false}'),
    ('{"a": "x", "b": 1e', '{"a": "x", "b": 1e'),
    (r'{"a": "b\ud83d', '{"a": "b'),
    (r'{"a": "b\ud83d\ude', '{"a": "b'),
    (r'{"a": "b\u00', r'{"a": "b\u00'),
    (r'{"a": "\ud83d\u1', r'{"a": "\ufffd\u1'),
]


@pytest.mark.parametrize(("text", "wanted"), WRITTEN)
def test_what_goes_out_is_the_same_in_every_cut(text: str, wanted: str) -> None:
    cuts = [*combinations(range(len(text) + 1), 2)]
    for begin, end in cuts if len(cuts) < 3000 else Random(0).sample(cuts, 500):
        sendable = Sendable()
        pieces = [sendable.take(piece) for piece in (text[:begin], text[begin:end], text[end:])]
        assert "".join(pieces) + sendable.finish() == wanted
    sendable = Sendable()
    assert "".join(map(sendable.take, text)) + sendable.finish() == wanted


@pytest.mark.parametrize("text", [text for text, _ in WRITTEN])
def test_no_more_is_held_than_an_escape_or_a_number(text: str) -> None:
    sendable = Sendable()
    out = ""
    for place, character in enumerate(text):
        out += sendable.take(character)
        if character in ' ,]}"' and text[place - 1] != "\\":
            assert out.endswith(character)


WRITERS: dict[str, type[Writer[Any, Any]]] = {
    "chat": OpenAIChat,
    "responses": OpenAIResponses,
    "messages": AnthropicMessages,
}
CALL = (
    "Half \ud83d.<tool_call>\n"
    '{"name": "f", "arguments": {"a": "\\ud800 \\\\ud800", "b": [1e400, -1e400, 2.50], "c": "\ud83d"}}\n'
    "</tool_call>"
)


@pytest.mark.parametrize("early", [False, True], ids=["whole", "early"])
@pytest.mark.parametrize("api", WRITERS)
def test_no_api_sends_what_clients_cannot_read(api: str, early: bool) -> None:
    turn = get_format("qwen3").bind(tools=[{"name": "f", "parameters": {}}])
    most = sys.float_info.max
    wanted = ("", "Half \ufffd.", [{"a": "\ufffd \\ud800", "b": [most, -most, 2.5], "c": "\ufffd"}])
    for pieces in ([CALL], [*CALL], *chunkings.random_cuts(CALL, 20, most=10, seed=1)):
        writer, stream = WRITERS[api]("m"), turn.stream()
        calls = WholeCalls(stream.call_text, early=early)
        frames = [sse(writer.start(), named=False)]
        for piece in pieces:
            frames.append(writer.frames(calls.take(stream.feed(piece))))
        frames.append(writer.frames(calls.take(stream.finish())))
        frames.append(sse(writer.finish(), named=False))
        for found in (told_of(api, writer.text()), told_of(api, "".join(frames), stream=True)):
            assert found.parts == wanted
