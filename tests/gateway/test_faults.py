"""What goes wrong: engines that die, stall or write garbage, and clients that leave or are slow.

Nothing hangs, nothing is lost, and the client reads an error of its API."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import time
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from scripted import Llama, Upstream, Wire, forced, llama_end, llama_piece, soon
from servers import tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from three_apis import ASK, BODIES, PATHS, post, told, tools_of

import chatparsers
from chatparsers.gateway import LlamaServer, OpenAICompletions, Settings, create_app
from chatparsers.gateway.engine import Job
from chatparsers.gateway.respond import Responding
from chatparsers.gateway.turns import EVENTS


class Broken:
    """An engine that passes the probe. Then ``act`` writes the response."""

    def __init__(self, act: Callable[[Wire], Any]) -> None:
        self.act = act
        self.probe = Llama(tokenizer=tiny_model("qwen3").tokenizer, gives_ids=False)

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        if forced(body) is not None or body.get("n_predict") == 1:
            await self.probe(path, body, wire)
        else:
            await self.act(wire)


@pytest.fixture
def gateway(upstream: Callable[[Any], Upstream], serve: Callable[[Any], Any]) -> Callable[..., Any]:
    def make(act: Callable[[Wire], Any], stall: float = 20.0, **settings: Any) -> Any:
        engine = upstream(Broken(act))
        made = LlamaServer(engine.url, stall=stall)
        server = serve(create_app(tiny_model("qwen3").chat, made, Settings(**settings)))
        server.engine = engine
        return server

    return make


def head(size: int, host: str = "localhost", kind: str = "application/json") -> bytes:
    """The head of a request, as bytes for a socket."""
    first = f"POST {PATHS['chat']} HTTP/1.1\r\nhost: {host}\r\ncontent-type: {kind}\r\n"
    return f"{first}content-length: {size}\r\n\r\n".encode()


async def dies(wire: Wire) -> None:
    await wire.head()
    await wire.send(llama_piece("Half an ans <tool_c"))
    await asyncio.sleep(0.05)
    wire.die()


@pytest.mark.parametrize("api", PATHS)
def test_an_engine_that_breaks_in_the_middle(api: str, gateway: Callable[..., Any]) -> None:
    """All that came is told, held text too, and the request is none that was answered. `test_campaign` has all ways to
    break."""
    server = gateway(dies)
    streamed = told(api, post(server.url, api, stream=True, tools=tools_of(api, {"name": "f"})))
    assert streamed.content == "Half an ans <tool_c" and streamed.error is not None
    assert "connection to the engine broke" in streamed.error["message"]
    assert post(server.url, api).status_code == 502
    metrics = server.app.state.metrics
    soon(lambda: metrics.active == 0)
    assert metrics.value("requests", status="200") == 0


def test_bytes_in_any_pieces(gateway: Callable[..., Any]) -> None:
    """Half a UTF-8 character, half a line, and one chunk of a megabyte."""
    text = "Snow ☃ in Tromsø 😀. " * 20
    long = "y" * 1_000_000

    async def cuts(wire: Wire) -> None:
        await wire.head()
        raw = b"".join([llama_piece(text), b": a comment\n\n", llama_piece(long), llama_end()])
        cut = raw.index("☃".encode()) + 1
        await wire.send(raw[:cut])
        for start in range(cut, cut + 200, 7):
            await wire.send(raw[start : min(start + 7, cut + 200)])
        await wire.send(raw[cut + 200 :])
        await wire.end()

    server = gateway(cuts)
    for stream in (False, True):
        assert told("chat", post(server.url, "chat", stream=stream)).content == text + long


def test_invalid_utf8_is_shown_as_such(gateway: Callable[..., Any]) -> None:
    """Bytes that are no UTF-8 in the engine's JSON are garbage; half a surrogate pair in an escape is one character."""

    async def half(wire: Wire) -> None:
        await wire.head()
        await wire.send(b'data: {"content": "a \\ud83d b", "stop": false}\n\n' + llama_end())
        await wire.end()

    server = gateway(half)
    for stream in (True, False):
        assert told("chat", post(server.url, "chat", stream=stream)).content in ("a � b", "a \ud83d b")


