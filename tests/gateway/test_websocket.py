"""``/v1/responses`` over a WebSocket: prompts and events are those of the stream over HTTP."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the package starlette is not installed")
pytest.importorskip("websockets", reason="the package websockets is not installed")

import httpx2
from scripted import soon
from servers import tiny_model
from three_apis import tools_of
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from chatparsers.chat.chat import Chat
from chatparsers.gateway import Batch, End, Engine, Job, Settings, create_app
from chatparsers.gateway.server import draining_socket, timed_protocol

CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
F = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
TOOLS = tools_of("responses", F)
SAYS = ["<think>\nHm.\n</think>\n\nHello there.", CALL + "\n" + CALL.replace("1", "2"), "<think>\nI", "Done."]
"""What the model says, answer by answer."""


class Speaker(Engine):
    """Says its answers, one after another. ``jobs``: what it was asked. ``waits``: it writes without end."""

    ids = True
    dialect = "gbnf"

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.tokenizer = tiny_model("qwen3").tokenizer
        self.waits = False
        self.closed = 0

    async def start(self, chat: Chat) -> list[str]:
        return []

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        import anyio

        self.jobs.append(job)
        ids = self.tokenizer.encode(SAYS[(len(self.jobs) - 1) % len(SAYS)]).ids
        try:
            for id in ids:
                yield Batch(ids=[id])
            while self.waits:
                await anyio.sleep(0.01)
                yield Batch(ids=ids[-1:])
            yield Batch(end=End("length" if job.max_tokens == 7 else "stop", len(job.prompt), len(ids)))
        except BaseException:
            self.closed += 1
            raise


@pytest.fixture
def gateway(serve: Callable[..., Any]) -> tuple[Speaker, Any]:
    engine = Speaker()
    return engine, serve(create_app(tiny_model("qwen3").chat, engine))


def opened(server: Any, **headers: str) -> ClientConnection:
    url = server.url.replace("http", "ws") + "/v1/responses"
    return connect(url, additional_headers=headers, open_timeout=10, close_timeout=2)


_LAST = ("response.completed", "response.incomplete", "response.failed", "error")


def asked(socket: ClientConnection, **body: Any) -> list[dict[str, Any]]:
    """The events of a response."""
    socket.send(json.dumps({"type": "response.create", **body}))
    found: list[dict[str, Any]] = []
    while not found or found[-1]["type"] not in _LAST:
        found.append(json.loads(socket.recv(timeout=10)))
    return found


def streamed(url: str, **body: Any) -> list[dict[str, Any]]:
    answer = httpx2.post(f"{url}/v1/responses", json={**body, "stream": True}, timeout=10)
    return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]


def plain(value: Any) -> Any:
    """Without what differs in each response: ids and times."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if name not in _OWN}
    return [plain(one) for one in value] if isinstance(value, list) else value


_OWN = ("id", "item_id", "call_id", "created_at", "completed_at", "obfuscation")


def test_a_conversation_is_the_same_as_over_http(gateway: tuple[Speaker, Any]) -> None:
    """Over a socket only what is new is sent; over HTTP all of it. The engine is asked for the very same ids."""
    engine, server = gateway
    new: list[list[Any]] = [
        [{"role": "user", "content": "Hi"}],
        [{"role": "user", "content": "Call it twice."}],
        [],  # the results of its calls
        [{"role": "user", "content": "And?"}],
    ]
    whole: list[Any] = []
    before: str | None = None
    with opened(server) as socket:
        for turn, items in enumerate(new):
            if turn == 2:
                calls = [item for item in whole if item["type"] == "function_call"]
                items = [
                    {"type": "function_call_output", "call_id": call["call_id"], "output": "42"}
                    for call in calls
                ]
            body = {"tools": TOOLS, "max_output_tokens": 7 if turn == 2 else 90, "instructions": "You help."}
            known = {} if before is None else {"previous_response_id": before}
            count = len(engine.jobs)
            here = asked(socket, input=items, **body, **known)
            mine = engine.jobs[-1]
            del engine.jobs[count:]
            there = streamed(server.url, input=[*whole, *items], **body)
            assert plain(here) == plain(there)
            assert (mine.prompt, mine.grammar, mine.max_tokens) == (
                engine.jobs[-1].prompt,
                engine.jobs[-1].grammar,
                engine.jobs[-1].max_tokens,
            )
            response = here[-1]["response"]
            assert (response["status"] == "incomplete") == (turn == 2)
            whole += [{"type": "message", **item} for item in items if "role" in item] or items
            whole += response["output"]
            before = response["id"]


