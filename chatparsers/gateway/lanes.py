"""Runs what prepares requests in threads, so that none waits long behind another, and gives it up when it must.

Strategy. A request whose template, schemas and prompt are small takes a millisecond: these run one after another in the
fast lane. One that takes longer leaves the lane after `FAST` seconds and goes on beside it, so that the next can begin.
At most `BESIDE` may run so. The interpreter shares the time between them and the thread of the streams.

Work is given up when its client leaves or when it has taken its seconds of CPU: an exception is raised in its thread at
the next instruction of Python. A call of C is not interrupted: `chatparsers.gateway.encode` keeps these short.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import anyio
import anyio.to_thread

from ..serving import ApiError

__all__ = ["BESIDE", "FAST", "Lanes", "Left"]

T = TypeVar("T")
_NEVER = 2**31 - 1
"""So many passes over the younger objects come before a whole one."""

FAST = 0.05
"""How many seconds work may hold the fast lane."""
BESIDE = 4
"""How many may run at once."""
_LANDING = 10_000
"""How many instructions an exception that was raised in a thread has to land."""
_LOOK = 0.1
"""How often, in seconds, the CPU time of work is looked at."""


class Left(Exception):
    """The client left, and nobody waits for the work."""


class _GivenUp(BaseException):
    """Raised in the thread of work that is given up. It is no `Exception`, so that nothing takes it for a failure."""


class Lanes:
    """The threads of a gateway. ``seconds``: how much CPU the preparation of a request may take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._fast = anyio.Semaphore(1)
        self._threads = anyio.CapacityLimiter(BESIDE)

    async def run(self, work: Callable[[], T], left: Callable[[], Awaitable[object]] | None = None) -> T:
        """What ``work`` returns. ``left``: returns when the client has left.

        Raises `Left` then, and `ApiError` if the work takes too much CPU.
        """
        given = _Work(work)
        fast = _Held(self._fast)
        done = anyio.Event()
        async with anyio.create_task_group() as tasks:
            try:
                if left is not None:
                    tasks.start_soon(self._until_left, left, given)
                await fast.take()
                tasks.start_soon(self._thread, given, done)
                tasks.start_soon(self._watch, given, fast)
                await done.wait()
            finally:
                fast.release()
                given.give_up(Left())  # if the request is cancelled; else it is over
                tasks.cancel_scope.cancel()
        return given.result()

    async def _thread(self, given: _Work[T], done: anyio.Event) -> None:
        with anyio.CancelScope(shield=True):  # its thread does not outlive the request
            await anyio.to_thread.run_sync(given.run, limiter=self._threads)
        done.set()

    async def _until_left(self, left: Callable[[], Awaitable[object]], given: _Work[T]) -> None:
        await left()
        given.give_up(Left())

    async def _watch(self, given: _Work[T], fast: _Held) -> None:
        await anyio.sleep(FAST)
        fast.release()
        with _sweeps:
            while True:
                if given.cpu() > self._seconds:
                    taken = f"the request takes more than {self._seconds:g} seconds of CPU"
                    said = f"{taken}: send smaller tools or schemas"
                    given.give_up(ApiError(said, status=413, code="too_expensive"))
                await anyio.sleep(_LOOK)


class _Sweeps:
    """While it is entered, the garbage collector makes no whole pass. One stops all threads, the longer the more
    objects there are: with a large grammar half made, a quarter of a second, again and again."""

    def __init__(self) -> None:
        self._entered = 0
        self._usual = gc.get_threshold()

    def __enter__(self) -> None:
        if not self._entered:
            self._usual = gc.get_threshold()
            gc.set_threshold(*self._usual[:2], _NEVER)
        self._entered += 1

    def __exit__(self, *error: object) -> None:
        self._entered -= 1
        if not self._entered:
            gc.set_threshold(*self._usual)


_sweeps = _Sweeps()


class _Held:
    """A place in a lane, which is left once."""

    def __init__(self, lane: anyio.Semaphore) -> None:
        self._lane = lane
        self._held = False

    async def take(self) -> None:
        await self._lane.acquire()
        self._held = True

    def release(self) -> None:
        if self._held:
            self._held = False
            self._lane.release()


class _Work(Generic[T]):
    """Work in a thread, which another thread may give up."""

    def __init__(self, work: Callable[[], T]) -> None:
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

    def give_up(self, why: Exception) -> None:
        """Ends the work, once. Work that is done stays so."""
        with self._lock:
            if self._failure is None and not self._result:
                self._failure = why
                if self._thread is not None:
                    self._raised = True
                    _raise_in(self._thread, _GivenUp)

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