def test_the_engine_is_stopped_when_the_client_leaves(gateway: Callable[..., Any]) -> None:
    async def endless(wire: Wire) -> None:
        await wire.head()
        while True:
            await wire.send(llama_piece("more "))
            await asyncio.sleep(0.005)

    server = gateway(endless)
    for api in PATHS:
        with httpx2.stream(
            "POST", server.url + PATHS[api], json={**BODIES[api], "stream": True}, timeout=20
        ) as stream:
            assert next(stream.iter_bytes())
    soon(lambda: server.engine.left == 3)
    with pytest.raises(httpx2.ReadTimeout):  # a whole answer, too
        httpx2.post(server.url + PATHS["chat"], json=ASK, timeout=0.3)
    soon(lambda: server.engine.left == 4)
    metrics = server.app.state.metrics
    soon(lambda: metrics.active == 0 and metrics.value("requests", status="499") == 4)


def test_an_open_stream_holds_no_prompt(gateway: Callable[..., Any], monkeypatch: Any) -> None:
    """Nor the ids, nor the text, nor the bytes that the engine was sent."""
    from chatparsers.gateway.prompting import Prompting

    class Ids(list[int]):
        pass

    kept: list[weakref.ref[Ids]] = []
    prompt = Prompting.prompt

    def noted(self: Prompting, *given: Any) -> Any:
        found, placed = prompt(self, *given)
        ids = Ids(found)  # type: ignore[arg-type]
        kept.append(weakref.ref(ids))
        return ids, placed

    monkeypatch.setattr(Prompting, "prompt", noted)

    async def waits(wire: Wire) -> None:
        await wire.head()
        await wire.send(llama_piece("One "))
        await asyncio.sleep(30)

    server = gateway(waits)
    text = "word and word " * 200
    own = {"role": "user", "content": text}
    body = {**ASK, "messages": [own], "stream": True}
    with httpx2.stream("POST", server.url + PATHS["chat"], json=body, timeout=20) as answer:
        assert any("One " in piece for piece in answer.iter_text())
        soon(lambda: kept[0]() is None)
        found = [one for one in gc.get_objects() if isinstance(one, dict) and one.get("content") == text]
        assert not [one for one in found if one is not own]


def test_a_slow_client_slows_the_engine(gateway: Callable[..., Any], monkeypatch: Any) -> None:
    """The gateway holds what fits in buffers, not the answer."""
    monkeypatch.setattr("chatparsers.gateway.respond.ANSWER", 100_000_000)
    sent = 0

    async def floods(wire: Wire) -> None:
        nonlocal sent
        await wire.head()
        piece = llama_piece("z" * 100_000)
        while sent < 600:
            await wire.send(piece)
            sent += 1
        await wire.send(llama_end())
        await wire.end()

    server = gateway(floods)
    body = json.dumps({**ASK, "stream": True}).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        client.sendall(head(len(body)) + body)
        before = -1
        while before != sent or not sent:
            before = sent
            time.sleep(0.3)
        assert 0 < sent < 300  # of 60 MB
        read = 0
        while read < 60_000_000:
            piece = client.recv(1 << 20)
            assert piece
            read += len(piece)
    soon(lambda: sent == 600)


def test_a_client_that_takes_nothing_is_left(gateway: Callable[..., Any]) -> None:
    async def floods(wire: Wire) -> None:
        await wire.head()
        while True:
            await wire.send(llama_piece("z" * 100_000))

    server = gateway(floods, slow_client=0.6)
    body = json.dumps({**ASK, "stream": True}).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(head(len(body)) + body)
        soon(lambda: server.engine.left == 1)


