"""The response to one request: it runs the engine, sends what comes, and stops the engine when the client leaves.

Strategy: four tasks. The reader reads the engine and puts frames in a buffer; of several answers each has a reader.
The sender sends what is in the buffer: frames that come while it sends go out together. The reader waits while the
buffer is full, so a slow client slows the engine. One task waits for the client to leave. One watches the silence: it
puts a comment in the buffer after a while, and leaves a client that takes nothing for long. When the reader is done or
the client has left, all end, and the engine's connection is closed.

A stream begins with the engine's first batch, or with the first comment. Until then an error is an HTTP status.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..serving import ApiError
from .answer import Answer, Answers
from .engine import End, Engine, Job
from .metrics import Metrics
from .record import Record
from .settings import Settings

__all__ = ["Responding"]

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
_COMMENT = ": waiting\n\n"
_FULL = 65_536
"""How many characters of frames may wait."""
_LATE = 16
"""How many batches an engine may send after the end of the turn, before it is stopped. Most say how it ended."""
_LEFT = 499
"""The status in the metrics of a request whose client left."""


class Responding:
    """An ASGI application that answers one request. ``jobs``: one for each of the answers. ``failed(error)`` is the
    response for an early error."""

    def __init__(
        self,
        engine: Engine,
        jobs: Sequence[Job],
        answers: Answers,
        *,
        stream: bool,
        record: Record,
        settings: Settings,
        metrics: Metrics,
        failed: Any,
    ) -> None:
        self._engine = engine
        self._jobs = jobs
        self._answers = answers
        self._stream = stream
        self._record = record
        self._settings = settings
        self._metrics = metrics
        self._failed = failed
        self._buffer: list[str] = []
        self._size = 0
        self._begun = False
        """Whether the stream has begun: its first frames are in the buffer, or sent."""
        self._over = False
        """Whether no more frames come."""
        self._filled = anyio.Event()
        self._emptied = anyio.Event()
        self._sending = False
        self._moved = time.monotonic()
        self._head = ""
        """The first frames, made before anything is read."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._until_left, receive, tasks.cancel_scope)
                if self._stream:
                    tasks.start_soon(self._watch, tasks.cancel_scope)
                    tasks.start_soon(self._send, send, tasks.cancel_scope)
                early = await self._read()
                if not self._begun:
                    await early(scope, receive, send)
                    tasks.cancel_scope.cancel()
        finally:
            self._metrics.active -= len(self._jobs)
            self._record.end(_LEFT)

    async def _read(self) -> Any:
        """Reads the engine to its end. Returns the response if no stream has begun."""
        self._record.asked()
        self._head = self._answers.start()
        try:
            if len(self._jobs) == 1:
                await self._one(self._jobs[0], self._answers.all[0])
            else:
                await self._several()
        except Exception as error:
            if not isinstance(error, ApiError):
                traceback.print_exception(error)
            return self._fail(ApiError.of(error))
        if not self._stream:
            self._record.end(200)
            return Response(self._answers.text(), media_type="application/json")
        return None

    async def _several(self) -> None:
        """Reads all answers at once. The first error ends them all."""
        failed: list[Exception] = []

        async def one(job: Job, answer: Answer, scope: anyio.CancelScope) -> None:
            try:
                await self._one(job, answer)
            except Exception as error:
                failed.append(error)
                scope.cancel()

        async with anyio.create_task_group() as tasks:
            for job, answer in zip(self._jobs, self._answers.all, strict=True):
                tasks.start_soon(one, job, answer, tasks.cancel_scope)
        if failed:
            raise failed[0]

    async def _one(self, job: Job, answer: Answer) -> None:
        """Reads one answer to its end."""
        end = End()
        late = 0
        async with aclosing(self._engine.generate(job)) as batches:
            async for batch in batches:
                self._record.first()
                frames = answer.read(batch)
                if self._stream and (frames or not self._begun):
                    self._put(frames)
                    while self._size > _FULL:
                        await self._emptied.wait()
                if batch.end is not None:
                    end = batch.end
                late += answer.done
                if answer.stopped or late > _LATE:
                    break
        last = self._answers.finish(answer, end, self._record)
        if self._stream:
            over = self._answers.over
            if over:
                self._record.end(200)  # before the client sees that it is over
            self._put(last, over=over)

    def _fail(self, error: ApiError) -> Any:
        if not self._begun:
            self._record.end(error.status)
            self._over = True
            return self._failed(error)
        last = self._answers.fail(error, self._record)
        self._record.end(error.status)
        self._put(last, over=True)
        return None

    def _put(self, frames: str, over: bool = False) -> None:
        """Puts frames in the buffer."""
        if not self._begun:
            self._begun = True
            frames = self._head + frames
        self._buffer.append(frames)
        self._size += len(frames)
        self._over = over
        self._filled.set()

    async def _send(self, send: Send, scope: anyio.CancelScope) -> None:
        """Sends what is in the buffer, until no more comes. Then the request is done."""
        await self._filled.wait()
        await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        more = True
        while more:
            await self._filled.wait()
            self._filled = anyio.Event()
            data = "".join(self._buffer).encode()
            self._buffer.clear()
            self._size = 0
            self._emptied.set()
            self._emptied = anyio.Event()
            more = not self._over
            self._sending = True
            await send({"type": "http.response.body", "body": data, "more_body": more})
            self._sending = False
            self._moved = time.monotonic()
        scope.cancel()

    async def _until_left(self, receive: Receive, scope: anyio.CancelScope) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        scope.cancel()

    async def _watch(self, scope: anyio.CancelScope) -> None:
        keep_alive, slow = self._settings.keep_alive, self._settings.slow_client
        while True:
            await anyio.sleep(min(keep_alive, slow) / 2)
            silent = time.monotonic() - self._moved
            if self._sending:
                if silent > slow:
                    scope.cancel()
            elif silent >= keep_alive / 2 and not self._over:
                self._put(_COMMENT if self._begun else "")
