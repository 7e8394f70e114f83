"""``/v1/responses`` over a WebSocket, as Codex speaks it.

A frame ``response.create`` has the body of a request, and the events of its response come back as frames, the very
data of the stream over HTTP. One response runs at a time. The connection knows the items of its last response, so
``previous_response_id`` goes on from it without a store, and ``input`` has only what is new. ``generate: false``
prepares: it answers with an empty response, to go on from. What fails before the first event is a frame ``error`` with
the status that HTTP would have; the connection stays.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from starlette.requests import Request as HttpRequest
from starlette.types import ASGIApp, Message
from starlette.websockets import WebSocket

from ..serving import ApiError, OpenAIResponses, Usage
from ..serving.items import kept_items
from ..serving.writer import to_data
from .inner import Events, inner

DRAIN = {"type": "websocket.disconnect", "code": 1012, "reason": "chatparsers: draining"}
"""The event by which the server says that it ends: a response that runs may end before."""
_WAITING = 16
"""How many frames may wait while a response runs. Together they may have as many characters as one body."""
_IDLE = 3600.0
"""After how many seconds without a frame a connection is closed."""
_IGNORED = ("response.processed", "response.cancel")
_LAST = ("response.completed", "response.incomplete", "response.failed", "error")
_GOES_ON = ("response.completed", "response.incomplete")


class ResponsesSocket:
    """Answers connections. ``respond``: the response to a request over HTTP. ``count``: how many tokens its prompt has.
    ``check``: raises `ApiError` if a connection may not ask. ``failed``: the response to its handshake then.
    ``stores``: whether responses are kept for longer than a connection. ``model``: a name for answers. ``most``: how
    many characters a body may have."""

    def __init__(
        self,
        respond: Callable[[HttpRequest], Awaitable[ASGIApp]],
        count: Callable[[HttpRequest], Awaitable[int]],
        check: Callable[[Any], object],
        failed: Callable[[ApiError], ASGIApp],
        *,
        stores: bool,
        model: str,
        most: int,
    ) -> None:
        self.respond = respond
        self.count = count
        self.check = check
        self.failed = failed
        self.stores = stores
        self.model = model
        self.most = most

    async def __call__(self, socket: WebSocket) -> None:
        try:
            self.check(socket.headers)
        except ApiError as error:
            await self.failed(error)(socket.scope, socket.receive, socket.send)
            return
        await socket.accept()
        send, receive = anyio.create_memory_object_stream[str | bytes](_WAITING)
        async with anyio.create_task_group() as tasks, send, receive:
            connection = _Connection(self, socket)
            tasks.start_soon(connection.listen, send)
            code = await connection.serve(receive)
            if not connection.left.is_set():
                await socket.close(code)
            tasks.cancel_scope.cancel()


class _Connection:
    """One connection. ``left``: the client has left it."""

    def __init__(self, gateway: ResponsesSocket, socket: WebSocket) -> None:
        self.left = anyio.Event()
        self._gateway = gateway
        self._socket = socket
        self._id: str | None = None
        """The id of the last response, and its input and output."""
        self._items: list[Any] = []
        self._waiting = 0
        """How many characters wait."""
        self._code = 1001
        """Why the connection is closed, if the client does not leave it."""

    async def listen(self, frames: MemoryObjectSendStream[str | bytes]) -> None:
        """Takes frames until the client leaves, or the server ends."""
        async with frames:
            while True:
                event = await self._socket.receive()
                if event == DRAIN:
                    self._code = 1012
                    return
                if event["type"] == "websocket.disconnect":
                    self.left.set()
                    return
                frame = event.get("text") or event.get("bytes") or ""
                self._waiting += len(frame)
                try:
                    if self._waiting > self._gateway.most:
                        raise anyio.WouldBlock
                    frames.send_nowait(frame)
                except anyio.WouldBlock:
                    self._code = 1008
                    return

    async def serve(self, frames: MemoryObjectReceiveStream[str | bytes]) -> int:
        """Answers frames. Returns the code with which the connection is closed."""
        while not self.left.is_set():
            text: str | bytes | None = None
            with anyio.move_on_after(_IDLE):
                try:
                    text = await frames.receive()
                except anyio.EndOfStream:
                    return self._code
                self._waiting -= len(text)
            if text is None:
                return self._code
            try:
                if not await self._answer(text):
                    return 1011
            except ApiError as error:
                await self._fail(error.status, error.openai()["error"])
        return self._code

    async def _answer(self, text: str | bytes) -> bool:
        """Answers a frame. Returns whether the connection goes on. Raises `ApiError`."""
        try:
            body = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ApiError(f"expected a frame of JSON: {error}") from None
        if not isinstance(body, dict):
            raise ApiError("expected a frame with an object of JSON")
        kind = body.pop("type", None)
        if kind in _IGNORED:
            return True
        if kind != "response.create":
            raise ApiError(f"expected response.create, found {kind!r:.80}", param="type")
        if body.pop("background", None):
            said = "a response in the background is asked for over HTTP"
            raise ApiError(said, param="background", code="unsupported_parameter")
        items = self._goes_on(body)
        if body.pop("generate", True) is False:
            await self._prepare(body, items)
            return True
        frames = _Frames(self._socket)
        request = self._request({**body, "stream": True})
        app = await self._gateway.respond(request)
        await app(request.scope, request.receive, frames.send)
        if frames.status != 200:
            await self._fail(frames.status, frames.error())
        elif frames.response is not None:
            self._id, self._items = frames.response["id"], [*items, *frames.response["output"]]
        return frames.over or self.left.is_set()

    def _goes_on(self, body: dict[str, Any]) -> list[Any]:
        """Puts the items of the last response before those of a body that goes on from it. Returns all of them."""
        before = body.get("previous_response_id")
        items = kept_items(body.get("input") or [])
        if before is not None and before == self._id:
            del body["previous_response_id"]
            items = body["input"] = [*self._items, *items]
        elif before is not None and not self._gateway.stores:
            said = f"this connection has no response {str(before)[:99]!r}: send the whole input"
            raise ApiError(said, param="previous_response_id", code="previous_response_not_found")
        return items

    async def _prepare(self, body: dict[str, Any], items: list[Any]) -> None:
        """Does what comes before the engine, and answers with an empty response."""
        count = await self._gateway.count(self._request(body))
        writer = OpenAIResponses(str(body.get("model") or self._gateway.model), request=body)
        for event in [*writer.start(count), *writer.finish("stop", Usage(count))]:
            await self._socket.send_text(to_data(event))
        self._id, self._items = writer.id, items

    def _request(self, body: dict[str, Any]) -> HttpRequest:
        """The request over HTTP that asks for the same."""
        return inner(self._socket.scope, body, self.left.wait)

    async def _fail(self, status: int, error: Any) -> None:
        await self._socket.send_text(to_data({"type": "error", "status": status, "error": error}))


class _Frames(Events):
    """Sends the events of a stream over HTTP as frames. ``over``: it has ended as it should. ``response``: the whole
    one, if it can be gone on from."""

    def __init__(self, socket: WebSocket) -> None:
        super().__init__()
        self.over = False
        self.response: dict[str, Any] | None = None
        self._socket = socket

    async def send(self, event: Message) -> None:
        """Takes what is sent over HTTP."""
        for name, data in self.take(event):
            if name in _GOES_ON:
                self.response = json.loads(data)["response"]
            self.over = self.over or name in _LAST
            await self._socket.send_text(data)
        self.over = self.over or self.status != 200
