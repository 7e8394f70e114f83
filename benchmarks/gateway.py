"""Measures the gateway under load, beside a bare pass-through proxy of the same stack, over a scripted engine.

    python benchmarks/gateway.py                    # start, memory; 20 and 500 streams; 100 paced ones; 10,000 requests
    python benchmarks/gateway.py --streams 50 --open 100 --paced 20 --requests 500
    python benchmarks/gateway.py --minutes 10       # 1,000 open streams for so long; then 20,000 requests
    python benchmarks/gateway.py --rows             # each API beside the engine itself, with a store and without
    python benchmarks/gateway.py --beside DIR       # what a request costs, beside another checkout

Engine, proxy, gateway and clients are processes of this machine. The engine writes the events of llama-server, each
token with its id; the proxy hands the bytes on. Throughput: all streams at once, as fast as they go. Latency: paced
streams; a token's text has the time at which the engine sent it, and the client subtracts. Proxy and gateway take turns
and change who is first, so that the machine's other work meets both. What the gateway adds is the median of the rounds'
differences. CPU is the process's own (user and system), RSS is read from /proc. The start is that of the command
``chatparsers serve`` with the files of a tiny model, until it says where it listens.

``--beside`` compares two checkouts, on a noisy machine too: the CPU time of their gateways' processes, in many short
rounds in which they take turns. A second process of this checkout takes turns with them, and shows what the measure
makes of no difference.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "note",
            "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
        },
    }
]
STAMP = 12
"""How many tokens the text of a time has: the engine must not write more than it is asked for."""
PATH = {
    "proxy": "/completion",
    "gateway": "/v1/chat/completions",
    "plain": "/v1/chat/completions",
    "whole": "/v1/chat/completions",
    "messages": "/v1/messages",
    "responses": "/v1/responses",
}
"""Where each kind of request goes. ``plain`` has no tools, ``whole`` is not streamed."""
END = {
    "proxy": b'"stop": true',
    "gateway": b"[DONE]",
    "plain": b"[DONE]",
    "whole": b'"usage":',
    "messages": b"event: message_stop",
    "responses": b"event: response.completed",
}
"""What each kind of answer has at its end."""
ENOUGH = 100_000
"""How many tokens a round has at least: few streams run several times."""


# the engine


def events(tokens: int, call: bool = True) -> list[bytes]:
    """An answer of so many tokens: reasoning, content and, if asked for, a call, in equal parts. The call is whole, if
    there are enough."""
    from chatparsers.testing.tiny import tiny_model

    model = tiny_model("qwen3")

    def encoded(text: str) -> list[int]:
        found: list[int] = model.tokenizer.encode(text, add_special_tokens=False).ids
        return found

    openers = [
        encoded(text)
        for text in (
            "<think>\n",
            "\n</think>\n\n",
            '\n<tool_call>\n{"name": "note", "arguments": {"text": "',
        )[: 3 if call else 2]
    ]
    closer = [*(encoded('"}}\n</tool_call>') if call else ()), model.eos_ids[0]]
    left = tokens - sum(map(len, openers)) - len(closer)
    words = encoded("the weather is of and in a tool to you days name " * (max(left, 0) // 4 + 1))
    each = max(left, 0) // len(openers)
    ids = [id for opener in openers for id in (*opener, *words[:each])]
    ids += words[: max(left, 0) - each * len(openers)]
    ids = [*ids, *closer] if left >= 0 else [*ids[: tokens - 1], model.eos_ids[0]]
    spelt = [model.tokenizer.decode([id], skip_special_tokens=False) for id in ids]
    made = []
    for id, text in zip(ids, spelt, strict=True):
        made.append(frame({"index": 0, "content": text, "tokens": [id], "stop": False}))
    return made


def frame(data: dict[str, Any]) -> bytes:
    raw = b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(raw), raw)


async def engine() -> None:
    """Answers with as many tokens as ``n_predict`` says; paced, and with times as texts, if ``temperature`` is set."""
    from chatparsers.testing.tiny import tiny_model

    tokenizer = tiny_model("qwen3").tokenizer
    digits = [tokenizer.encode(str(digit), add_special_tokens=False).ids[0] for digit in range(10)]
    space = tokenizer.encode(" ", add_special_tokens=False).ids[0]
    kept: dict[tuple[int, bool], list[bytes]] = {}
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    last = {"content": "", "tokens": [], "stop": True, "stop_type": "eos", "tokens_evaluated": 9}

    def stamped() -> bytes:
        text = f"{time.monotonic():.6f}".replace(".", "") + " "
        ids = [digits[int(char)] for char in text[:-1]] + [space]
        return frame({"index": 0, "content": text, "tokens": ids, "stop": False})

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked_for = (await reader.readuntil(b"\r\n\r\n")).lower()
                if asked_for.startswith(b"get "):
                    writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                    continue
                size = int(re.search(rb"content-length: (\d+)", asked_for)[1])  # type: ignore[index]
                body = json.loads(await reader.readexactly(size))
                if body.get("logit_bias"):
                    id = body["logit_bias"][0][0]
                    said = {"content": tokenizer.id_to_token(id), "tokens": [id], "stop": False}
                    writer.write(head + frame(said))
                else:
                    tokens, pace = body.get("n_predict", 1), body.get("temperature", 0)
                    writer.write(head)
                    if pace:
                        for _ in range(tokens // STAMP):
                            writer.write(stamped())
                            await writer.drain()
                            await asyncio.sleep(pace)
                    else:
                        asked = tokens, "grammar" in body  # which it has for tools
                        if asked not in kept:
                            kept[asked] = events(*asked)
                        for made in kept[asked]:
                            writer.write(made)
                            await writer.drain()
                            await asyncio.sleep(0)
                writer.write(frame({**last, "tokens_predicted": body.get("n_predict", 1)}) + b"0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# the servers


def serve(app: Any, beats: str | None = None, **options: Any) -> None:
    import uvicorn

    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    config = uvicorn.Config(app, log_level="critical", access_log=False, **options)

    async def run() -> None:
        beating = asyncio.create_task(beat(beats)) if beats is not None else None
        await uvicorn.Server(config).serve(sockets=[listening])
        assert beating is None or not beating.done()

    print(listening.getsockname()[1], flush=True)
    asyncio.run(run())


async def beat(path: str) -> None:
    """Writes when the event loop was held, and for how many seconds of this process's CPU: however busy the machine is
    with other work, that is what all streams wait for."""
    with open(path, "w", encoding="utf-8") as file:
        before = time.process_time()
        while True:
            await asyncio.sleep(0.002)
            now = time.process_time()
            if now - before > 0.002:
                print(time.monotonic(), now - before, file=file, flush=True)
            before = now


def proxy(engine_port: int) -> None:
    """The least that a proxy can do on this stack: it hands the engine's bytes on."""
    import httpx2
    from starlette.applications import Starlette
    from starlette.responses import StreamingResponse
    from starlette.routing import Route

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=256)
    client = httpx2.AsyncClient(base_url=f"http://127.0.0.1:{engine_port}", timeout=300, limits=limits)

    async def passed(request: Any) -> Any:
        sent = client.build_request("POST", "/completion", content=await request.body())
        response = await client.send(sent, stream=True)

        async def pieces() -> Any:
            async for piece in response.aiter_bytes():
                yield piece
            await response.aclose()

        return StreamingResponse(pieces(), media_type="text/event-stream")

    serve(Starlette(routes=[Route("/completion", passed, methods=["POST"])]))


