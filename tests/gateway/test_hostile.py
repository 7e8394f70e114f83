"""What a stranger may send: every request is answered, refused or given up within its account."""

from __future__ import annotations

import gc
import json
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from scripted import Llama, Upstream, forced, soon
from servers import tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import anyio
import httpx2
from three_apis import ASK, BODIES, PATHS, told

import chatparsers
from chatparsers.gateway import LlamaServer, Settings, create_app
from chatparsers.gateway.account import DEPTH, VALUES, Account
from chatparsers.gateway.body import read_body
from chatparsers.gateway.encode import LONGEST, Encoder
from chatparsers.gateway.fair_pool import BESIDE, FairPool, Left
from chatparsers.gateway.server import timed_protocol
from chatparsers.serving import ApiError


@pytest.fixture
def gateway(upstream: Callable[[Any], Upstream], serve: Callable[..., Any]) -> Callable[..., Any]:
    def make(script: Any = None, **settings: Any) -> Any:
        engine = upstream(script or Llama(["Hello."], tiny_model("qwen3").tokenizer))
        server = serve(create_app(tiny_model("qwen3").chat, LlamaServer(engine.url), Settings(**settings)))
        server.engine = engine
        return server

    return make


# who may ask


def test_pages_of_others_may_not_ask(gateway: Callable[..., Any]) -> None:
    """Unless they are named. `test_campaign` has what hosts, origins and kinds of content are refused else."""
    server, opened = gateway(), gateway(hosts=("ai.example",), cors=("https://chat.example",))

    def status(server: Any, **headers: str) -> int:
        return int(httpx2.post(server.url + PATHS["chat"], json=ASK, headers=headers, timeout=20).status_code)

    assert status(server, origin=server.url) == 200
    assert status(opened, host="ai.example") == 200 and status(opened, host="evil.example") == 403
    assert status(opened, origin="https://chat.example") == 200
    assert status(opened, origin="https://evil.example") == 403
    asks = {"origin": "https://chat.example", "access-control-request-method": "POST"}
    asks["access-control-request-headers"] = "authorization, content-type"
    asks["access-control-request-private-network"] = "true"
    allowed = httpx2.options(opened.url + PATHS["chat"], headers=asks).headers
    assert allowed["access-control-allow-origin"] == "https://chat.example"
    assert allowed["access-control-allow-private-network"] == "true"
    refused = httpx2.options(server.url + PATHS["chat"], headers=asks).headers
    assert "access-control-allow-origin" not in refused
    for made in (server, opened):
        assert httpx2.get(f"{made.url}/health", headers={"host": "evil.example"}).status_code == 403
    counted = httpx2.get(f"{opened.url}/metrics").text  # what is refused is counted too
    assert 'chatparsers_requests_total{api="chat",status="403"} 2.0\n' in counted


JSON = {"content-type": "application/json"}
KEYED, COUNTED = (
    {"api_key": "secret", "max_body": 2000, "max_tools": 2},
    {"max_prompt": 3000, "max_schemas": 2000},
)
KEY = {"x-api-key": "secret"}
F = {"type": "function", "function": {"name": "f", "parameters": {}}}
DEAR = {"enum": ["x" * 2000]}
DEAR_TOOL = {"type": "function", "function": {"name": "f", "parameters": DEAR}}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"schema": DEAR}}


