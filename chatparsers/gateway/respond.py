"""The response to one request: it runs the engine, sends what comes, and stops the engine when the client leaves.

Strategy: three tasks. One reads the engine and sends; it waits while the client takes nothing, so the engine waits too.
One waits for the client to leave. One watches the silence: it sends a comment after a while, and leaves a client
that takes nothing for long. When one of the first two ends, all end, and the engine's connection is closed.

A stream begins with the engine's first batch, or with the first comment. Until then an error is an HTTP status.
"""

from __future__ import annotations

import time
from contextlib import aclosing
from typing import Any

import anyio
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..serving import ApiError
from .answer import Answer
from .engine import End, Engine, Job
from .metrics import Metrics
from .settings import Settings

__all__ = ["Responding"]

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
_COMMENT = b": waiting\n\n"
_LATE = 16
"""How many batches an engine may send after the end of the turn, before it is stopped. Most say how it ended."""
_LEFT = 499
"""The status in the metrics of a request whose client left."""


class Responding:
    """An ASGI application that answers one request. ``failed(error)`` is the response for an early error."""

    def __init__(
        self,
        engine: Engine,
        job: Job,
        answer: Answer,
        *,
        stream: bool,
        api: str,
        settings: Settings,
        metrics: Metrics,
        failed: Any,
    ) -> None:
        self._engine = engine
        self._job = job
        self._answer = answer
        self._stream = stream
        self._api = api
        self._settings = settings
        self._metrics = metrics
        self._failed = failed
        self._started = False
        self._sending = False
        self._moved = time.monotonic()
        self._lock = anyio.Lock(fast_acquire=True)
        self._counted = False
        self._head = ""
        """The first frames, made before anything is read."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_left, receive, tasks.cancel_scope)
                if self._stream:
                    tasks.start_soon(self._watch, send, tasks.cancel_scope)
                await self._run(scope, receive, send)
                tasks.cancel_scope.cancel()
        finally:
            self._metrics.active -= 1
            self._count(_LEFT)

    async def _run(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = self._answer
        self._head = answer.start()
        end = End()
        late = 0
        try:
            async with aclosing(self._engine.generate(self._job)) as batches:
                async for batch in batches:
                    frames = answer.read(batch)
                    if self._stream and (frames or not self._started):
                        await self._send(send, frames)
                    if batch.end is not None:
                        end = batch.end
                    late += answer.done
                    if answer.stopped or late > _LATE:
                        break
        except ApiError as error:
            await self._fail(error, scope, receive, send)
            return
        except (OSError, ClientDisconnect):  # the client is gone
            return
        except Exception as error:
            await self._fail(ApiError.of(error), scope, receive, send)
            raise
        last = answer.finish(end, self._metrics)
        self._count(200)  # before the client sees that it is over
        if self._stream:
            await self._send(send, last, more=False)
        else:
            whole = Response(answer.writer.text(), media_type="application/json")
            await whole(scope, receive, send)

    async def _fail(self, error: ApiError, scope: Scope, receive: Receive, send: Send) -> None:
        self._count(error.status)
        if self._started:
            await self._send(send, self._answer.fail(error, self._metrics), more=False)
        else:
            self._started = True
            await self._failed(error)(scope, receive, send)

    def _count(self, status: int) -> None:
        """Counts the request, once."""
        if not self._counted:
            self._counted = True
            self._metrics.count("requests", api=self._api, status=str(status))

    async def _send(self, send: Send, frames: str, more: bool = True) -> None:
        async with self._lock:
            self._sending = True
            if not self._started:
                self._started = True
                await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
                frames = self._head + frames
            await send({"type": "http.response.body", "body": frames.encode(), "more_body": more})
            self._sending = False
            self._moved = time.monotonic()

    async def _until_left(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _watch(self, send: Send, scope: anyio.CancelScope) -> None:
        keep_alive, slow = self._settings.keep_alive, self._settings.slow_client
        while True:
            await anyio.sleep(min(keep_alive, slow) / 2)
            silent = time.monotonic() - self._moved
            if self._sending:
                if silent > slow:
                    scope.cancel()
            elif silent >= keep_alive / 2:
                if not self._started:
                    await self._send(send, "")
                else:
                    async with self._lock:
                        await send({"type": "http.response.body", "body": _COMMENT, "more_body": True})
                        self._moved = time.monotonic()
