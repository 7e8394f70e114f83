"""The response to one request: it runs the engine, sends what comes, and stops the engine when the client leaves.

Strategy: a reader for each answer takes batches from the engine and leaves them. The writer takes all that was left
since it last looked, makes frames of it, and sends them. So what comes while it sends goes out together, and costs as
much as one batch: under load there are fewer and larger pieces. A reader waits while too many batches lie there, so a
slow client slows the engine. One more task waits for the client to leave. When the writer is done or the client has
left, all end, and the engine's connections are closed.

`watch` is one task for all responses. It looks at the silence of each: it asks for a comment after a while, and leaves
a client that takes nothing for long.

A stream begins with the engine's first batch, or with the first comment. Until then an error is an HTTP status.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any

import anyio
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..serving import ApiError
from .account import ANSWER
from .answer import Answer, Answers
from .apis import ending
from .budget import within_budget
from .engine import Batch, End, Engine, EngineError, Job, joined
from .record import LEFT, Record
from .rollouts import Recording
from .settings import Settings
from .work import until_left

HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
]
_COMMENT = ": waiting\n\n"
_FULL, _BATCH = 65_536, 16
"""How many characters of an answer may lie there, and what a batch counts besides its text."""
_LATE = 16
"""How many batches an engine may send after the end of the turn, before it is stopped. Most say how it ended."""


class _Reader:
    """What was read of one answer, and is not yet written. ``over``: the engine sends no more."""

    __slots__ = ("answer", "batches", "emptied", "end", "late", "over", "scope", "size")

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.batches: list[Batch] = []
        self.size = 0
        self.emptied: anyio.Event | None = None
        """What the reader waits for, if it waits."""
        self.end = End(None)
        self.late = 0
        self.over = False
        self.scope = anyio.CancelScope()

    @property
    def enough(self) -> bool:
        """Whether nothing that the engine may still send is wanted."""
        return self.answer.stopped or self.late > _LATE


class Responding:
    """An ASGI application that answers one request. ``jobs``: one for each of the answers. ``failed(error)`` is the
    response for an early error. ``running``: it is in there while it runs. ``over()`` is called at its end.
    ``keep(frames)`` keeps a whole answer before the client sees its end, and returns the frames that are sent then.
    ``begun``: the client has its response, and this is only the stream. ``recording``: writes the answers down.
    ``headers``: what the response has besides.
    """

    def __init__(
        self,
        engine: Engine,
        jobs: Sequence[Job],
        answers: Answers,
        *,
        stream: bool,
        record: Record,
        settings: Settings,
        over: Callable[[], None],
        failed: Any,
        running: set[Responding],
        keep: Callable[[str], Awaitable[str]] | None = None,
        begun: bool = False,
        recording: Recording | None = None,
        headers: Sequence[tuple[bytes, bytes]] = (),
    ) -> None:
        self._engine = engine
        self._jobs = [*jobs]
        self._answers = answers
        self.streams = stream
        self._record = record
        self._settings = settings
        self._over = over
        self._failed = failed
        self._running = running
        self._readers = [_Reader(answer) for answer in answers.all]
        self._error: ApiError | None = None
        self._keep = keep
        self._recording = recording
        self._headers = [*headers, *([] if recording is None else recording.headers)]
        self._sent_all = False
        """Whether the client was sent all of a whole answer."""
        self._begun = begun
        """Whether the head of the response has been sent."""
        self._filled = asyncio.Event()
        self._some = False
        """Whether something of the engine was read."""
        self._quiet = False
        """Whether a comment is due."""
        self._sending = False
        self._moved = time.monotonic()
        self._tasks = anyio.CancelScope()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._running.add(self)
        try:
            async with anyio.create_task_group() as tasks:
                self._tasks = tasks.cancel_scope
                tasks.start_soon(self._until_left, receive)
                self._record.asked()
                for reader in reversed(self._readers):
                    tasks.start_soon(self._read, self._jobs.pop(), reader)
                failed = await self._write(send)
                if failed is not None:
                    await failed(scope, receive, send)
                tasks.cancel_scope.cancel()
        finally:
            self._over()
            for answer in self._answers.all:
                if not answer.finished:
                    self._record.took(*answer.taken)
            self._record.end(LEFT)
            try:
                if self._recording is not None:
                    await self._recording.over(self._answers, sent=self._sent_all, error=self._error)
            finally:
                self._running.discard(self)

    @property
    def answer(self) -> Answer:
        """The first answer."""
        return self._readers[0].answer

    def stop(self) -> None:
        """Ends the answer with an error, because the server ends."""
        self._fail(ending())
        self._filled.set()

    # reading

    async def _read(self, job: Job, reader: _Reader) -> None:
        """Reads one answer to its end."""
        left = ANSWER
        try:
            generating = within_budget(self._engine, job)
            del job  # a long prompt is not held for as long as its answer lasts
            with reader.scope:
                async with aclosing(generating) as batches:
                    async for batch in batches:
                        if not reader.size:
                            self._record.first()
                            self._filled.set()
                        reader.batches.append(batch)
                        size = len(batch.text) + _BATCH
                        reader.size += size
                        left -= size
                        if left < 0:
                            raise EngineError(
                                f"the engine sent more than {ANSWER:,} characters for one answer"
                            )
                        if reader.size > _FULL:
                            reader.emptied = anyio.Event()
                            await reader.emptied.wait()
                            reader.emptied = None
        except Exception as error:
            self._fail(error)
        reader.over = True
        self._filled.set()

    def _fail(self, error: Exception) -> None:
        """The first error is the one that the client reads."""
        if not isinstance(error, ApiError):
            traceback.print_exception(error)
        self._error = self._error or ApiError.of(error)

    # writing

    async def _write(self, send: Send) -> Response | None:
        """Writes the answers as they come. Returns the response for an error if nothing has been sent."""
        answers = self._answers
        frames = answers.start()
        while True:
            await self._filled.wait()
            self._filled.clear()
            try:
                for reader in self._readers:
                    frames += self._taken(reader)
            except Exception as wrong:
                self._fail(wrong)
            error = self._error
            if error is not None:
                if not (self._begun or (self.streams and self._some)):
                    self._record.failed(error)
                    response: Response = self._failed(error)
                    return response
                frames += answers.fail(error, self._record)
                self._record.failed(error)
            elif answers.over:
                if self._recording is not None:
                    await self._recording.keep(self._answers)
                if self._keep is not None:
                    frames = await self._keep(frames)
                self._record.end(200)  # before the client sees that it is over
                if not self.streams:
                    await self._whole(send, answers.text().encode())
                    self._sent_all = True
                    return None
            if not self.streams or not (self._some or self._quiet or error):
                continue
            if self._quiet and not frames:
                frames = _COMMENT
            self._quiet = False
            if frames and await self._sent(send, frames, over=answers.over or error is not None):
                self._sent_all = error is None
                return None
            frames = ""

    def _taken(self, reader: _Reader) -> str:
        """The frames of what was read of an answer since the last time."""
        frames = ""
        over = reader.over
        found, reader.batches, reader.size = reader.batches, [], 0
        if reader.emptied is not None:
            reader.emptied.set()
        answer = reader.answer
        if found:
            batch = joined(found)
            if batch.end is not None:
                reader.end = reader.end.then(batch.end)
            reader.late += answer.done * len(found)
            frames = answer.read(batch)
            self._some = True
            if reader.enough and not over:
                over = True
                reader.scope.cancel()
        if over and self._error is None and not answer.finished:
            frames += self._answers.finish(answer, reader.end, self._record)
        return frames

    async def _sent(self, send: Send, frames: str, over: bool) -> bool:
        """Sends frames. Returns whether the response is over."""
        if not self._begun:
            self._begun = True
            headers = [*HEADERS, *self._headers, *self._answers.loop]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
        await self._part(send, frames.encode(), over)
        return over

    async def _whole(self, send: Send, raw: bytes) -> None:
        """Sends an answer that is not streamed, in parts, so that a client that takes it slowly is seen to take it."""
        size = str(len(raw)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", size), *self._headers]
        headers += self._answers.loop
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for begin in range(0, len(raw), _FULL):
            await self._part(send, raw[begin : begin + _FULL], begin + _FULL >= len(raw))

    async def _part(self, send: Send, raw: bytes, over: bool) -> None:
        self._sending, self._moved = True, time.monotonic()
        await send({"type": "http.response.body", "body": raw, "more_body": not over})
        self._sending, self._moved = False, time.monotonic()

    # watching

    async def _until_left(self, receive: Receive) -> None:
        await until_left(receive)
        self._tasks.cancel()

    def look(self, now: float) -> None:
        """Looks at how long nothing has moved."""
        keep_alive, slow = self._settings.keep_alive, self._settings.slow_client
        silent = now - self._moved
        if self._sending:
            if silent > slow:
                self._tasks.cancel()
        elif self.streams and silent >= keep_alive / 2:
            self._quiet = True
            self._filled.set()


async def watch(running: set[Responding], settings: Settings) -> None:
    """Looks at all responses, again and again."""
    while True:
        await anyio.sleep(min(settings.keep_alive, settings.slow_client) / 2)
        now = time.monotonic()
        for responding in [*running]:
            responding.look(now)
