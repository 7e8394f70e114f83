"""Work in a thread that can be given up.

An exception is raised in its thread at the next instruction of Python. A call of C is not interrupted:
`chatparsers.gateway.encode` keeps these short.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Generic, TypeVar

import anyio
from starlette.types import Receive

T = TypeVar("T")
_LANDING = 10_000
"""How many instructions an exception that was raised in a thread has to land."""
_AGAIN = 0.5
"""After how many seconds it is raised again, if it has not landed."""


class Left(Exception):
    """The client left, and nobody waits for the work."""


async def until_left(receive: Receive) -> None:
    """Waits until the client leaves: once its body has come, nothing else can."""
    while (await receive())["type"] != "http.disconnect":
        pass


class _GivenUp(BaseException):
    """Raised in the thread of work that is given up. It is no `Exception`, so that nothing takes it for a failure."""


class Work(Generic[T]):
    """Work for a thread. It is made, watched and given up in the thread of the event loop. ``left``: returns when the
    client has left. ``over``: it is done or given up."""

    def __init__(self, work: Callable[[], T], left: Callable[[], Awaitable[object]] | None = None) -> None:
        self.over = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._left = left
        self._watching: asyncio.Task[None] | None = None
        self._work = work
        self._lock = threading.Lock()
        self._thread: int | None = None
        self._before = 0.0
        self._failure: Exception | None = None
        self._raised = False
        self._landed = False
        self._result: list[T] = []

    def run(self) -> None:
        """Runs the work in this thread. An exception that was raised in it lands here, and never in other work."""
        try:
            self._begin()
        except _GivenUp:
            self._landed = True
        try:
            with self._lock:
                self._thread = None  # from here on nothing is raised in this thread
            if self._raised and not self._landed:
                for _ in range(_LANDING):
                    pass  # it is on its way, and lands at one of these instructions
        except _GivenUp:
            self._landed = True
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            self._loop.call_soon_threadsafe(self.over.set)

    def _begin(self) -> None:
        thread = threading.get_ident()
        with self._lock:
            if self._failure is not None:
                return
            self._before = _clock(thread)
            self._thread = thread
        try:
            self._result.append(self._work())
        except Exception as error:
            self._failure = self._failure or error

    def watch(self) -> None:
        """Gives the work up when the client leaves, from now on."""
        if self._left is not None:
            self._watching = asyncio.ensure_future(self._until_left(self._left))

    async def _until_left(self, left: Callable[[], Awaitable[object]]) -> None:
        await left()
        self.give_up(Left())

    async def wait(self) -> None:
        """Waits until it is over. A request that is cancelled gives it up, and does not end before it."""
        try:
            await self.over.wait()
        except BaseException:
            self.give_up(Left())
            with anyio.CancelScope(shield=True):
                await self.over.wait()
            raise
        finally:
            if self._watching is not None:
                self._watching.cancel()

    def give_up(self, why: Exception) -> None:
        """Ends the work, once. Work that is done stays so."""
        with self._lock:
            if self._failure is None and not self._result:
                self._failure = why
                self._raise()

    def _raise(self) -> None:
        """Raises in the thread until it lands: what runs as a finalizer, or as a weak reference dies, loses what is
        raised in it."""
        if self._thread is not None and not self._landed:
            self._raised = True
            _raise_in(self._thread, _GivenUp)
            self._loop.call_later(_AGAIN, self._raise_again)

    def _raise_again(self) -> None:
        with self._lock:
            self._raise()

    def cpu(self) -> float:
        """The seconds of CPU that its thread has taken since it began to work."""
        with self._lock:
            return 0.0 if self._thread is None else _clock(self._thread) - self._before

    def result(self) -> T:
        """What the work returned, once: the thread goes on to hold the work. Raises what it raised, or the reason for
        which it was given up."""
        if not self._result:
            raise self._failure or Left()
        return self._result.pop()


def _clock(thread: int) -> float:
    """The seconds of CPU of a thread; where the system does not tell, the seconds that pass."""
    known = getattr(time, "pthread_getcpuclockid", None)
    return time.monotonic() if known is None else time.clock_gettime(known(thread))


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Raises an exception in a thread at its next instruction.

    It must land: one that is taken back (with NULL) leaves CPython 3.11 to look for it at every instruction from then
    on, in all threads, and a profiled thread then stands still.
    """
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
