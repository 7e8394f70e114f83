"""A scripted engine on a port of this machine: it writes what a test says, and breaks in every way that a test says."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from chatparsers.tokens import Vocabulary

Script = Callable[[str, dict[str, Any], "Wire"], Awaitable[None]]


class Wire:
    """The response to one request, byte by byte."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.open = True

    async def head(self, status: int = 200, kind: str = "text/event-stream") -> None:
        head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
        self._writer.write(head.encode())
        await self._writer.drain()

    async def send(self, data: bytes) -> None:
        """One chunk. Raises ConnectionError if the other side has left."""
        self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()

    def die(self) -> None:
        """Closes the connection without an end."""
        self.open = False
        self._writer.transport.abort()


class Upstream:
    """A server in a thread. ``script`` answers each request; ``requests`` has what came; ``left`` counts the clients
    that closed the connection before the end of a response. ``context``: what llama-server says of it; ``props``: what
    else it says. ``tokenize``: what its ``/tokenize`` does; None: it has none."""

    def __init__(
        self,
        script: Script,
        context: int | None = None,
        port: int = 0,
        tokenize: Callable[[str], list[int]] | None = None,
        props: dict[str, Any] | None = None,
    ) -> None:
        self.script = script
        self.props = props or {}
        self.tokenize = tokenize
        self.encoded: list[dict[str, Any]] = []
        self.context = context
        self._wanted = port
        self.heads: list[str] = []
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.left = 0
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait(10)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", self._wanted, backlog=1024)
        )
        self.port = server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                path = head.split(" ", 2)[1]
                self.heads.append(head)
                size = next(
                    (line[15:] for line in head.split("\r\n") if line.startswith("content-length:")), "0"
                )
                body = json.loads(await reader.readexactly(int(size)) or b"{}")
                wire = Wire(writer)
                if path == "/props":
                    script: Awaitable[None] = self._props(wire)
                elif path == "/tokenize":
                    script = self._tokenize(body, wire)
                else:
                    self.requests.append((path, body))
                    script = self.script(path, body, wire)
                try:
                    await self._watched(script, reader)
                except ConnectionError:
                    self.left += 1
                    return
                if not wire.open:
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.close()

    async def _props(self, wire: Wire) -> None:
        """What llama-server says of itself."""
        await wire.head(404 if self.context is None else 200, "application/json")
        found = {"default_generation_settings": {"n_ctx": self.context}, **self.props}
        await wire.send(json.dumps(found).encode())
        await wire.end()

    async def _tokenize(self, body: dict[str, Any], wire: Wire) -> None:
        """As llama-server (``content``), vLLM and SGLang (``prompt``) do."""
        self.encoded.append(body)
        await wire.head(404 if self.tokenize is None else 200, "application/json")
        text = str(body.get("content", body.get("prompt")))
        ids = [] if self.tokenize is None else self.tokenize(text)
        await wire.send(json.dumps({"tokens": ids, "count": len(ids), "max_model_len": 5000}).encode())
        await wire.end()

    async def _watched(self, script: Awaitable[None], reader: asyncio.StreamReader) -> None:
        """Runs the script, and stops it when the client leaves: it sends nothing before the response has ended."""
        task = asyncio.ensure_future(script)
        gone = asyncio.ensure_future(_until_closed(reader))
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            raise ConnectionResetError
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        task.result()


async def _until_closed(reader: asyncio.StreamReader) -> None:
    while not reader.at_eof():
        await asyncio.sleep(0.02)


def soon(check: Callable[[], object], seconds: int = 10) -> None:
    """Waits until ``check`` holds, for at most ten seconds."""
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until, "it did not become true in time"
        time.sleep(0.01)


def sse(data: Any) -> bytes:
    return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"


def llama_piece(text: str, ids: list[int] | None = None) -> bytes:
    """A piece as llama-server sends it."""
    data = {"index": 0, "content": text, "tokens": ids or [], "stop": False, "id_slot": -1}
    return sse({**data, "tokens_predicted": 1, "tokens_evaluated": 5})


