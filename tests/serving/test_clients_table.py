"""docs/tables/clients.md: the page is that of its data, the gateway sends what its last column says, and the clients
that are installed hold what their columns say."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from threading import Thread
from typing import Any

import _clients as TABLE
import pytest

import chatparsers
from chatparsers.serving import AnthropicMessages, OpenAIChat, Usage, WholeCalls, Writer, read_chat

from .shape_traits import SUBJECTS, chat_traits, message_traits

TABLES = Path(__file__).parents[2] / "docs" / "tables"
sys.path[:0] = [str(TABLES / "clients")]
DATA: dict[str, Any] = json.loads(TABLE.DATA.read_text("utf-8"))

PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in ("weather", "ping")
]
WEATHER = '<tool_call>\n{"name": "weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
PING = '<tool_call>\n{"name": "ping", "arguments": {}}\n</tool_call>'
ANSWERS = {
    "text": "Hello",
    "thought": "<think>\nHm.\n</think>\n\nHello",
    "calls": f"<think>\nHm.\n</think>\n\nI look.\n{WEATHER}\n{PING}",
    "cut": f"I look.\n{WEATHER[:-18]}",
    "nothing": "",
}


def frames(writer: Writer[Any, Any], text: str, reason: Any) -> list[dict[str, Any]]:
    """What the gateway's writer sends of an answer, read three characters at a time."""
    stream = chatparsers.get_format("qwen3").bind(tools=TOOLS).stream()
    sent: list[dict[str, Any]] = list(writer.start(7))
    for at in range(0, len(text), 3):
        for event in stream.feed(text[at : at + 3]):
            sent += writer.event(event)
    for event in stream.finish(reason):
        sent += writer.event(event)
    return [*sent, *writer.finish(reason, Usage.of(stream.message, 7, completion=9))]


def test_the_page_is_written_from_the_data() -> None:
    assert TABLE.main(["--check"]) == 0, "run python docs/tables/_clients.py"


@pytest.mark.parametrize("name", ANSWERS)
def test_chat_chunks_are_of_the_shapes_that_are_sent(name: str) -> None:
    reason = "length" if name == "cut" else "stop"
    chunks = frames(OpenAIChat("m", include_usage=True), ANSWERS[name], reason)
    *shown, usage = chunks
    assert usage["choices"] == [] and usage["usage"]["total_tokens"]
    assert all(chunk["choices"] and not chunk.get("usage") for chunk in shown)
    deltas = [chunk["choices"][0]["delta"] for chunk in shown]
    assert ["role" in delta for delta in deltas] == [True] + [False] * (len(deltas) - 1)
    ends = [chunk["choices"][0]["finish_reason"] for chunk in shown]
    assert ends[:-1] == [None] * (len(ends) - 1) and deltas[-1] == {}
    assert ends[-1] == {"cut": "length", "calls": "tool_calls"}.get(name, "stop")
    assert all(delta.get("reasoning") == delta.get("reasoning_content") for delta in deltas)
    assert not any("refusal" in delta for delta in deltas)
    indexes: list[int] = []
    for delta in deltas:
        for call in delta.get("tool_calls", []):
            assert len(delta["tool_calls"]) == 1
            if (
                not indexes or call["index"] != indexes[-1]
            ):  # a call begins: its id, its name and an empty text
                assert call["id"] and call["function"]["name"] and call["function"]["arguments"] == ""
            else:
                assert set(call) == {"index", "function"} and set(call["function"]) == {"arguments"}
            indexes.append(call["index"])
    assert indexes == sorted(indexes) and set(indexes) == set(range(len(set(indexes))))
    if name == "calls":
        parts = [call for delta in deltas for call in delta.get("tool_calls", []) if call["index"] == 1]
        assert "".join(call["function"]["arguments"] for call in parts) == "{}"


@pytest.mark.parametrize("name", ANSWERS)
def test_message_events_are_of_the_shapes_that_are_sent(name: str) -> None:
    events = frames(AnthropicMessages("m"), ANSWERS[name], "length" if name == "cut" else "stop")
    begun = [event["content_block"] for event in events if event["type"] == "content_block_start"]
    assert all(block["input"] == {} for block in begun if block["type"] == "tool_use")
    for index, block in enumerate(begun):
        deltas = [
            event["delta"]
            for event in events
            if event["type"] == "content_block_delta" and event["index"] == index
        ]
        if block["type"] == "tool_use":
            text = "".join(delta["partial_json"] for delta in deltas)
            assert text and (name == "cut" or isinstance(json.loads(text), dict))
        if block["type"] == "thinking":
            assert {delta["type"] for delta in deltas[:-1]} == {"thinking_delta"}
            assert deltas[-1]["type"] == "signature_delta" and deltas[-1]["signature"]
    order = [event["index"] for event in events if "index" in event]
    assert order == sorted(order), "blocks are not interleaved"


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"calls": [["f", '{"a": 1}']]}, ""),
        ({"calls": []}, "calls: none"),
        ({"calls": [["f", '{"a": 2}']]}, 'calls: `f {"a": 2}`'),
        ({"calls": [["f", '{"a":1}']], "finish": "stop"}, "ends with stop"),
        ({"raises": "IndexError: list index out of range"}, "raises IndexError"),
    ],
)
def test_what_a_client_held_is_judged(held: dict[str, Any], said: str) -> None:
    want = {"content": "", "reasoning": "", "calls": [["f", '{"a": 1}']], "finish": "tool_calls"}
    whole = {"content": "", "reasoning": "", "finish": "tool-calls", **held}
    assert TABLE.judged(want, whole) == said


