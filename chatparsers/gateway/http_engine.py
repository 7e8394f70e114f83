"""What the engines over HTTP share: the connection, its errors, and the probe for control tokens."""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from ipaddress import ip_address
from typing import Any, ClassVar, TypeAlias

import anyio
import httpx2

from ..chat.chat import Chat
from .connections import Connections
from .engine import Batch, End, Engine, EngineError, Job, control_markers, joined, marker_texts
from .lines import Lines, read_data
from .turns import EVENTS, Share, Turns

_CLIENT_ERRORS = (400, 413, 422)
_BUSY = (429, 503)
_MISSING = (404, 405, 501)
"""What a server says of a path or a model that it does not have."""
_SHOWN = 500
_LARGEST_ERROR = 65_536
_LARGEST_ANSWER = 4 * 1024 * 1024
"""How many bytes of an engine's error, and of its other answers, are read."""
_CONNECT = 30.0
"""How many seconds a connection may take. On a busy machine the gateway's own waiting counts."""
_PIECE = 8192
"""How many ids are written at once."""
_PROBE = "Hello"
_REPEATED = 16
_PROMPTS = ("token_ids", "input_ids")
"""Fields of the prompt's ids, if that is not ``prompt``."""

Read: TypeAlias = Callable[[Mapping[str, Any]], "Batch | None"]


