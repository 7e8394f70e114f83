"""Passes requests on to the engine as they are: for its other paths, such as embeddings."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import httpx2
from starlette.types import Receive, Scope, Send

from ..serving import ApiError
from .apis import CHAT, ending
from .http_engine import HttpEngine
from .record import LEFT, Record
from .work import until_left

_KEPT = (b"content-type", b"retry-after")


class Passing:
    """An ASGI application that answers one request with the engine's own response. ``raw``: the request's body.
    ``running``: it is in there while it runs. ``over()`` is called at its end. If the client leaves, the engine is left
    too."""

    def __init__(
        self,
        engine: HttpEngine,
        raw: bytes,
        record: Record,
        *,
        running: set[Passing],
        over: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._raw = raw
        self._record = record
        self._running = running
        self._over = over
        self._tasks = anyio.CancelScope()
        self._begun = False
        """Whether the head of the response has been sent."""
        self._ending = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._running.add(self)
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks.cancel_scope
                tasks.start_soon(self._until_left, receive)
                await self._answer(scope, receive, send)
                tasks.cancel_scope.cancel()
            if self._ending and not self._begun:
                await CHAT.failed(ending())(scope, receive, send)
        finally:
            self._running.discard(self)
            self._over()
            self._record.end(LEFT)

    def stop(self) -> None:
        """Ends the response, because the server ends: with an error, or broken off if it has begun."""
        self._ending = True
        self._record.failed(ending())
        self._tasks.cancel()

    async def _until_left(self, receive: Receive) -> None:
        await until_left(receive)
        self._tasks.cancel()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        record, engine = self._record, self._engine
        query = scope["query_string"].decode("latin-1")
        path = f"{scope['path']}?{query}" if query else scope["path"]
        record.asked()
        given = {"content-type": "application/json", **record.passed_on}
        try:
            async with engine.sent(path, self._raw, given) as response:
                headers = [(name, value) for name, value in response.headers.raw if name.lower() in _KEPT]
                self._begun = True
                await send(
                    {"type": "http.response.start", "status": response.status_code, "headers": headers}
                )
                async for piece in response.aiter_bytes():
                    record.first()
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        except httpx2.HTTPError as error:
            failed = ApiError.of(engine.broken(error))
            record.failed(failed)
            if not self._begun:
                await CHAT.failed(failed)(scope, receive, send)
            return  # without an end: the client sees that its response breaks off
        record.end(response.status_code)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