def llama_end(kind: str = "eos", prompt: int = 5, completion: int = 3) -> bytes:
    """The last event of llama-server, without its list of settings."""
    data = {"index": 0, "content": "", "tokens": [], "id_slot": 0, "stop": True, "model": "tiny.gguf"}
    counts = {"tokens_predicted": completion, "tokens_evaluated": prompt, "tokens_cached": 7}
    ended = {"truncated": False, "stop_type": kind, "stopping_word": "", "timings": {"cache_n": 0}}
    return sse({**data, **counts, **ended})


def llama_events(
    pieces: Iterable[tuple[int, bytes]], stops: Iterable[str] = ()
) -> list[tuple[str, list[int]]]:
    """What llama-server makes of ids and their bytes: the text and the ids of each event.

    A token that ends inside a character makes no event: its text comes with the token that completes the character, and
    its id does not come at all. While the text may become a stop, ids come without text.
    """
    events: list[tuple[str, list[int]]] = []
    waiting = b""
    for id, piece in pieces:
        waiting += piece
        try:
            text = waiting.decode()
        except UnicodeDecodeError as error:
            if error.reason == "unexpected end of data":
                continue
            text = waiting.decode("utf-8", "replace")
        if any(text.endswith(stop[:size]) for stop in stops for size in range(1, len(stop))):
            events.append(("", [id]))
        else:
            events.append((text, [id]))
            waiting = b""
    return events


def forced(body: dict[str, Any]) -> int | None:
    """The token that a request forces, if it is the gateway's probe."""
    bias = body.get("logit_bias")
    if not bias:
        return None
    return int(bias[0][0]) if isinstance(bias, list) else int(next(iter(bias)))


class Llama:
    """A script that does as llama-server does: it writes ``pieces``, each a text or the ids of a tokenizer.

    ``drops``: it leaves control tokens out of its text. ``gives_ids``: whether its events have ids.
    """

    def __init__(
        self,
        pieces: Iterable[str] = (),
        tokenizer: Any = None,
        *,
        gives_ids: bool = True,
        drops: bool = False,
    ) -> None:
        self.pieces: list[str] = list(pieces)
        self.tokenizer = tokenizer
        self.gives_ids = gives_ids and tokenizer is not None
        self.drops = drops
        self.kind = "eos"
        self.delay = 0.0
        self.stop_id: int | None = None

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        id = forced(body)
        await wire.head()
        if id is not None or body.get("n_predict") == 1:
            text = self.tokenizer.id_to_token(id) if id is not None else "a"
            kept = "" if self.drops else text
            await wire.send(llama_piece(kept, [id or 0] if self.gives_ids else None))
        else:
            for piece in self.pieces:
                if self.gives_ids:
                    ids = self.tokenizer.encode(piece, add_special_tokens=False).ids
                    for text, given in llama_events(zip(ids, map(self._bytes, ids), strict=True)):
                        await wire.send(llama_piece(text, given))
                else:
                    await wire.send(llama_piece(piece))
                if self.delay:
                    await asyncio.sleep(self.delay)
            if self.stop_id is not None and self.gives_ids:
                await wire.send(llama_piece("", [self.stop_id]))
        await wire.send(llama_end(self.kind))
        await wire.end()

    def _bytes(self, id: int) -> bytes:
        piece = Vocabulary.of(self.tokenizer).pieces[id]
        return piece if isinstance(piece, bytes) else piece.encode()


WORD = "weather"
"""It is one token of the tiny tokenizers: an engine that writes more tokens than it was asked for has failed."""
ENDLESS = 900
"""An answer of so many words does not end by itself."""


class Slow(Llama):
    """Writes as many words as it is asked for, and takes its time."""

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        if path == "/health" or forced(body) is not None or body.get("n_predict") == 1:
            await super().__call__(path, body, wire)
            return
        await wire.head()
        word = self.tokenizer.encode(WORD, add_special_tokens=False).ids
        for _ in range(min(body["n_predict"], 100)):
            await wire.send(llama_piece(WORD, word))
            await asyncio.sleep(0.02)
        while body["n_predict"] == ENDLESS:
            await asyncio.sleep(0.02)
        await wire.send(llama_end())
        await wire.end()