class HttpEngine(Engine):
    """An engine behind a URL that streams server-sent events.

    ``url``: where it listens. ``model``: the name that it knows the model by. ``api_key``: its key. ``stall``: how many
    seconds it may be silent. ``client``: an ``httpx2.AsyncClient`` of your own.
    """

    path: ClassVar[str]
    logprobs: ClassVar[bool] = True
    alive: ClassVar[str] = "/health"
    """Where it says that it is there."""

    def __init__(
        self,
        url: str,
        *,
        model: str | None = None,
        api_key: str | None = None,
        stall: float = 300.0,
        client: httpx2.AsyncClient | None = None,
    ) -> None:
        self.url = url.rstrip("/").removesuffix("/v1")
        self.model = model
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        context = httpx2.create_ssl_context()  # which takes long to make

        def make(kept: int) -> httpx2.AsyncClient:
            return httpx2.AsyncClient(
                base_url=self.url,
                verify=context,
                trust_env=not _on_this_machine(self.url),  # no proxy of the environment leads back to it
                headers=headers,
                timeout=httpx2.Timeout(stall, connect=_CONNECT, pool=None),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=kept),
            )

        self._connections = Connections(make, client)
        self._stall = stall
        self._turns = Turns()
        self._address = httpx2.URL(f"{self.url}{self.path}")  # which would be put together for each request

    @property
    def name(self) -> str:
        return _shown(self.url)

    async def close(self) -> None:
        await self._connections.close()

    @abstractmethod
    def body(self, job: Job) -> dict[str, Any]:
        """The request that completes a job."""

    @abstractmethod
    def read(self, data: Mapping[str, Any]) -> Batch | None:
        """What an event of the engine brings; None if it brings nothing."""

    def reading(self) -> Read:
        """Reads the events of one answer, in their order."""
        return self.read

    def parse(self, line: bytes) -> dict[str, Any] | None:
        """The object in a line; None if the line has none."""
        return read_data(line)

    def forced(self, job: Job, id: int) -> dict[str, Any] | None:
        """The request of a job under which the engine can write only the token ``id``, or next to nothing else; None if
        there is none."""
        return {**self.body(job), "logit_bias": {str(id): 100}}

    async def get(self, path: str) -> dict[str, Any]:
        """The JSON object at a path; an empty one if there is none. Raises `EngineError` if nothing answers."""
        with self._connections.client() as client:
            return await self._object(client.stream("GET", path))

    async def post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """The JSON object that answers a body; an empty one if there is none. Raises `EngineError` as `get` does."""
        raw = json.dumps(body, ensure_ascii=False).encode()
        return await self._object(self.sent(path, raw, {"content-type": "application/json"}))

    async def _object(self, asked: AbstractAsyncContextManager[httpx2.Response]) -> dict[str, Any]:
        try:
            async with asked as response:
                raw = await _bounded(response, _LARGEST_ANSWER)
            found = json.loads(raw) if response.status_code == 200 else {}
        except (ValueError, RecursionError):
            return {}
        except httpx2.HTTPError as error:
            raise self.broken(error) from error
        return found if isinstance(found, dict) else {}

    # generating

    def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        return self._batches(self.body(job), job.headers)

    async def _batches(
        self,
        body: dict[str, Any],
        headers: dict[str, str] | None = None,
        *,
        path: str | None = None,
        read: Read | None = None,
    ) -> AsyncGenerator[Batch, None]:
        """What came at once is one batch. The end comes last, after the engine has closed its response: so the
        connection can be used again. ``path``, ``read``: of another endpoint than the usual one."""
        lines, share, parse = Lines(), Share(self._turns), self.parse
        read = self.reading() if read is None else read
        end = End(None)

        def batches(raw: bytes) -> Iterator[list[Batch]]:
            nonlocal end
            found: list[Batch] = []
            try:
                for line in lines.take(raw):
                    data = parse(line) if line else None
                    if data is None:
                        continue
                    if data.get("error"):
                        raise EngineError(f"the engine failed: {_message(data)}")
                    batch = read(data)
                    if batch is not None:
                        end = end if batch.end is None else end.then(batch.end)
                        found.append(batch)
                        if len(found) == EVENTS:
                            yield found
                            found = []
            except EngineError:
                if found:  # it came before
                    yield found
                raise
            if found:
                yield found

        silent_since = time.monotonic()
        try:
            async with self._opened(body, headers, path) as response:
                if response.status_code != 200:
                    await self._refused(response)
                assert isinstance(response.stream, httpx2.AsyncByteStream)
                async for data in response.stream:  # nothing need be decoded: no compression is asked for
                    empty = True
                    for found in batches(data):
                        batch = joined(found)
                        empty = empty and not (batch.text or batch.ids or batch.end)
                        yield batch
                        if share.taken(len(found)):
                            await self._turns.wait()
                    if not empty:
                        silent_since = 0.0
                    elif not silent_since:
                        silent_since = time.monotonic()
                    elif time.monotonic() - silent_since > self._stall:
                        said = f"the engine sent nothing but empty events for {self._stall:g} seconds"
                        raise EngineError(said, status=504, code="engine_timeout")
                for found in batches(b"\n"):
                    yield joined(found)
        except httpx2.HTTPError as error:
            raise self.broken(error) from error
        if end.reason is None:
            raise EngineError(
                "the engine closed the connection in the middle of the answer", code="engine_ended"
            )
        yield Batch(end=end)

    @asynccontextmanager
    async def _opened(
        self, body: dict[str, Any], headers: dict[str, str] | None, path: str | None
    ) -> AsyncIterator[httpx2.Response]:
        """The engine's response to a body."""
        raw = await _written(body)
        body.clear()  # a long prompt is held once, and not for as long as its answer lasts
        given = {"content-type": "application/json", "accept-encoding": "identity", **(headers or {})}
        async with self.sent(self._address if path is None else path, raw, given) as response:
            del raw
            yield response

    @asynccontextmanager
    async def sent(
        self, path: str | httpx2.URL, raw: bytes, headers: dict[str, str]
    ) -> AsyncIterator[httpx2.Response]:
        """The engine's response, whose body is still to be read. It is closed at the end."""
        headers = {**headers, "content-length": str(len(raw))}
        with self._connections.client() as client:
            response = await _sent(client, path, raw, headers, self._connections.extensions)
            del raw
            try:
                yield response
            finally:
                await response.aclose()

    async def ready(self) -> bool:
        try:
            with self._connections.client() as client:
                async with client.stream("GET", self.alive, timeout=5.0) as response:
                    return response.status_code == 200
        except httpx2.HTTPError:
            return False

    def broken(self, error: httpx2.HTTPError) -> EngineError:
        """The error for a connection that failed."""
        if isinstance(error, (httpx2.ConnectError, httpx2.ConnectTimeout)):
            return EngineError("the engine does not answer", where=_shown(self.url))
        if isinstance(error, httpx2.TimeoutException):
            said = f"the engine was silent for {self._stall:g} seconds"
            return EngineError(said, status=504, code="engine_timeout")
        said = f"the connection to the engine broke: {type(error).__name__}"
        return EngineError(said, code="engine_ended")

    async def _refused(self, response: httpx2.Response) -> None:
        """Raises the error for a response that is no stream."""
        raw = await _bounded(response, _LARGEST_ERROR)
        status = response.status_code
        try:
            said = _message(json.loads(raw))
        except (ValueError, RecursionError):
            said = raw[:_SHOWN].decode("utf-8", "replace")
        if status in _CLIENT_ERRORS:
            raise EngineError(f"the engine refuses the request: {said}", status=400, code="engine_refused")
        if status in _BUSY:
            raise EngineError(f"the engine is busy: {said}", status=status, code="engine_busy")
        known = "; is the engine of this kind, and has it this model?" if status in _MISSING else ""
        path = response.request.url.path
        raise EngineError(f"the engine answered {path} with the status {status}: {said}{known}")

    # probing

    async def start(self, chat: Chat) -> list[str]:
        """Has the engine write markers, to see that they come back as text or as ids."""
        known = chat.tokenizer is not None
        ids = (
            chat.tokenizer.encode(_PROBE, add_special_tokens=False).ids
            if chat.tokenizer is not None and self.takes_ids
            else _PROBE
        )
        job = Job(chat.bind(), ids, max_tokens=1, sampling={"temperature": 0})
        warnings = (
            [] if self.dialect is not None else ["the engine takes no grammar: calls are read, not enforced"]
        )
        given = known
        forced = False
        for marker, id in control_markers(chat).items() if known else ():
            body = self.forced(job, id)
            if body is None:
                break
            batch = await self._collected(body)
            given = given and batch.ids is not None
            if list(batch.ids or ()) != [id] and batch.text.strip() != marker:
                if not batch.text.strip():
                    raise _drops(f"it was made to write {marker!r}, and sent nothing")
                forced = False
                break
            forced = True
        if not forced:
            batch = await self._collected(self.body(job))
            given = given and batch.ids is not None
            if not given:
                warnings += await self._repeated(chat)
        self.ids = given
        if not given:
            warnings.append("the engine gives no ids: text that spells a marker is read as that marker")
        return warnings

    async def _repeated(self, chat: Chat) -> list[str]:
        """For an engine that cannot be made to write a token: has it go on with a text that repeats a marker. Returns a
        warning if it then writes something else."""
        markers = marker_texts(chat)
        for marker in markers[:2]:
            job = Job(chat.bind(), marker * _REPEATED, max_tokens=8, sampling={"temperature": 0})
            batch = await self._collected(self.body(job))
            if any(text in batch.text for text in markers):
                return []
            count = batch.end.completion if batch.end is not None else None
            if not batch.text.strip() and count is not None and count > 2:
                raise _drops(f"after a text of {marker!r} alone it wrote {count} tokens, and sent nothing")
        if not markers:
            return []
        return [
            f"it is not known whether the engine keeps control tokens such as {markers[0]!r} in its text: try a call "
            "before you rely on it"
        ]

    async def _collected(self, body: dict[str, Any]) -> Batch:
        """A whole short completion."""
        async with aclosing(self._batches(body)) as batches:
            return joined([batch async for batch in batches])


