"""Passes requests on to the engine as they are: for its other paths, such as embeddings."""

from __future__ import annotations

from collections.abc import Callable

import anyio
import httpx2
from starlette.types import Receive, Scope, Send

from ..serving import ApiError
from .apis import CHAT
from .http_engine import HttpEngine
from .record import LEFT, Record
from .work import until_left

__all__ = ["Passing"]

_KEPT = (b"content-type", b"retry-after")


class Passing:
    """An ASGI application that answers one request with the engine's own response. ``raw``: the request's body.
    ``over()`` is called at its end. If the client leaves, the engine is left too."""

    def __init__(self, engine: HttpEngine, raw: bytes, record: Record, over: Callable[[], None]) -> None:
        self._engine = engine
        self._raw = raw
        self._record = record
        self._over = over

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def left() -> None:
            await until_left(receive)
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(left)
                await self._answer(scope, receive, send)
                tasks.cancel_scope.cancel()
        finally:
            self._over()
            self._record.end(LEFT)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        record, engine = self._record, self._engine
        query = scope["query_string"].decode("latin-1")
        path = f"{scope['path']}?{query}" if query else scope["path"]
        record.asked()
        try:
            response = await engine.send(
                path, self._raw, {"content-type": "application/json", **record.passed_on}
            )
        except httpx2.HTTPError as error:
            failed = ApiError.of(engine.broken(error))
            record.end(failed.status)
            await CHAT.failed(failed)(scope, receive, send)
            return
        try:
            headers = [(name, value) for name, value in response.headers.raw if name.lower() in _KEPT]
            await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
            async for piece in response.aiter_bytes():
                record.first()
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except httpx2.HTTPError as error:
            record.end(ApiError.of(engine.broken(error)).status)
            return  # without an end: the client sees that its response breaks off
        finally:
            await response.aclose()
        record.end(response.status_code)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