# what of each shape is its own: the last column says whether the gateway sends it

CUSTOM = {"type": "custom", "custom": {"name": "run_sql"}}
NUMBERS = (
    '<tool_call>\n{"name": "weather", "arguments": {"id": 12345678901234567890, "x": 1.0}}\n</tool_call>'
)
MORE = {
    "call first": f"{WEATHER}\nDone.",
    "a thought between": f"<think>\nHm.\n</think>\n\n{WEATHER}\n<think>\nSo.\n</think>\n\n{PING}",
    "numbers": NUMBERS,
    "a list": '<tool_call>\n{"name": "weather", "arguments": [1, 2]}\n</tool_call>',
    "no arguments": '<tool_call>\n{"name": "ping"}\n</tool_call>',
    "custom": '<tool_call>\n{"name": "run_sql", "arguments": {"input": "SELECT 1"}}\n</tool_call>',
    "cut before": '<tool_call>\n{"name": "weather", "arguments": ',
    "cut number": NUMBERS[: NUMBERS.index("5678")],
}


def sent(api: str, early: bool = False) -> set[str]:
    """All traits of what the gateway sends. ``early``: to a request with ``eager_input_streaming``."""
    given = [*TOOLS, CUSTOM] if api == "chat" else TOOLS
    request = read_chat({"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": given})
    found: set[str] = set()
    for name, text in {**ANSWERS, **MORE}.items():
        stream = chatparsers.get_format("qwen3").bind(tools=request.tools).stream()
        writer: Writer[Any, Any] = AnthropicMessages("m")
        if api == "chat":
            writer = OpenAIChat("m", include_usage=True, toolkit=request.toolkit)
        calls = WholeCalls(stream.call_text, early=early or writer.early_calls, cut=writer.cut_calls)
        frames: list[dict[str, Any]] = list(writer.start(7))
        for at in range(0, len(text), 3):
            for event in calls.take(stream.feed(text[at : at + 3])):
                frames += writer.event(event)
        reason: Any = "length" if name.startswith("cut") else "stop"
        for event in calls.take(stream.finish(reason), reason == "length"):
            frames += writer.event(event)
        frames += writer.finish(reason, Usage.of(stream.message, 7, completion=9))
        found |= (chat_traits if api == "chat" else message_traits)(frames)
    return found


@pytest.mark.parametrize("api", TABLE.APIS)
def test_the_last_column_says_what_is_sent(api: str) -> None:
    from server import chat_events, message_events

    ours, early = sent(api), sent(api, early=True)
    shapes = {name: shape for name, shape in TABLE.SHAPES.items() if shape["api"] == api}
    assert shapes.keys() <= SUBJECTS.keys()
    for name, shape in shapes.items():
        lines = (chat_events if api == "chat" else message_events)(shape)
        frames = [json.loads(line.partition("data: ")[2]) for line in lines if "[DONE]" not in line]
        subject, said = SUBJECTS[name], shape["gateway"]
        assert subject in (chat_traits if api == "chat" else message_traits)(frames), name
        only = said.startswith("sent only with `eager_input_streaming`")
        assert (subject in ours, subject in early) == (
            said.startswith("sent") and not only,
            said.startswith("sent"),
        )


# what clients hold


@pytest.fixture(scope="module")
def shapes_port() -> Iterator[int]:
    from server import Handler

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("client", "package"), [("openai (Python)", "openai"), ("anthropic (Python)", "anthropic")]
)
def test_a_client_holds_what_its_column_says(client: str, package: str, shapes_port: int) -> None:
    pytest.importorskip(package)
    if version(package) != DATA["clients"][client]:
        pytest.skip(f"{package} {version(package)}: the table was made with {DATA['clients'][client]}")
    import holds

    api, ask = holds.CLIENTS[client]
    for name in (name for name, shape in TABLE.SHAPES.items() if shape["api"] == api):
        assert holds.held_of(ask, f"http://127.0.0.1:{shapes_port}/{name}") == DATA["held"][client][name], (
            name
        )


def test_each_client_has_all_shapes_of_its_api() -> None:
    import holds

    for client, held in DATA["held"].items():
        api = TABLE.SHAPES[next(iter(held))]["api"]
        assert list(held) == [name for name, shape in TABLE.SHAPES.items() if shape["api"] == api], client
    assert DATA["held"].keys() > holds.CLIENTS.keys()