def user(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


REFUSED: dict[str, tuple[dict[str, Any], dict[str, str], dict[str, Any] | bytes, int, str]] = {
    # The settings, the headers, more fields or a whole body, the status, and the field that is named.
    "no key": (KEYED, {}, {}, 401, ""),
    "another key": (KEYED, {"authorization": "Bearer public"}, {}, 401, ""),
    "a key in capitals": (KEYED, {"x-api-key": "Secret"}, {}, 401, ""),
    "a key as a password": (KEYED, {"authorization": "Basic secret"}, {}, 401, ""),
    "a bare key": (KEYED, {"authorization": "secret"}, {}, 401, ""),
    "an empty key": (KEYED, {"x-api-key": ""}, {}, 401, ""),
    "a key": (KEYED, {"authorization": "bearer secret"}, {}, 200, ""),
    "a key after two spaces": (KEYED, {"authorization": "Bearer  secret"}, {}, 200, ""),
    "a key for any host": (KEYED, {**KEY, "host": "any.example"}, {}, 200, ""),
    # Clients of Anthropic's may send both.
    "two keys": (KEYED, {"x-api-key": "another", "authorization": "Bearer secret"}, {}, 200, ""),
    "a long body": (KEYED, KEY, {"user": "x" * 2000}, 413, ""),
    "many tools": (KEYED, KEY, {"tools": [F] * 3}, 400, "tools"),
    **{
        f"the body {raw[:8]!r}": (KEYED, KEY, raw, 400, "")
        for raw in (b"", b"{", b"[]", b"\xff", b"[" * 1500, b'"text"')
    },
    **{
        f"the field {name}": (KEYED, KEY, {name: value}, 400, name)
        for name, value in (
            ("typical_p", 0.5),
            ("mirostat", 2),
            ("min_tokens", 5),
            ("separate_reasoning", False),
        )
    },
    "a prompt that is too long": (COUNTED, {}, user("x" * 7000), 413, ""),
    "a prompt of too many tokens": (COUNTED, {}, user("x" * 3000), 413, ""),
    "a tool that is too dear": (COUNTED, {}, {"tools": [DEAR_TOOL]}, 413, ""),
    "an answer that is too dear": (COUNTED, {}, {"response_format": JSON_SCHEMA}, 413, ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_settings_refuse(name: str, gateway: Callable[..., Any]) -> None:
    """Nothing of it comes to the engine."""
    settings, headers, more, status, field = REFUSED[name]
    server = gateway(**settings)
    body = more if isinstance(more, bytes) else json.dumps({**ASK, **more}).encode()
    answer = httpx2.post(server.url + PATHS["chat"], content=body, headers={**JSON, **headers}, timeout=20)
    assert answer.status_code == status, answer.text
    asked = [body for _, body in server.engine.requests if forced(body) is None]
    assert len(asked) == (1 if status == 200 else 0)
    if status != 200:
        error = told("chat", answer).error
        assert error is not None and field in ("", error["param"]), error
        assert status != 413 or "expected" in error["message"]


def test_the_key_is_asked_for_on_every_path_but_one(gateway: Callable[..., Any]) -> None:
    url = gateway(api_key="secret").url
    for path, headers, status in (
        ("/v1/models", {}, 401),
        ("/v1/models", KEY, 200),
        ("/health", {}, 200),
        ("/v1/completions", KEY, 404),
        (PATHS["chat"], KEY, 405),
    ):
        assert httpx2.get(url + path, headers=headers).status_code == status, path


# bodies


def test_what_is_said_in_pairs_is_read() -> None:
    """A whole pair of surrogates is a character, and so is a text that only looks like half of one. Half of one becomes
    U+FFFD, and is counted."""
    account = Account(Settings())
    cut = rb'{"a": ["temp ok \ud83d", "\udc00b"], "\udfff": "\ud83d\ude00"}'
    assert read_body(cut, account) == {"a": ["temp ok \ufffd", "\ufffdb"], "\ufffd": "\U0001f600"}
    assert account.replaced == 3
    assert read_body(b'{"messages": [1e400, -1e400]}', account) == {
        "messages": [sys.float_info.max, -sys.float_info.max]
    }
    assert account.replaced == 5
    account = Account(Settings())
    assert read_body(b'{"a": "\\ud83d\\ude00"}', account) == {"a": "\U0001f600"}
    many = "a, [b], " * VALUES
    assert read_body(json.dumps({"a": many}).encode(), account) == {"a": many}  # they separate no values
    assert read_body(b'{"a": "\\\\ud83d", "b": 1e30}', account) == {"a": "\\ud83d", "b": 1e30}
    nested = json.dumps({"a": [[0]] * (DEPTH + 1)}).encode()
    assert read_body(nested, account)


def test_a_half_sent_body_holds_no_slot(gateway: Callable[..., Any]) -> None:
    server = gateway(concurrency=2, body_timeout=0.5)
    halves = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(5)]
    head = f"POST {PATHS['chat']} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    for half in halves:
        half.sendall(f"{head}content-length: 100\r\n\r\n{{".encode())
    soon(lambda: server.app.state.metrics.active == 0)
    assert httpx2.post(server.url + PATHS["chat"], json=ASK, timeout=20).status_code == 200
    for half in halves:
        half.settimeout(10)
        assert b"408" in half.recv(1000).split(b"\r\n")[0]
        half.close()


def test_a_connection_without_a_request_is_closed(serve: Callable[..., Any]) -> None:
    """Nothing, half a head, and half a head after an answer."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        await anyio.sleep(0.6)  # an answer may take longer than a head
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    server = serve(app, http=timed_protocol(0.3))
    for first in (b"", b"GET / HTTP/1.1\r\nhost: x"):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.settimeout(10)
            client.sendall(first)
            assert client.recv(100) == b""
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.settimeout(10)
        client.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        assert b"204" in client.recv(1000)
        client.sendall(b"GET")
        assert client.recv(100) == b""


# work


def test_work_is_given_up() -> None:
    """When its client leaves, and when it takes too long, also if it loses what is raised in it, as a finalizer does.
    Its thread does other work then."""

    def endless() -> None:
        while True:
            sum(range(1000))

    def loses() -> None:
        with suppress(BaseException):
            endless()
        endless()

    async def leaves() -> None:
        pool = FairPool(0.4)
        for work in (endless, loses):
            with pytest.raises(Left), anyio.fail_after(10):
                await pool.run(work, lambda: anyio.sleep(0.1))
        with pytest.raises(ApiError, match=r"more than 0\.4 seconds of CPU"):
            await pool.run(endless)
        for _ in range(20):
            assert await pool.run(lambda: 5, lambda: anyio.sleep(10)) == 5
        with pytest.raises(ZeroDivisionError):
            await pool.run(lambda: 1 // 0)
        with anyio.move_on_after(0.1):
            await pool.run(endless)
        assert await pool.run(lambda: 6) == 6
        pool.close()

    before = threading.active_count()
    anyio.run(leaves)
    soon(lambda: threading.active_count() <= before)


def test_long_work_lets_others_pass() -> None:
    async def both() -> None:
        pool, over, usual = FairPool(20), threading.Event(), gc.get_threshold()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pool.run, lambda: over.wait(10))
            await anyio.sleep(0)
            for _ in range(3):
                await pool.run(lambda: None)
            assert not over.is_set()
            until = time.monotonic() + 10
            while gc.get_threshold()[2] < 1000:  # no whole pass of the collector, which stops all threads
                await anyio.sleep(0.01)
                assert time.monotonic() < until
            over.set()
        assert gc.get_threshold() == usual

    anyio.run(both)


def test_a_thread_that_cannot_be_started_is_missed_once(monkeypatch: Any) -> None:
    """A system may be short of threads for a while: what comes later is done."""
    refused: list[str] = []
    start = threading.Thread.start

    def starting(thread: threading.Thread) -> None:
        if refused:
            raise RuntimeError(refused.pop())
        start(thread)

    async def asks() -> None:
        pool, over = FairPool(20), threading.Event()
        refused.append("can't start new thread")
        with pytest.raises(RuntimeError):
            await pool.run(lambda: 1)
        with anyio.fail_after(10):
            assert await pool.run(lambda: 2) == 2
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pool.run, lambda: over.wait(10))
                refused.append("can't start new thread")
                while refused:  # as the long one is to be let go
                    await anyio.sleep(0.01)
                assert await pool.run(lambda: 3) == 3 and not over.is_set()
                over.set()
        pool.close()

    monkeypatch.setattr(threading.Thread, "start", starting)
    anyio.run(asks)


def test_one_client_leaves_others_a_place(monkeypatch: Any) -> None:
    """However much dear work it has, and whoever of its own waits there first."""

    async def both() -> None:
        pool, over = FairPool(20), threading.Event()
        done: list[str] = []
        monkeypatch.setattr("chatparsers.gateway.fair_pool.FAST", 0.01)

        def endless() -> None:
            while not over.is_set():
                sum(range(1000))

        def dear() -> None:
            until = time.thread_time() + 0.05
            while time.thread_time() < until:
                sum(range(1000))

        async def one(work: Callable[[], None], client: str) -> None:
            await pool.run(work, None, client)
            done.append(client)

        async with anyio.create_task_group() as tasks:
            for _ in range(2 * BESIDE):
                tasks.start_soon(one, endless, "a")
            with anyio.fail_after(20):
                await anyio.sleep(0.1)
                await one(dear, "b")
            assert done == ["b"]
            over.set()
        pool.close()
        assert done.count("a") == 2 * BESIDE

    anyio.run(both)


def test_dear_work_waits_for_its_like_alone(monkeypatch: Any) -> None:
    """More dear ones than have a place: cheap work passes them all, each of them is done, and none is lost when its
    client leaves while it waits."""

    async def many() -> None:
        pool, over = FairPool(20), threading.Event()
        done: list[int] = []
        monkeypatch.setattr("chatparsers.gateway.fair_pool.FAST", 0.01)

        def dear() -> int:
            until = time.thread_time() + 0.02
            while time.thread_time() < until or not over.is_set():
                sum(range(1000))
            return 7

        def endless() -> int:
            until = time.thread_time() + 5
            while time.thread_time() < until:
                sum(range(1000))
            return 7

        async def one(work: Callable[[], int], left: Any = None) -> None:
            try:
                done.append(await pool.run(work, left))
            except Left:
                done.append(0)

        async with anyio.create_task_group() as tasks:
            for _ in range(BESIDE + 2):
                tasks.start_soon(one, dear)
            tasks.start_soon(one, endless, lambda: anyio.sleep(0.01))
            with anyio.fail_after(20):  # the dear ones go on until it is set
                for number in range(3):
                    assert await pool.run(lambda number=number: number) == number
            assert not done
            over.set()
        pool.close()
        assert sorted(done) == [0] + [7] * (BESIDE + 2)

    anyio.run(many)


def test_a_grammar_leaves_no_circles(request: pytest.FixtureRequest) -> None:
    """What is in a circle waits for a whole pass of the collector, and a large grammar makes that one long."""
    schema = {"type": "object", "properties": {"a": {"type": "integer", "minimum": 3, "maximum": 1234}}}
    request.addfinalizer(gc.unfreeze)
    for name in ("qwen3", "glm-4-5", "gpt-oss"):
        turn = chatparsers.get_format(name).bind(tools=[{"name": f"f{time.time_ns()}", "parameters": schema}])
        turn.grammar("gbnf"), turn.grammar("lark"), turn.grammar("structural_tag")  # what is made once
        turn = chatparsers.get_format(name).bind(tools=[{"name": f"f{time.time_ns()}", "parameters": schema}])
        for dialect in ("gbnf", "lark", "structural_tag"):
            gc.collect()
            gc.freeze()  # a pass looks at what is made from here on alone
            gc.disable()
            try:
                assert turn.grammar(dialect) is not None
                assert gc.collect() < 50, (name, dialect)
            finally:
                gc.enable()


def test_a_client_that_leaves_stops_the_work(gateway: Callable[..., Any], monkeypatch: Any) -> None:
    from chatparsers.gateway import prepare

    def read(raw: bytes, account: Account) -> object:
        while b"endless" in raw:
            sum(range(1000))
        return read_body(raw, account)

    monkeypatch.setattr(prepare, "read_body", read)
    server = gateway()
    with pytest.raises(httpx2.ReadTimeout):
        httpx2.post(server.url + PATHS["chat"], json={**ASK, "user": "endless"}, timeout=0.3)
    metrics = server.app.state.metrics
    soon(lambda: metrics.active == 0 and metrics.value("requests", status="499") == 1)
    assert httpx2.post(server.url + PATHS["chat"], json=ASK, timeout=20).status_code == 200
    asked = [body for _, body in server.engine.requests if not forced(body)]
    assert len(asked) == 1


def test_long_prompts_are_encoded_in_pieces(tokenizer: Callable[[str], Any], pytestconfig: Any) -> None:
    """The ids of the pieces are those of the whole, for every real tokenizer; what cannot be cut has a limit."""
    root = Path(__file__).parents[2]
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((root / "docs").glob("*.md"))[:6])
    for name in ("qwen3", "llama3.1", "mistral-spm-v7", "o200k_harmony"):
        known = tokenizer(name)
        encoder = Encoder(known)
        assert encoder.encode(text) == known.encode(text, add_special_tokens=False).ids
        with pytest.raises(ApiError, match="must be encoded at once"):
            encoder.encode("😀" * (LONGEST + 1))


# engines


def test_clients_write_no_log_and_no_labels(gateway: Callable[..., Any], capsys: Any) -> None:
    """What ``drop_unsupported`` leaves out is named by the client."""
    server = gateway(drop_unsupported=True)
    for number in range(40):
        kind = f"fresh{number}\nchatparsers: warning: \x1b[31mforged"
        parts = [{"type": "text", "text": "Hi"}, {"type": kind}]
        body = {**ASK, "messages": [{"role": "user", "content": parts}], "tools": [{"type": kind}]}
        assert httpx2.post(server.url + PATHS["chat"], json=body, timeout=20).status_code == 200
    said = [line for line in capsys.readouterr().err.splitlines() if "left out" in line]
    assert len(said) == 2 and all("fresh0 chatparsers: warning: \\x1b[31mforged" in line for line in said)
    labels = [
        line for line in httpx2.get(f"{server.url}/metrics").text.splitlines() if "dropped_total{" in line
    ]
    assert sorted(labels) == [
        f'chatparsers_dropped_total{{kind="{what} other"}} 40.0' for what in ("part", "tool")
    ]


def test_clients_see_no_address_of_the_engine(
    upstream: Callable[[Any], Upstream], serve: Callable[..., Any]
) -> None:
    engine = upstream(Llama(["Hello."], tiny_model("qwen3").tokenizer))
    made = LlamaServer(engine.url.replace("//", "//user:password@"))
    server = serve(create_app(tiny_model("qwen3").chat, made))
    engine.close()
    for api in ("chat", "responses", "messages"):
        answer = httpx2.post(server.url + PATHS[api], json=BODIES[api], timeout=20)
        assert answer.status_code == 502 and "does not answer" in told(api, answer).error["message"]
        for secret in ("password", "user:", "127.0.0.1", str(engine.port)):
            assert secret not in answer.text
    with pytest.raises(Exception, match="does not answer") as caught:
        anyio.run(made.get, "/v1/models")
    assert caught.value.where == engine.url  # type: ignore[attr-defined]


def test_a_whole_campaign_leaves_nothing_behind(gateway: Callable[..., Any]) -> None:
    """Vanishing clients at every moment: no slot is lost."""
    server = gateway(Llama(["Hello. "] * 20, tiny_model("qwen3").tokenizer))
    raw = json.dumps({**ASK, "stream": True}).encode()
    head = f"POST {PATHS['chat']} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    whole = f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw
    for cut in range(1, len(whole) + 1, 17):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(whole[:cut])
            time.sleep(0.002)
    soon(lambda: server.app.state.metrics.active == 0)
    assert httpx2.post(server.url + PATHS["chat"], json=ASK, timeout=20).status_code == 200