def gateway(
    engine_port: int, tokenizer: str | None = None, beats: str | None = None, store: str | None = None
) -> None:
    """The gateway. ``tokenizer``: the path of one to use instead of the tiny model's, and ``beats``: the file that
    `beat` writes, both for `benchmarks/cost.py`. ``store``: where responses are kept."""
    import chatparsers
    from chatparsers.gateway import LlamaServer, Settings, create_app
    from chatparsers.gateway.server import timed_protocol
    from chatparsers.testing.tiny import tiny_model

    sys.setswitchinterval(0.001)  # as `chatparsers serve` does
    chat = (
        tiny_model("qwen3").chat
        if tokenizer is None
        else chatparsers.load(template="qwen3", tokenizer=tokenizer)
    )
    settings = Settings() if store is None else Settings(store=store)
    app = create_app(chat, LlamaServer(f"http://127.0.0.1:{engine_port}"), settings)
    chat.warm()
    gc.collect()
    gc.freeze()  # as the command does
    serve(app, beats, http=timed_protocol())


# the clients


def request(kind: str, tokens: int, pace: float) -> bytes:
    body: dict[str, Any] = {"stream": True, "temperature": pace}
    if kind in ("gateway", "plain", "whole", "messages"):
        body |= {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": tokens}
        body |= {"stream": kind != "whole"}
        if kind == "messages":
            function = TOOLS[0]["function"]
            body["tools"] = [{"name": function["name"], "input_schema": function["parameters"]}]
        elif kind != "plain":
            body["tools"] = TOOLS
    elif kind == "responses":
        tools = [{"type": "function", **tool["function"]} for tool in TOOLS]
        body |= {"input": "Hi", "tools": tools, "max_output_tokens": tokens}
    else:
        body |= {"prompt": "Hi", "n_predict": tokens}
    raw = json.dumps(body).encode()
    head = f"POST {PATH[kind]} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    if kind == "whole":
        head += "connection: close\r\n"
    return f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw


async def stream(
    port: int, asked: bytes, late: list[float] | None, first: list[float] | None = None
) -> bytes:
    """The whole response to a request. ``late``: takes the seconds that each stamped token was under way, ``first``
    those to the first byte."""
    begun = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(asked)
    pieces: list[bytes] = []
    while True:
        piece = await reader.read(1 << 16)
        if first is not None and not pieces:
            first.append(time.perf_counter() - begun)
        if late is not None:
            now = time.monotonic()
            late += [now - int(text) / 1e6 for text in re.findall(rb"(\d{7,}) ", piece)]
        pieces.append(piece)
        if not piece or piece.endswith(b"0\r\n\r\n"):
            break
    writer.close()
    return b"".join(pieces)


async def load(
    port: int,
    kind: str,
    streams: int,
    tokens: int,
    pace: float,
    late: list[float] | None,
    ramp: float | None = None,
) -> int:
    """Runs the streams at once, and returns how many lost their end. Paced ones have so many times as texts, and
    do not all write at once: they begin one after another within ``ramp`` seconds."""
    asked = request(kind, tokens * STAMP if pace else tokens, pace)
    marks = {"gateway": b'"finish_reason":"stop"' if pace else b'"finish_reason":"tool_calls"'}
    mark, end = marks.get(kind, b""), END[kind]

    async def one(place: int) -> bytes:
        await asyncio.sleep((pace if ramp is None else ramp) * place / streams)
        return await stream(port, asked, late)

    results = await asyncio.gather(*map(one, range(streams)), return_exceptions=True)
    whole = [found for found in results if isinstance(found, bytes) and mark in found and end in found]
    for found in [found for found in results if found not in whole][:3]:
        print("lost:", str(found)[-300:], file=sys.stderr)
    return streams - len(whole)


async def many(port: int, kind: str, requests: int, at_once: int, tokens: int) -> int:
    asked = request(kind, tokens, 0)
    left = requests
    lost = 0

    async def one() -> None:
        nonlocal left, lost
        while left > 0:
            left -= 1
            found = await stream(port, asked, None)
            lost += END[kind] not in found

    await asyncio.gather(*(one() for _ in range(at_once)))
    return lost


# measuring


def cpu(pid: int) -> float:
    """Seconds of CPU that a process has taken, user and system, to the microsecond."""
    return time.clock_gettime((~pid << 3) | 2)  # Linux's clock of a process (clock_getcpuclockid)


class Process:
    """A role of this script as a process, with the package of the checkout ``at``. ``port``: where it listens."""

    def __init__(self, role: str, *arguments: object, at: Path = ROOT) -> None:
        command = [
            sys.executable,
            __file__,
            "--role",
            role,
            *map(str, arguments),
        ]
        env = {**os.environ, "PYTHONPATH": str(at)}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        return cpu(self.process.pid)

    def rss(self) -> float:
        """Resident memory in MB."""
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


async def settled(port: int, kind: str) -> None:
    """Waits until the server answers."""
    for _ in range(200):
        try:
            if b"200" in (await stream(port, request(kind, 3, 0), None))[:20]:
                return
        except OSError:
            pass
        await asyncio.sleep(0.1)
    raise SystemExit(f"{kind}: it did not start")


async def requests(server: Process, number: int) -> None:
    """Prints the memory of the gateway over so many requests."""
    print(f"\n{number:,} requests of 20 tokens, 50 at once: the gateway's memory\n")
    print("| requests | RSS MB | lost |\n|---:|---:|---:|", flush=True)
    done = 0
    for share in (0.1, 0.4, 0.7, 1.0):
        more = int(number * share) - done
        lost = await many(server.port, "gateway", more, 50, 20)
        done += more
        print(f"| {done:,} | {server.rss():.1f} | {lost} |", flush=True)


def turns(rounds: int) -> list[str]:
    """Who is measured when: both in each round, and another first each time."""
    return [kind for number in range(rounds) for kind in ("proxy", "gateway")[:: -1 if number % 2 else 1]]


@contextmanager
def model_files() -> Iterator[Path]:
    """A folder with what the gateway reads of a model."""
    from chatparsers.testing.tiny import tiny_model

    model = tiny_model("qwen3")
    with TemporaryDirectory() as name:
        folder = Path(name)
        model.tokenizer.save(str(folder / "tokenizer.json"))
        config = {"chat_template": model.template, "eos_token": model.eos_token}
        (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
        yield folder


def start(engine_port: int) -> float:
    """The seconds of CPU that the command takes until it says where it listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with model_files() as folder:
        command = [sys.executable, "-m", "chatparsers", "serve", "--model", str(folder), "--port", str(port)]
        command += ["--upstream", f"http://127.0.0.1:{engine_port}", "--upstream-kind", "llama-server"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            said = process.stdout.readline()
            taken = cpu(process.pid)
            process.kill()
    assert "at http" in said
    return taken


async def memory(server: Process, streams: int) -> float:
    """The kB that an open stream takes: one piece of each has come, and none has ended."""
    before, late = server.rss(), list[float]()
    opened = asyncio.create_task(load(server.port, "gateway", streams, 1, 15.0, late, 1.0))
    while len(late) < streams:
        await asyncio.sleep(0.1)
    held = (server.rss() - before) * 1e3 / streams
    if await opened:
        raise SystemExit("memory: streams were lost")
    return held


async def speed(servers: dict[str, Process], streams: int, options: argparse.Namespace) -> None:
    """Prints the tokens/s of both, their CPU, and the ratios of both."""
    each = streams * options.tokens
    times = -(-ENOUGH // each)
    print(f"\n{streams} streams of {options.tokens} tokens at once (best of {options.rounds})\n")
    speeds: dict[str, list[float]] = {kind: [] for kind in servers}
    costs: dict[str, list[float]] = {kind: [] for kind in servers}
    lost = dict.fromkeys(servers, 0)
    for kind in turns(options.rounds):
        server = servers[kind]
        before, start = server.cpu(), time.perf_counter()
        for _ in range(times):
            lost[kind] += await load(server.port, kind, streams, options.tokens, 0, None)
        speeds[kind].append(each * times / (time.perf_counter() - start))
        costs[kind].append((server.cpu() - before) / (each * times) * 1e6)
    print("| server | tokens/s | CPU µs a token | lost |\n|---|---:|---:|---:|")
    for kind in servers:
        print(f"| {kind} | {max(speeds[kind]):,.0f} | {min(costs[kind]):.1f} | {lost[kind]} |")

    def pairs(values: dict[str, list[float]]) -> str:
        found = [ours / bare for ours, bare in zip(values["gateway"], values["proxy"], strict=True)]
        return f"{statistics.median(found):.2f} ({min(found):.2f} to {max(found):.2f})"

    print(
        f"\nratio of tokens/s: {max(speeds['gateway']) / max(speeds['proxy']):.2f}; median of the rounds "
        f"{pairs(speeds)}; of CPU {pairs(costs)}",
        flush=True,
    )


async def measure(options: argparse.Namespace) -> None:
    engine_process = Process("engine")
    servers = {kind: Process(kind, "--engine", engine_process.port) for kind in ("proxy", "gateway")}
    try:
        for kind, server in servers.items():
            await settled(server.port, kind)
        taken = [start(engine_process.port) for _ in range(options.rounds)]
        print(f"\nstart: {min(taken):.2f} s of CPU (least of {options.rounds})")
        held = await memory(servers["gateway"], options.open)
        print(f"an open stream: {held:.0f} kB, of {options.open:,} at once", flush=True)
        for kind, server in servers.items():
            await load(server.port, kind, 20, options.tokens, 0, None)
        for streams in options.streams:
            await speed(servers, streams, options)
        rate = 1 / options.pace
        print(f"\n{options.paced} paced streams, {rate:.0f} tokens/s each: ms from engine to client\n")
        cuts: dict[str, list[list[float]]] = {kind: [] for kind in servers}
        lost = dict.fromkeys(servers, 0)
        for kind in turns(options.rounds + 2):
            late: list[float] = []
            lost[kind] += await load(servers[kind].port, kind, options.paced, 100, options.pace, late)
            cuts[kind].append(statistics.quantiles([value * 1e3 for value in late], n=100))
        print("| server | p50 | p99 | lost |\n|---|---:|---:|---:|")
        middle = statistics.median
        for kind, found in cuts.items():
            halves, ends = middle(cut[49] for cut in found), middle(cut[98] for cut in found)
            print(f"| {kind} | {halves:.1f} | {ends:.1f} | {lost[kind]} |")
        pairs = list(zip(cuts["gateway"], cuts["proxy"], strict=True))
        added = [middle(ours[place] - bare[place] for ours, bare in pairs) for place in (49, 98)]
        print(f"| added | {added[0]:+.1f} | {added[1]:+.1f} | |", flush=True)
        await requests(servers["gateway"], options.requests)
    finally:
        for process in (*servers.values(), engine_process):
            process.close()


class Row:
    """What one server takes for one kind of request, round by round."""

    def __init__(self, name: str, server: Process, kind: str, before: str | None = None) -> None:
        self.name, self.server, self.kind, self.before = name, server, kind, before
        self.rate: list[float] = []
        self.first: list[float] = []
        self.request: list[float] = []
        self.piece: list[float] = []
        self.lost = 0

    async def measure(self, number: int, tokens: int) -> None:
        """One round: requests of 20 tokens, 50 at once; a few one after another; 20 long streams at once."""
        port, kind = self.server.port, self.kind
        used, begun = self.server.cpu(), time.perf_counter()
        self.lost += await many(port, kind, number, 50, 20)
        self.rate.append(number / (time.perf_counter() - begun))
        self.request.append((self.server.cpu() - used) / number * 1e6)
        first: list[float] = []
        for _ in range(50):
            await stream(port, request(kind, 20, 0), None, first)
        self.first.append(statistics.median(first) * 1e3)
        used = self.server.cpu()
        self.lost += await load(port, kind, 20, tokens, 0, None)
        self.piece.append((self.server.cpu() - used) / (20 * tokens) * 1e6)


async def rows(options: argparse.Namespace) -> None:
    """Prints what each API costs beside the engine itself. All take turns in each round; medians over the rounds."""
    engine_process = Process("engine")
    with TemporaryDirectory() as folder:
        plain, memory, file = (
            Process("gateway", "--engine", engine_process.port, *more)
            for more in ((), ("--store", "memory"), ("--store", folder))
        )
        made = [
            Row("the engine itself", engine_process, "proxy"),
            Row("chat completions", plain, "gateway"),
            Row("responses", plain, "responses"),
            Row("responses, kept in memory", memory, "responses", "responses"),
            Row("responses, kept in a file", file, "responses", "responses"),
        ]
        try:
            for row in made:
                await settled(row.server.port, row.kind)
                await load(row.server.port, row.kind, 20, options.tokens, 0, None)
            for number in range(options.rounds):
                for row in made[:: -1 if number % 2 else 1]:
                    await row.measure(options.requests // 10, options.tokens)
        finally:
            for process in {row.server for row in made}:
                process.close()
    print("| | requests/s | first byte, ms | CPU, µs a request | CPU, µs a piece | lost |")
    print("|---|---:|---:|---:|---:|---:|")
    middle = statistics.median
    by_name = {row.name: row for row in made}
    for row in made:
        costs = f"{middle(row.request):,.0f} | {middle(row.piece):.1f}"
        print(f"| {row.name} | {middle(row.rate):,.0f} | {middle(row.first):.1f} | {costs} | {row.lost} |")
    for row in made:
        if row.before is not None:
            than = by_name[row.before]
            found = [
                middle(ours / theirs for ours, theirs in zip(mine, others, strict=True))
                for mine, others in ((row.request, than.request), (row.piece, than.piece))
            ]
            print(f"{row.name}, than {row.before}: CPU a request {found[0]:.3f}, a piece {found[1]:.3f}")


BESIDE = {
    "chat completions, whole": ("whole", 40),
    "chat completions": ("gateway", 40),
    "chat completions, without tools": ("plain", 40),
    "responses": ("responses", 40),
    "messages": ("messages", 40),
    "a long answer": ("gateway", 500),
}
"""What is compared with another checkout: the kind of request, and how many tokens its answer has."""


async def beside(options: argparse.Namespace) -> None:
    """Prints what a request costs here, beside another checkout. Processes differ by a few percent for their whole
    life, so there are two of this checkout, and all are started anew a few times."""
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in BESIDE}
    places = {"this": ROOT, "again": ROOT, "other": options.beside.resolve()}
    engine_process = Process("engine")
    try:
        for _ in range(options.starts):
            servers = {
                name: Process("gateway", "--engine", engine_process.port, at=at)
                for name, at in places.items()
            }
            try:
                for name, rounds in (await in_turns(servers, options.pairs)).items():
                    rows[name].append(compared(rounds))
                    print(name, rows[name][-1], file=sys.stderr)
            finally:
                for server in servers.values():
                    server.close()
    finally:
        engine_process.close()
    heads = ("", "CPU, µs a request", "beside the other", "of the starts", "of this checkout, beside itself")
    print(f"| {' | '.join(heads)} |\n|---|---:|---:|---:|---:|")
    for name, starts in rows.items():
        middle = {key: statistics.median(start[key] for start in starts) for key in starts[0]}
        ratios = sorted(start["ratio"] for start in starts)
        span = f"{ratios[0]:.3f} to {ratios[-1]:.3f}"
        print(f"| {name} | {middle['cost']:,.0f} | {middle['ratio']:.3f} | {span} | {middle['same']:.3f} |")


def compared(rounds: list[dict[str, float]]) -> dict[str, float]:
    """The medians of the rounds: what a request costs here, the ratio to the other checkout, and to itself."""
    here = [(one["this"] + one["again"]) / 2 for one in rounds]
    return {
        "cost": statistics.median(here),
        "ratio": statistics.median(cost / one["other"] for cost, one in zip(here, rounds, strict=True)),
        "same": statistics.median(one["again"] / one["this"] for one in rounds),
    }


async def in_turns(servers: dict[str, Process], rounds: int) -> dict[str, list[dict[str, float]]]:
    """For each row, the µs of CPU that a request took each server, round by round."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in BESIDE}
    for kind, _ in BESIDE.values():
        for server in servers.values():
            await settled(server.port, kind)
            await many(server.port, kind, 30, 1, 20)
    orders = list(permutations(servers))
    for number in range(rounds):
        for name, (kind, tokens) in BESIDE.items():
            times = max(1000 // tokens, 2)
            taken: dict[str, float] = {}
            for place in orders[number % len(orders)]:
                server = servers[place]
                used = server.cpu()
                if await many(server.port, kind, times, 1, tokens):
                    raise SystemExit(f"{name}: an answer was lost")
                taken[place] = (server.cpu() - used) / times * 1e6
            found[name].append(taken)
    return found


async def long(options: argparse.Namespace) -> None:
    """Many open streams for minutes, beside a few through the proxy, so that both meet the same machine; requests."""
    engine_process = Process("engine")
    servers = {kind: Process(kind, "--engine", engine_process.port) for kind in ("proxy", "gateway")}
    numbers = {"proxy": options.open // 10, "gateway": options.open}
    late: dict[str, list[float]] = {kind: [] for kind in servers}
    over = asyncio.Event()

    async def watch() -> None:
        print("| minute | RSS MB | pieces seen |\n|---:|---:|---:|", flush=True)
        minute = 0
        while not over.is_set():
            print(f"| {minute} | {servers['gateway'].rss():.0f} | {len(late['gateway']):,} |", flush=True)
            minute += 1
            for _ in range(60):
                await asyncio.sleep(1 if not over.is_set() else 0)

    try:
        for kind, server in servers.items():
            await settled(server.port, kind)
        pace = 0.75
        tokens = int(options.minutes * 60 / pace)
        said = f"{tokens} pieces of {STAMP} tokens, {options.minutes:g} minutes"
        print(f"\n{options.open:,} streams of {said}, beside {numbers['proxy']} through the proxy\n")
        watching = asyncio.create_task(watch())
        lost = await asyncio.gather(
            *(
                load(servers[kind].port, kind, numbers[kind], tokens, pace, late[kind], 60.0)
                for kind in servers
            )
        )
        over.set()
        await watching
        print(
            "\n| server | streams | lost | pieces | lost | p50 ms | p99 ms |\n|---|---:|---:|---:|---:|---:|---:|"
        )
        cuts = {kind: statistics.quantiles([value * 1e3 for value in late[kind]], n=100) for kind in servers}
        for (kind, cut), missing in zip(cuts.items(), lost, strict=True):
            seen = len(late[kind])
            unseen = numbers[kind] * tokens - seen
            row = (
                kind,
                f"{numbers[kind]:,}",
                missing,
                f"{seen:,}",
                unseen,
                f"{cut[49]:.1f}",
                f"{cut[98]:.1f}",
            )
            print("| " + " | ".join(map(str, row)) + " |")
        added = [cuts["gateway"][place] - cuts["proxy"][place] for place in (49, 98)]
        print(f"| added | | | | | {added[0]:+.1f} | {added[1]:+.1f} |\n", flush=True)
        await requests(servers["gateway"], options.requests)
    finally:
        for process in (*servers.values(), engine_process):
            process.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--role", choices=("engine", "proxy", "gateway"))
    parser.add_argument("--engine", type=int)
    parser.add_argument("--tokenizer")
    parser.add_argument("--beats")
    parser.add_argument("--streams", type=int, nargs="+", default=[20, 500])
    parser.add_argument("--tokens", type=int, default=500)
    parser.add_argument("--paced", type=int, default=100)
    parser.add_argument("--pace", type=float, default=0.05)
    parser.add_argument("--requests", type=int, help="10,000; 20,000 with --minutes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--rows", action="store_true")
    parser.add_argument("--beside", type=Path, help="another checkout")
    parser.add_argument("--starts", type=int, default=3, help="with --beside: of the processes")
    parser.add_argument("--pairs", type=int, default=24, help="with --beside: rounds of each start")
    parser.add_argument("--store")
    parser.add_argument("--open", type=int, default=1000)
    options = parser.parse_args()
    if options.requests is None:
        options.requests = 10_000 if options.minutes is None else 20_000
    if options.role == "engine":
        asyncio.run(engine())
    elif options.role == "gateway":
        gateway(options.engine, options.tokenizer, options.beats, options.store)
    elif options.role is not None:
        proxy(options.engine)
    elif options.beside is not None:
        asyncio.run(beside(options))
    elif options.rows:
        asyncio.run(rows(options))
    elif options.minutes is not None:
        asyncio.run(long(options))
    else:
        asyncio.run(measure(options))


if __name__ == "__main__":
    main()
