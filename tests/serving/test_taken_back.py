"""What the gateway writes it reads: an answer that a client sends back is the message that the model wrote."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the package starlette is not installed")

from three_apis import BODIES, Told, events, told_of

from chatparsers import Format, Message, Stream, Turn
from chatparsers.answers.idioms import Options
from chatparsers.gateway.account import Account
from chatparsers.gateway.apis import CHAT, MESSAGES, RESPONSES, Api
from chatparsers.gateway.body import read_body
from chatparsers.gateway.settings import Settings
from chatparsers.serving import WholeCalls, sse
from chatparsers.testing import TOOLS, chunkings
from chatparsers.testing.drawn import Drawn
from chatparsers.testing.wild import broken, samples

CALLS = (
    ("get_time", "{}"),
    ("get_weather", '{"city": "\\ud83d Oslo \\\\ud800", "days": 1e400}'),
    (
        "keep",
        '{"text": "a < \\"b\\"\\n", "n": -1e999, "tags": ["x", 1.50, null, "\\u2028"], "at": {"c": {}}}',
    ),
)
"""Calls with what clients cannot read, which drawn answers have beside other ones."""


@pytest.mark.one_in(8)
@pytest.mark.parametrize("api", [CHAT, RESPONSES, MESSAGES], ids=lambda api: api.name)
def test_an_answer_is_taken_back_as_what_it_was(
    format: Format, api: Api, amount: Callable[[int, int, int], int]
) -> None:
    turn, most = format.bind(tools=TOOLS), amount(6, 20, 200)
    drawn = Drawn(format.tree(Options(tools=True)), CALLS, random.Random(format.name))
    texts = [*samples(format), *(drawn.text() for _ in range(most)), *islice(broken(format, most), most)]
    for number, text in enumerate(texts):
        (pieces,) = chunkings.random_cuts(text, 1, most=8, seed=number)
        for framed in (False, True):
            sent, stream = answered(api, turn, pieces, framed)
            reasoning, content, calls = taken_back(api, sent)
            message = stream.message
            where = f"{text!r} of {format.name}, {'streamed' if framed else 'whole'}: {sent}"
            for call in message.tool_calls:
                if not call.complete:  # it is text, or in a stream of chat a call whose arguments are no JSON
                    content = content.replace(_plain(stream.call_text(call.index)), "", 1)
            if not framed or api is not CHAT:
                assert calls == wanted(message), where
            assert all(call in calls for call in wanted(message)), where
            assert (reasoning, content) == (_plain(message.reasoning), _plain(message.content)), where


def answered(api: Api, turn: Turn, pieces: list[Any], framed: bool) -> tuple[list[dict[str, Any]], Stream]:
    """The answer as a client sends it back, and the stream that read it."""
    writer = api.writer("m", turn, api.read(BODIES[api.name]), 0, None)
    stream = turn.stream()
    calls = WholeCalls(stream.call_text, early=framed and writer.early_calls, cut=writer.cut_calls)
    frames = sse(writer.start(), named=writer.named)
    for piece in pieces:
        frames += writer.frames(calls.take(stream.feed(piece)))
    frames += writer.frames(calls.take(stream.finish())) + sse(writer.finish(), named=writer.named)
    if framed and api is not RESPONSES:
        return [_joined(api, told_of(api.name, frames, stream=True))], stream
    answer = [*events(frames)][-1]["response"] if framed else json.loads(writer.text())
    if api is RESPONSES:
        return answer["output"], stream
    if api is CHAT:
        return [answer["choices"][0]["message"]], stream
    return [{"role": "assistant", "content": answer["content"]}], stream


def _joined(api: Api, told: Told) -> dict[str, Any]:
    """The message that a client makes of a stream."""
    calls = [(f"call_{place}", *call) for place, call in enumerate(told.calls)]
    if api is CHAT:
        shown = [
            {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
            for id, name, arguments in calls
        ]
        return {
            "role": "assistant",
            "content": told.content,
            "reasoning": told.reasoning,
            "tool_calls": shown,
        }
    blocks: list[dict[str, Any]] = []
    if told.reasoning:
        blocks.append({"type": "thinking", "thinking": told.reasoning, "signature": ""})
    if told.content:
        blocks.append({"type": "text", "text": told.content})
    for id, name, arguments in calls:
        blocks.append({"type": "tool_use", "id": id, "name": name, "input": json.loads(arguments or "{}")})
    return {"role": "assistant", "content": blocks}


def taken_back(api: Api, sent: list[dict[str, Any]]) -> tuple[str, str, list[tuple[str, Any]]]:
    """The reasoning, the content and the calls that the API's reader finds in a history with the answer. Nothing in it
    had to be replaced."""
    field = "input" if api is RESPONSES else "messages"
    body = {**BODIES[api.name], field: [{"role": "user", "content": "Hi"}, *sent]}
    raw, account = json.dumps(body, allow_nan=False).encode(), Account(Settings())
    found = api.read(read_body(raw, account)).messages[1:]
    assert account.replaced == 0 and len(found) <= 1
    message = found[0] if found else {}
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return (
        message.get("reasoning_content", ""),
        message.get("content", ""),
        [(call["name"], json.loads(call["arguments"] or "{}")) for call in calls],
    )


def wanted(message: Message) -> list[tuple[str, Any]]:
    """The calls that are whole."""
    calls = [call for call in message.tool_calls if call.complete]
    return [(_plain(call.name), _plain(json.loads(call.arguments or "{}"))) for call in calls]


def _plain(value: Any) -> Any:
    """The value with U+FFFD for half of a character, and with the largest float for a number beyond it."""
    if isinstance(value, str):
        return "".join("\ufffd" if "\ud800" <= character <= "\udfff" else character for character in value)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        most = sys.float_info.max
        return min(max(value, -most), most) if abs(value) > most else value
    if isinstance(value, dict):
        return {_plain(key): _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value