def test_what_is_prepared_is_gone_on_from(gateway: tuple[Speaker, Any]) -> None:
    engine, server = gateway
    ask = {"role": "user", "content": "Hi"}
    with opened(server) as socket:
        created, *_, done = asked(socket, input=[ask], tools=TOOLS, generate=False)
        assert created["type"] == "response.created" and not engine.jobs
        assert done["response"]["output"] == [] and done["response"]["usage"]["output_tokens"] == 0
        found = asked(socket, input=[], tools=TOOLS, previous_response_id=done["response"]["id"])[-1][
            "response"
        ]
        assert (
            found["usage"]["input_tokens"]
            == done["response"]["usage"]["input_tokens"]
            == len(engine.jobs[0].prompt)
        )


FRAMES: list[tuple[Any, int, str]] = [
    # A frame, the status of its error, and a word of it.
    ("no JSON", 400, "JSON"),
    ("[1]", 400, "object"),
    ({"type": "response.make"}, 400, "response.make"),
    ({"type": "response.create", "input": 5}, 400, "input"),
    ({"type": "response.create", "input": "Hi", "background": True}, 400, "background"),
    ({"type": "response.create", "input": "Hi", "previous_response_id": "resp_1"}, 400, "resp_1"),
    ({"type": "response.create", "input": "Hi", "tools": [{"type": "shell"}]}, 400, "shell"),
    ({"type": "response.create", "input": "Hi " * 30_000}, 400, "context"),
]


def test_errors_are_frames_and_the_connection_stays(serve: Callable[..., Any]) -> None:
    engine = Speaker()
    engine.context = 5_000
    server = serve(create_app(tiny_model("qwen3").chat, engine, Settings(api_key="k")))
    for headers in ({}, {"authorization": "Bearer other"}):
        with pytest.raises(InvalidStatus) as refused, opened(server, **headers):
            pass
        assert refused.value.response.status_code == 401
    with (
        pytest.raises(InvalidStatus) as refused,
        opened(server, authorization="Bearer k", origin="https://evil.example"),
    ):
        pass
    assert refused.value.response.status_code == 403
    with opened(server, authorization="Bearer k") as socket:
        for frame, status, word in FRAMES:
            socket.send(frame if isinstance(frame, str) else json.dumps(frame))
            found = json.loads(socket.recv(timeout=10))
            assert (found["type"], found["status"]) == ("error", status) and word in str(found["error"])
        socket.send(json.dumps({"type": "response.processed"}))
        assert asked(socket, input="Hi")[-1]["type"] == "response.completed"
        codes = [asked(socket, input="Hi", previous_response_id="resp_2")[-1]["error"]["code"]]
        assert codes == ["previous_response_not_found"]


def test_who_leaves_stops_the_engine(gateway: tuple[Speaker, Any]) -> None:
    engine, server = gateway
    engine.waits = True
    with opened(server) as socket:
        socket.send(json.dumps({"type": "response.create", "input": "Hi"}))
        while "delta" not in socket.recv(timeout=10):
            pass
    soon(lambda: engine.closed == 1 and server.app.state.metrics.active == 0)


def test_too_many_frames_at_once_are_the_end(gateway: tuple[Speaker, Any]) -> None:
    engine, server = gateway
    engine.waits = True
    with opened(server) as socket, pytest.raises(ConnectionClosed) as closed:
        for _ in range(40):
            socket.send(json.dumps({"type": "response.create", "input": "Hi"}))
        engine.waits = False
        while True:
            socket.recv(timeout=10)
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008


def test_a_server_that_ends_lets_a_response_end(serve: Callable[..., Any]) -> None:
    engine = Speaker()
    server = serve(
        create_app(tiny_model("qwen3").chat, engine),
        ws=draining_socket(),
        http=timed_protocol(0.3),
        timeout_graceful_shutdown=9,
    )
    engine.waits = True
    with opened(server) as socket, pytest.raises(ConnectionClosed) as closed:
        socket.send(json.dumps({"type": "response.create", "input": "Hi"}))
        while "delta" not in socket.recv(timeout=10):
            pass
        time.sleep(0.4)  # no timer of a head ends a connection that is no request any more
        server._server.should_exit = True
        for _ in range(9):
            assert "response.completed" not in str(socket.recv(timeout=10))
        engine.waits = False
        found = [""]
        while True:
            found.append(str(socket.recv(timeout=10)))
    assert "response.completed" in found[-1]
    assert closed.value.rcvd is not None and closed.value.rcvd.code == 1012