async def _written(body: dict[str, Any]) -> bytes:
    """The body as JSON. The ids of a long prompt are written piece by piece, so that other tasks wait for none."""
    name = next((name for name in _PROMPTS if name in body), "prompt")
    ids = body.get(name)
    if not isinstance(ids, list) or len(ids) <= _PIECE:
        return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    pieces = []
    for start in range(0, len(ids), _PIECE):
        pieces.append(str(ids[start : start + _PIECE])[1:-1].encode())  # half as long as joining their texts
        await anyio.sleep(0)
    rest = {key: value for key, value in body.items() if key != name}
    head = json.dumps(rest, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
    return b"".join([head, b"," if rest else b"", f'"{name}":['.encode(), b",".join(pieces), b"]}"])


async def _sent(
    client: httpx2.AsyncClient,
    path: str | httpx2.URL,
    raw: bytes,
    headers: dict[str, str],
    extensions: dict[str, Any],
) -> httpx2.Response:
    """A kept connection that the engine closed meanwhile is tried once more: it has sent nothing, and a completion that
    is asked for twice does no harm."""
    for tries in (1, 0):
        # The client keeps a request beside its response, with the bytes of its body, but not with what made them.
        request = client.build_request(
            "POST", path, content=_pieces(raw), headers=headers, extensions=extensions
        )
        try:
            return await client.send(request, stream=True)
        except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
            if not tries:
                raise
    raise AssertionError("the second try returns or raises")


async def _pieces(raw: bytes) -> AsyncIterator[bytes]:
    yield raw


def _drops(seen: str) -> EngineError:
    return EngineError(
        f"the engine drops control tokens from its text: {seen}. So calls of this model cannot be read. Use a server "
        "that keeps them (llama-server, vLLM, SGLang), or run the model with --gguf"
    )


async def _bounded(response: httpx2.Response, most: int) -> bytes:
    """The beginning of a response's body."""
    raw = bytearray()
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            raw += piece
            if len(raw) >= most:
                break
    return bytes(raw[:most])


def _shown(url: str) -> str:
    """A URL without its user and password."""
    found = httpx2.URL(url)
    return str(found.copy_with(username=None, password=None)) if found.userinfo else url


def _on_this_machine(url: str) -> bool:
    host = httpx2.URL(url).host
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def text_of(value: object) -> str:
    """A text of the engine; "" for None. Raises `EngineError` for anything else: it would be lost."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise EngineError(f"the engine sent {_KINDS.get(type(value), 'a value')} for a text")
    return value


def ids_of(value: object) -> list[int] | None:
    """The ids of the engine; None if there are none. Raises `EngineError` for what cannot be ids."""
    if not isinstance(value, list) or not value:
        return None
    for id in value:
        if type(id) is not int or id < 0:
            raise EngineError("the engine sent a token's id that is no whole number")
    return value


def count_of(value: object) -> int | None:
    """A count of tokens of the engine; None if there is none. Raises `EngineError` for what cannot be one."""
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= _MOST_TOKENS:
        shown = repr(value) if type(value) is not int or abs(value) <= _MOST_TOKENS else "too large a number"
        raise EngineError(f"the engine sent {shown} for a count of tokens"[:_SHOWN])
    return value


_MOST_TOKENS = 2**53
"""The largest count that every reader of JSON keeps."""
_KINDS = {list: "a list", dict: "an object", int: "a number", float: "a number", bool: "true or false"}


def _message(data: Any) -> str:
    """What an error of an engine says."""
    found = data.get("error", data) if isinstance(data, dict) else data
    if isinstance(found, dict):
        found = found.get("message") or found.get("detail") or found
    return str(found)[:_SHOWN]