@pytest.fixture
def a_comment(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Waits until the gateway has sent one more comment."""
    sent: list[bytes] = []
    part = Responding._part

    async def noted(self: Responding, send: Any, raw: bytes, over: bool) -> None:
        await part(self, send, raw, over)
        sent.extend([raw] * (raw == b": waiting\n\n"))

    monkeypatch.setattr(Responding, "_part", noted)

    async def wait() -> None:
        before = len(sent)
        while len(sent) == before:
            await asyncio.sleep(0.005)

    return wait


def test_silence_is_filled_with_comments(gateway: Callable[..., Any], a_comment: Callable[[], Any]) -> None:
    """Before the first byte too. The clients skip them."""

    async def slow(wire: Wire) -> None:
        await a_comment()
        await wire.head()
        await wire.send(llama_piece("One "))
        await a_comment()
        await wire.send(llama_piece("two.") + llama_end())
        await wire.end()

    server = gateway(slow, keep_alive=0.05)
    for api in PATHS:
        before, _, after = post(server.url, api, stream=True).text.partition("One ")
        assert ": waiting\n\n" in before and ": waiting\n\n" in after
    openai = pytest.importorskip("openai", reason="the package openai is not installed")
    anthropic = pytest.importorskip("anthropic", reason="the package anthropic is not installed")
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    with client, client.chat.completions.stream(**ASK) as stream:
        assert stream.get_final_completion().choices[0].message.content == "One two."
    client = anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0)
    with client, client.messages.stream(**BODIES["messages"]) as stream:
        assert stream.get_final_message().content[0].text == "One two."


def test_an_error_after_a_comment_is_an_event(
    gateway: Callable[..., Any], a_comment: Callable[[], Any]
) -> None:
    async def late(wire: Wire) -> None:
        await a_comment()
        await wire.head(500, "text/plain")
        await wire.send(b"no memory")
        await wire.end()

    server = gateway(late, keep_alive=0.05)
    answer = post(server.url, "chat", stream=True)
    found = told("chat", answer).error
    assert answer.status_code == 200 and found is not None and "no memory" in found["message"]


def test_requests_have_places(gateway: Callable[..., Any]) -> None:
    waiting: list[Wire] = []

    async def waits(wire: Wire) -> None:
        await wire.head()
        waiting.append(wire)
        while len(waiting) < 3:
            await asyncio.sleep(0.01)
        await wire.send(llama_piece("Hi.") + llama_end())
        await wire.end()

    server = gateway(waits, concurrency=2)

    def ask() -> httpx2.Response:
        return post(server.url, "chat")

    # Two wait, the third is one too many. It goes through when they are done.
    with ThreadPoolExecutor() as pool:
        two = [pool.submit(ask) for _ in range(2)]
        soon(lambda: len(waiting) == 2)
        third = ask()
        assert third.status_code == 429 and third.headers["retry-after"]
        waiting.append(waiting[0])
        assert [done.result().status_code for done in two] == [200, 200]
    soon(lambda: server.app.state.metrics.active == 0)
    assert ask().status_code == 200


def test_streams_with_much_to_read_take_turns() -> None:
    """So a request beside them waits for a few events in each round of the loop, not for all that has come."""
    event = b'data: {"choices": [{"text": "x", "finish_reason": null}]}\n\n'
    last = b'data: {"choices": [{"text": "x", "finish_reason": "stop"}]}\n\n'
    streams, events = 20, 1000

    class Flood(httpx2.AsyncByteStream):
        async def __aiter__(self) -> Any:
            yield event * (events - 1) + last

    async def run() -> list[int]:
        transport = httpx2.MockTransport(lambda request: httpx2.Response(200, stream=Flood()))
        client = httpx2.AsyncClient(transport=transport, base_url="http://engine")
        engine = OpenAICompletions("http://engine", client=client)
        turn = chatparsers.get_format("hermes-2-pro").bind()
        read: Counter[int] = Counter()

        async def drain(stream: int) -> None:
            async for batch in engine.generate(Job(turn, "Hi")):
                read[stream] += len(batch.text)

        tasks = [asyncio.create_task(drain(stream)) for stream in range(streams)]
        rounds, before = [], 0
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            rounds.append(sum(read.values()) - before)
            before += rounds[-1]
            if len(rounds) == 100:
                tasks.pop().cancel()  # its client has left: the others go on
        await asyncio.gather(*tasks)
        assert all(read[stream] == events for stream in range(streams - 1))
        return sorted(rounds)

    rounds = asyncio.run(run())
    assert rounds[-1] <= streams * 2 * EVENTS  # all begin at once
    assert rounds[-streams] <= 4 * EVENTS
