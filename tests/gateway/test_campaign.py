"""The second campaign, written from docs/security.md alone: what strangers and broken engines send to one gateway.

Each case is answered, refused or given up, and afterwards the gateway answers as before: nothing runs on, and nothing
was a failure of its own. ``--nightly`` sends all of them to ``chatparsers serve`` and watches its memory; else a slice
goes to a gateway in this process.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from scripted import Llama, Upstream, Wire, forced, llama_end, llama_piece, soon
from servers import Server, flags, free_port, listens, model_files, tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from three_apis import ASK, BODIES, COUNT, PATHS, WAYS, post, told, tools_of

import chatparsers
from chatparsers import errors
from chatparsers.gateway import LlamaServer, Settings, create_app
from chatparsers.gateway.account import DEPTH, VALUES, Account
from chatparsers.gateway.server import timed_protocol

JSON = {"content-type": "application/json"}
MEGA = 1_000_000
MEMORY = 200
"""MB that a request may take."""


@dataclass
class Target:
    """The gateway that is attacked. ``process``: its own, or None."""

    port: int
    upstream: Upstream
    process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def post(self, api: str, body: bytes | dict[str, Any]) -> httpx2.Response:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return httpx2.post(self.url + {**PATHS, "count": COUNT}[api], content=raw, headers=JSON, timeout=60)

    def stands(self) -> None:
        """It answers, and nothing runs on."""
        assert self.post("chat", ASK).status_code == 200
        metrics = f"http://127.0.0.1:{self.port}/metrics"
        soon(lambda: "\nchatparsers_active_requests 0.0\n" in httpx2.get(metrics, timeout=20).text)

    def forget_peak(self) -> float:
        """The memory now, in MB, from which `peak` counts."""
        if self.process is not None:
            Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self.peak()

    def peak(self) -> float:
        if self.process is None:
            return 0.0
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1e3


class Engine(Llama):
    """An engine that does what the case with the number ``seed`` says."""

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        act = None if forced(body) is not None else ENGINES.get(str(body.get("seed")))
        if act is None:
            await super().__call__(path, body, wire)
        elif isinstance(act, bytes):
            await wire.head()
            await wire.send(act)
            await wire.end()
        else:
            await act(wire)


@pytest.fixture(scope="module")
def target(pytestconfig: Any, tmp_path_factory: Any) -> Iterator[Target]:
    tiny = tiny_model("qwen3")
    engine = Upstream(Engine(["Hello."], tiny.tokenizer))
    if not pytestconfig.getoption("--nightly"):
        app = create_app(
            tiny.chat, LlamaServer(engine.url, stall=1), Settings(body_timeout=2, max_tokens=5_000)
        )
        server = Server(app, http=timed_protocol(2, slow=1))
        yield Target(server.port, engine)
        server.close()
    else:
        folder = tmp_path_factory.mktemp("campaign")
        port = free_port()
        command = [
            *(sys.executable, "-m", "chatparsers", "serve", "--port", str(port), "--stall", "2"),
            *("--upstream", engine.url, "--upstream-kind", "llama-server", *flags(model_files(folder))),
            *("--body-timeout", "2", "--max-tokens", "5000", "--slow-client", "2"),
        ]
        with open(folder / "stderr", "w+") as errors:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, text=True)
            try:
                soon(lambda: listens(port), 60)
                yield Target(port, engine, process)
            finally:
                process.kill()
                process.wait()
            errors.seek(0)
            said = errors.read()
        assert "Traceback" not in said and len(said) < 100_000
    engine.close()


# what clients send


def says(more: str | bytes, body: dict[str, Any] = ASK) -> bytes:
    """A request with more fields."""
    return (
        json.dumps(body)[:-1].encode() + b", " + (more if isinstance(more, bytes) else more.encode()) + b"}"
    )


def tools(*parameters: dict[str, Any]) -> dict[str, Any]:
    functions = [{"name": f"f{place}", "parameters": found} for place, found in enumerate(parameters)]
    return {**ASK, "tools": [{"type": "function", "function": function} for function in functions]}


def called(arguments: str) -> dict[str, Any]:
    """A history in which a call has these arguments."""
    function = {"name": "f", "arguments": arguments}
    call = {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": function}]}
    return {"messages": [ASK["messages"][0], call, ASK["messages"][0]]}


def properties(schema: Callable[[int], dict[str, Any]], count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{place}": schema(place) for place in range(count)}}


def functions(count: int) -> list[dict[str, Any]]:
    return [{"type": "function", "name": f"f{place}"} for place in range(count)]


Made = Callable[[], "bytes | dict[str, Any]"]
CLIENTS: dict[str, tuple[str, Made, set[int]]] = {
    "a name of 1 MB in each chunk": ("chat", lambda: {**ASK, "model": "x" * MEGA, "stream": True}, {400}),
    "UTF-16": ("chat", lambda: json.dumps({**ASK, "user": "\ud800"}).encode("utf-16"), {400}),
    "a bare surrogate": ("responses", lambda: b'{"input": "H\xed\xa0\x80i"}', {400}),
    "a bare surrogate of Anthropic": (
        "messages",
        lambda: json.dumps(BODIES["messages"]).encode().replace(b"Hi", b"\xed\xbf\xbf"),
        {400},
    ),
    "64 long stops": ("chat", lambda: {**ASK, "stop": ["H" * 20_000] * 64}, {400}),
    "9,000 functions in a namespace": (
        "responses",
        lambda: {
            "input": "Hi",
            "tools": [{"type": "namespace", "name": "n", "tools": functions(9_000)}],
        },
        {400},
    ),
    "65 answers of a dear grammar": (
        "chat",
        lambda: {
            **tools(properties(lambda place: {"type": "integer", "maximum": 10**9 + place}, 3_000)),
            "n": 65,
        },
        {400},
    ),
    "the last seed, twice": ("chat", lambda: {**ASK, "n": 2, "seed": 2**63 - 1}, {200}),
    "any number of tokens": ("chat", lambda: {**ASK, "max_tokens": 2**63}, {400}),
    "arguments that nest": ("chat", lambda: called("[" * MEGA + "]" * MEGA), {400, 413}),
    "objects that nest": ("chat", lambda: called('{"a":' * 100_000 + "1" + "}" * 100_000), {400}),
    "arguments of a long number": ("chat", lambda: called('{"a":' + "1" * 5_000 + "}"), {400}),
    "arguments of half a character": ("chat", lambda: called('{"a": "\\ud800"}'), {200, 400}),
}
DEAR: dict[str, tuple[str, Made, set[int]]] = {
    "16 MB of text with commas": (
        "chat",
        lambda: says('"user": "' + ("x" * 50 + ",") * 300_000 + '"'),
        {200},
    ),
    "16 MB of escapes": ("chat", lambda: says(b'"user": "' + b'\\"' * (15 * MEGA // 2) + b'"'), {200}),
    "16 MB of escaped characters": (
        "chat",
        lambda: says(b'"user": "' + b"\\u263a" * (15 * MEGA // 6) + b'"'),
        {200},
    ),
    "16 MB of pairs": (
        "chat",
        lambda: says(b'"user": "' + b"\\ud83d\\ude00" * (15 * MEGA // 12) + b'"'),
        {200},
    ),
    "16 MB of quotes": ("chat", lambda: says(b'"user": ' + b'"' * (15 * MEGA)), {400, 413}),
    "99,000 numbers": ("chat", lambda: says('"user": [1' + (",1" + "0" * 150) * 98_000 + "]"), {200}),
    "long numbers": ("chat", lambda: says('"user": [1' + (",1" + "0" * 4_200) * 3_700 + "]"), {200}),
    "long fractions": ("chat", lambda: says('"user": [1' + (",1." + "1" * 4_200) * 3_700 + "]"), {200}),
    "a reasoning that comes back": (
        "responses",
        lambda: {"input": "Hi", "stream": True, "reasoning": {"x": "x" * 10 * MEGA}},
        {413},
    ),
    "a text that comes back": (
        "responses",
        lambda: {"input": "Hi", "stream": True, "text": {"x": "x" * 10 * MEGA}},
        {413},
    ),
    "a choice that comes back": (
        "responses",
        lambda: {
            "input": "Hi",
            "tools": functions(1),
            "tool_choice": {"type": "function", "name": "f0", "x": "x" * 10 * MEGA},
        },
        {413},
    ),
    "instructions of 1.9 MB": (
        "responses",
        lambda: {"input": "Hi", "stream": True, "instructions": "the weather " * 158_000},
        {200},
    ),
    "calls of other tools": (
        "responses",
        lambda: {
            "input": [
                {"type": "function_call", "name": f"g{n}", "call_id": "c", "arguments": "{}"}
                for n in range(12_000)
            ],
            "tools": functions(12_000),
        },
        {400},
    ),
    "automata that double": (
        "chat",
        lambda: tools(properties(lambda n: {"type": "string", "pattern": f"(a|b)*a(a|b){{{n + 10}}}"}, 150)),
        {200},
    ),
    "11,000 calls in a message": (
        "chat",
        lambda: {
            "messages": [
                *ASK["messages"],
                {
                    "role": "assistant",
                    "tool_calls": [
                        {"id": str(n), "type": "function", "function": {"name": "f", "arguments": "{}"}}
                        for n in range(11_000)
                    ],
                },
                *ASK["messages"],
            ]
        },
        {200, 413},
    ),
    "arguments of 1.9 MB": ("chat", lambda: called(json.dumps({"a": "x y " * 470_000})), {200}),
    "600,000 values in arguments": ("chat", lambda: called('{"a":[' + "[]," * 600_000 + "1]}"), {200, 413}),
    "variables of a template": (
        "chat",
        lambda: {**ASK, "chat_template_kwargs": {f"k{n}" * 100: "x" for n in range(300)}},
        {200},
    ),
    "64 answers": ("chat", lambda: {**ASK, "n": 64, "stream": True}, {200}),
}


OVERFLOWING = '"a": ' + "[" * (DEPTH + 1) + "]" * (DEPTH + 1)
VALUED: dict[str, tuple[str, int, str]] = {
    "1e999": ('"temperature": 1e999', 400, "temperature"),
    "Infinity": ('"temperature": Infinity', 400, "temperature"),
    "400 digits": ('"temperature": 1' + "0" * 400, 400, "temperature"),
    "NaN": ('"metadata": {"a": [NaN]}', 400, "metadata.a[0]"),
    "nesting": (OVERFLOWING, 400, ""),
    "deep nesting": ('"a": ' + "[" * 900 + "]" * 900, 400, ""),
    "many values": ('"a": [' + "[]," * (VALUES // 2 + 1) + "0]", 413, ""),
    "a long number": ('"seed": ' + "1" * 5000, 400, ""),
}
"""A field of a request, the status, and the path that is named."""
PATHED = {
    **{
        f"{name}, {api}": (api, lambda body=body, field=field: says(field, body), {status}, path)
        for name, (field, status, path) in VALUED.items()
        for api, body in {**BODIES, "count": ASK}.items()
    },
    "a long text of metadata": (  # Responses alone repeats them
        "responses",
        lambda: {"input": "Hi", "metadata": {"a": "x" * 600}},
        {400},
        "metadata.a",
    ),
}
SENT = {
    **{name: (*row, "") for name, row in {**CLIENTS, **DEAR}.items()},
    **PATHED,
}


@pytest.mark.filterwarnings("ignore:template_kwargs")  # a server logs it, and answers
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.nightly, id=one) if one in DEAR else one for one in SENT]
)
def test_what_clients_send(name: str, target: Target, capsys: Any) -> None:
    """Each API says in its own shape what is wrong and where; nothing is a failure of the server."""
    api, make, statuses, path = SENT[name]
    body, before = make(), target.forget_peak()
    answer = target.post(api, body)
    assert answer.status_code in statuses and len(answer.content) <= 8 * MEGA, answer.text[:200]
    if answer.status_code != 200:
        error = told("messages" if api == "count" else api, answer).error
        assert error is not None
        said = error.get("param") or error["message"].partition(": ")[0]
        assert path in (said, ""), error
    assert target.peak() - before < MEMORY
    target.stands()
    assert "Traceback" not in capsys.readouterr().err


def test_counting_values_takes_no_memory() -> None:
    """The commas of a text are no values; a regular expression that knows this took a hundred times its size."""
    raw = b'{"a": "' + b'x\\", ' * 250_000 + b'"}'
    tracemalloc.start()
    try:
        Account(Settings()).values(raw)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(raw)
    finally:
        tracemalloc.stop()


def test_what_is_warned_of_is_forgotten() -> None:
    """`warnings` and a chat remember each text, and a stranger can make any number of them."""
    chat = chatparsers.load(template="qwen3")
    for number in range(300):
        tool = {"name": f"f{number}" * 500, "parameters": {"properties": {"x": {"type": "str"}}}}
        with pytest.warns(UserWarning, match=r"reads no variable 'k|found others"):
            chat.prepare(ASK["messages"], tools=[tool], template_kwargs={f"k{number}" * 9_000: 1})
    assert len(errors._warned) < 300 and len(chat._warned) < 300
    texts = [key if isinstance(key, str) else key[0] for key in errors._warned]
    assert max(map(len, texts)) < 1_010 and max(map(len, chat._warned)) < 1_010


# connections


def head(*lines: str, host: str = "localhost", kind: str = "application/json") -> bytes:
    first = f"POST {PATHS['chat']} HTTP/1.1\r\nhost: {host}\r\ncontent-type: {kind}\r\n"
    return (first + "".join(f"{line}\r\n" for line in lines) + "\r\n").encode()


RAW = json.dumps(ASK).encode()
LENGTH, CHUNKED, CLOSE = f"content-length: {len(RAW)}", "transfer-encoding: chunked", "connection: close"
FAR = "content-length: 99999999999"


def each(
    what: str, head_of: Callable[[str], bytes], statuses: dict[str, int]
) -> dict[str, tuple[bytes, set[int]]]:
    """A request for each value of a header, and the status that it should get."""
    return {f"the {what} {name}": (head_of(name) + RAW, {status}) for name, status in statuses.items()}


WIRES: dict[str, tuple[bytes, set[int]]] = {
    **each(
        "host",
        lambda name: head(LENGTH, CLOSE, host=name),
        {
            "127.0.0.1.evil.example": 403,
            "2130706433": 403,
            "[::1].evil.example": 403,
            "evil.example@localhost": 403,
            "localhost,evil.example": 403,
            "localhost.evil.example:80": 403,
            "": 403,
            "LOCALHOST.:99": 200,
            "localhost:8000": 200,
            "127.0.0.1": 200,
            "192.168.1.7:8000": 200,
            "[::1]:8": 200,
        },
    ),
    "two hosts": (head(LENGTH, CLOSE, "host: evil.example") + RAW, {400}),
    "no host": (head(LENGTH).replace(b"HTTP/1.1\r\nhost: localhost", b"HTTP/1.0") + RAW, {403}),
    **each(
        "origin",
        lambda name: head(LENGTH, CLOSE, f"origin: {name}"),
        {
            "https://evil.example": 403,
            "http://localhost:1": 403,
            "null": 403,
            "file://": 403,
            "http://localhost": 200,
        },
    ),
    **each(
        "kind",
        lambda name: head(LENGTH, CLOSE, kind=name),
        {
            "text/plain": 415,
            "application/json, text/plain": 415,
            "application/x-www-form-urlencoded": 415,
            "multipart/form-data; boundary=x": 415,
            "": 415,
            "Application/JSON; charset=utf-8": 200,
        },
    ),
    "a coding": (head(LENGTH, CLOSE, "content-encoding: gzip") + RAW, {415}),
    "two lengths": (head(LENGTH, "content-length: 5", CLOSE) + RAW, {400}),
    "a length and chunks": (
        head(LENGTH, CHUNKED) + b"%x\r\n%b\r\n0\r\n\r\n" % (len(RAW), RAW),
        {400},
    ),
    "a length below 0": (head("content-length: -5"), {400}),
    "a length without an end": (head(FAR), {408}),
    "half a body": (head(FAR) + b"{", {408}),
    "a body of 17 MB": (
        head(CHUNKED, CLOSE) + (b"ffff\r\n" + b"x" * 65_535 + b"\r\n") * 260 + b"0\r\n\r\n",
        {413},
    ),
    "a head of 10 MB": (head()[:-2] + b"x: y\r\n" * 1_700_000, {400}),
    "one header of 10 MB": (head()[:-2] + b"x: " + b"y" * 10_000_000, {400}),
    "a chunk's head of 5 MB": (head(CHUNKED, CLOSE) + b"1;" + b"x" * 5_000_000, {400}),
    "trailers of 3 MB": (
        head(CHUNKED, CLOSE) + b"%x\r\n%b\r\n0\r\n" % (len(RAW), RAW) + b"a: b\r\n" * 500_000 + b"\r\n",
        {400},
    ),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", {400}),
    "a path of no ASCII": (b"GET /\xff\xfe%ff HTTP/1.1\r\nhost: localhost\r\n\r\n", {400}),
    "an upgrade": (
        b"GET /v1/models HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade, close\r\n"
        b"sec-websocket-key: eA==\r\nsec-websocket-version: 13\r\n\r\n",
        {200, 400},  # where WebSockets are spoken, it is a bad one
    ),
}


@pytest.mark.parametrize("name", WIRES)
def test_what_comes_over_the_wire(name: str, target: Target, capsys: Any) -> None:
    (raw, statuses), before = WIRES[name], target.forget_peak()
    with socket.create_connection(("127.0.0.1", target.port), 30) as client:
        with suppress(ConnectionError):
            client.sendall(raw)
        found = client.recv(65_536).split(b"\r\n")[0]
    assert any(found.startswith(b"HTTP/1.1 %d " % status) for status in statuses), found
    assert target.peak() - before < 50
    target.stands()
    assert "Traceback" not in capsys.readouterr().err


def test_clients_that_take_nothing(target: Target, pytestconfig: Any) -> None:
    """Requests without a key, and a whole answer, that nobody reads: no slot and no connection is held."""
    asks = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n" * 1_000
    whole = json.dumps({"input": "Hi", "instructions": "the weather " * 150_000}).encode()
    rows = [asks, _responses(len(whole)) + whole] if pytestconfig.getoption("--nightly") else [asks]
    with socket.socket() as first, socket.socket() as second:
        clients = (first, second)[: len(rows)]
        for client, raw in zip(clients, rows, strict=True):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", target.port))
            client.settimeout(20)
            client.sendall(raw)
        target.stands()
        for client in clients:
            soon(lambda client=client: _closed(client, target.port), 20)
    target.stands()


def _responses(size: int) -> bytes:
    first = f"POST {PATHS['responses']} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    return f"{first}content-length: {size}\r\n\r\n".encode()


def _closed(client: socket.socket, port: int) -> bool:
    """Whether the server has given a connection up, as the system sees it."""
    own = f"0100007F:{client.getsockname()[1]:04X}"
    for line in Path("/proc/net/tcp").read_text().splitlines():
        _, local, remote, state, *_ = line.split()
        if local == f"0100007F:{port:04X}" and remote == own:
            return state != "01"
    return True


# what engines send


def piece(text: str) -> bytes:
    ids = tiny_model("qwen3").tokenizer.encode(text, add_special_tokens=False).ids
    return llama_piece(text, ids)


def say(**event: Any) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


class Case(NamedTuple):
    """What an engine sends, and what clients read of it.

    ``said``: words of the error that it ends with; None: it is whole. ``text``: the content, as far as it comes; None:
    any. ``status``: of an answer that is not streamed. ``dear``: in one of the six ways, and in all ``--nightly``."""

    act: bytes | Callable[[Wire], Any]
    said: str | None = None
    text: str | None = ""
    status: int = 502
    dear: bool = False


def statuses(status: int) -> Callable[[Wire], Any]:
    async def act(wire: Wire) -> None:
        await wire.head(status, "application/json")
        await wire.send(b'{"error": {"message": "boom"}}')
        await wire.end()

    return act


async def dies(wire: Wire) -> None:
    await wire.head()
    await wire.send(HELD)
    await asyncio.sleep(0.05)
    wire.die()


async def stalls(wire: Wire) -> None:
    await wire.head()
    await wire.send(HELD + GOOD[:30])
    await asyncio.sleep(30)


async def keeps_saying_nothing(wire: Wire) -> None:
    await wire.head()
    await wire.send(HELD)
    for _ in range(300):
        await wire.send(say(content="", tokens=[]) + b": waiting\n\n")
        await asyncio.sleep(0.1)


async def endless(wire: Wire) -> None:
    await wire.head()
    while True:
        await wire.send(piece("the weather ") * 200)


async def endless_error(wire: Wire) -> None:
    await wire.head(500, "text/plain")
    while True:
        await wire.send(b"x" * 100_000)


async def floods_its_head(wire: Wire) -> None:
    wire._writer.write(b"HTTP/1.1 200 X\r\n" + b"x: y\r\n" * 200_000)
    await wire._writer.drain()
    wire.die()


async def speaks_no_http(wire: Wire) -> None:
    wire._writer.write(b"SSH-2.0-OpenSSH\r\n")
    await wire._writer.drain()
    wire.die()


HALF = "Half an ans <tool_c"
"""A call may begin in it. What was held of it comes too."""
HELD = piece(HALF)
GOOD = piece("Hello.") + llama_end()
END = llama_end()
MANY = b",".join([b"5"] * 50_000)
ACTS = {
    "CRLF": Case(GOOD.replace(b"\n", b"\r\n")),
    "no space": Case(GOOD.replace(b"data: ", b"data:")),
    "comments and fields": Case(b": hi\n\n:\n\nevent: message\nid: 5\nretry: 10\n" + GOOD),
    "a byte order mark": Case(b"\xef\xbb\xbf" + GOOD),
    "200,000 empty lines": Case(b"\n" * 200_000 + GOOD, dear=True),
    "20,000 empty events": Case(say(content="", tokens=[]) * 20_000 + GOOD, dear=True),
    "an end, twice": Case(GOOD + END),
    "more cached than there was": Case(GOOD.replace(b'"cache_n": 0', b'"cache_n": 1000')),
    "an id that is none": Case(say(content="Hello.", tokens=[10**20 - 1]) + END, text="Hello.\ufffd"),
    "a connection that breaks": Case(dies, "connection to the engine broke", HALF),
    "no end": Case(HELD, "in the middle of the answer", HALF),
    "empty events for ever": Case(keeps_saying_nothing, "nothing but empty events", HALF, 504, dear=True),
    "half an event": Case(stalls, "the engine was silent for", HALF, 504, dear=True),
    "no JSON": Case(HELD + b"data: {not json\n\n", "no JSON object: b'{not json'", HALF),
    "an error": Case(
        HELD * 3 + say(error={"message": "out of memory"}), "the engine failed: out of memory", HALF * 3
    ),
    "an error's line": Case(HELD + b'error: {"message": "boom"}\n\n', "the engine failed: boom", HALF),
    "an error's text": Case(HELD + say(error="boom"), "the engine failed: boom", HALF),
    "CR alone": Case(GOOD.replace(b"\n\n", b"\r\r"), "what is no JSON object"),
    "a NUL": Case(b"\x00" + GOOD, "a line that is no event"),
    "no UTF-8": Case(GOOD.replace(b"Hello", b"He\xffllo"), "what is no JSON object"),
    "bytes of a surrogate": Case(GOOD.replace(b"Hello", b"He\xed\xa0\x80llo"), "what is no JSON object"),
    "an event in two lines": Case(
        b'data: {"content": "a",\ndata: "stop": false}\n\n' + END, "what is no JSON object"
    ),
    "two objects": Case(b'data: {"content": "a"}{"content": "b"}\n\n' + END, "what is no JSON object"),
    "a list": Case(b"data: [1]\n\n" + END, "no JSON object: b'[1]'"),
    "null": Case(b"data: null\n\n" + END, "no JSON object: b'null'"),
    "nesting": Case(
        b"data: " + b'{"a":' * 200_000 + b"1" + b"}" * 200_000 + b"\n\n" + END,
        "what is no JSON object",
        dear=True,
    ),
    "ids that nest": Case(
        b'data: {"tokens": ' + b"[" * 20_000 + b"]" * 20_000 + b"}\n\n" + END, "what is no JSON object"
    ),
    "ids that are texts": Case(say(content="a", tokens=["x"]) + END, "id that is no whole number"),
    "ids that are fractions": Case(say(content="a", tokens=[1.5]) + END, "id that is no whole number"),
    "ids that are nothing": Case(say(content="a", tokens=[None]) + END, "id that is no whole number"),
    "ids that are negative": Case(say(content="a", tokens=[-1]) + END, "id that is no whole number"),
    "content that is a list": Case(say(content=["a"], tokens=[1]) + END, "a list for a text"),
    "content that is a number": Case(say(content=5, tokens=[1]) + END, "a number for a text"),
    "a count that is a text": Case(
        say(content="", stop=True, tokens_evaluated="5") + END, "'5' for a count of tokens"
    ),
    "a count that is negative": Case(
        say(content="", stop=True, tokens_predicted=-5) + END, "-5 for a count of tokens"
    ),
    "a count that no engine reaches": Case(
        say(content="", stop=True, tokens_evaluated=10**400) + END, "too large a number for a count of tokens"
    ),
    "a count that is true": Case(
        GOOD.replace(b'"tokens_predicted": 3', b'"tokens_predicted": true'),
        "True for a count of tokens",
        "Hello.",
    ),
    "more tokens than it was asked for": Case(
        b'data: {"content": "", "tokens": [' + MANY + b"]}\n\n" + END,
        "more tokens than it was asked for",
        dear=True,
    ),
    "a page": Case(b"<html>\n<body>\n</html>\n", "no event: b'<html>'"),
    "another JSON": Case(b'{"content": "Hello."}', "a line that is no event"),
    "another JSON after a piece": Case(
        HELD + b'{"content": "more"}\n' + END, "a line that is no event", HALF
    ),
    "17 MB of text": Case(
        say(content="x" * 17_000_000, tokens=[5]) + END,
        "more than 16,000,000 characters for one answer",
        None,
        dear=True,
    ),
    "an answer without an end": Case(endless, "more tokens than it was asked for", None, dear=True),
    "an error without an end": Case(endless_error, "with the status 500: xxx", dear=True),
    "a flood of headers": Case(floods_its_head, "connection to the engine broke"),
    "no HTTP": Case(speaks_no_http, "connection to the engine broke"),
    "the status 400": Case(statuses(400), "refuses the request: boom", status=400),
    "the status 429": Case(statuses(429), "the engine is busy: boom", status=429),
    "the status 503": Case(statuses(503), "the engine is busy: boom", status=503),
    **{
        f"the status {status}": Case(statuses(status), f"with the status {status}: ")
        for status in (204, 301, 401, 404, 418, 500, 599)
    },
}
CODES = {
    400: ("engine_refused",),
    429: ("engine_busy",),
    503: ("engine_busy",),
    504: ("engine_timeout",),
}
ENGINES = {str(number): case.act for number, case in enumerate(ACTS.values())}


@pytest.mark.parametrize("name", ACTS)
def test_what_engines_send(name: str, target: Target, pytestconfig: Any, capsys: Any) -> None:
    """What is whole is a whole answer. All else is an error of the client's API: a status where nothing came before it,
    else an event after all that came."""
    case, number, before = ACTS[name], [*ACTS].index(name), target.forget_peak()
    all_ways = pytestconfig.getoption("--nightly") or not case.dear
    for api, stream in WAYS if all_ways else [WAYS[number % len(WAYS)]]:
        more = {"seed": number, "stream": stream, "tools": tools_of(api, {"name": "f"})}
        answer = post(target.url, api, **more)
        found, where = (
            told(api, answer),
            f"{api}, stream: {stream}: {answer.status_code} {answer.text[-200:]}",
        )
        if case.said is None:
            assert (found.error, found.content) == (None, case.text or "Hello."), where
            continue
        assert found.error is not None and case.said in found.error["message"], where
        if answer.status_code == 200:
            assert stream and case.text in (found.content, None), where
            continue
        assert answer.status_code == case.status and not (stream and case.text), where
        assert len(answer.content) < 2000, "an error is read to a bound"
        assert ("retry-after" in answer.headers) == (case.status in (429, 503)), where
        codes = CODES.get(case.status, ("engine_error", "engine_ended"))
        assert api == "messages" or found.error["code"] in codes, where
    assert target.peak() - before < MEMORY
    target.stands()
    assert "Traceback" not in capsys.readouterr().err


def test_files_may_be_as_many_as_the_system_allows(monkeypatch: Any, capsys: Any) -> None:
    resource = pytest.importorskip("resource", reason="this system has no such limits")
    from chatparsers.operate import serve

    asked: list[Any] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    serve._open_files(1024)
    assert asked == [(4096, 4096)] and not capsys.readouterr().err
    serve._open_files(4096)
    assert "too few for --concurrency 4096" in capsys.readouterr().err
    assert os.name == "posix"
