"""A fair thread pool for parsing, templating and grammar work.

Strategy. A request whose template, schemas and prompt are small takes a millisecond: these run one after another in the
fast thread. Work that takes longer than `FAST` seconds keeps that thread for itself, and a new one becomes the fast
thread. At most `BESIDE` such slow works run at once: if there is no place, the work is given up, and begins anew when
there is one. So the slow requests wait for each other, and the others for none of them. The interpreter shares the time
between them and the thread of the streams. One client never has all places, and who has fewest gets the next.
"""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from queue import SimpleQueue
from typing import Any, TypeVar

from ..serving import ApiError
from .work import Left, Work

__all__ = ["BESIDE", "FAST", "FairPool", "Left"]

T = TypeVar("T")
_NEVER = 2**31 - 1
"""So many passes over the younger objects come before a whole one."""

FAST = 0.05
"""How many seconds work may hold the fast thread."""
BESIDE = 4
"""How many may go on beside it at once."""
SHARE = BESIDE - 1
"""How many of them may be of one client."""


class _Again(Exception):
    """The work is dear, and there is no place beside the fast thread."""


class FairPool:
    """Where a gateway prepares its requests. ``seconds``: how much CPU the preparation of one may take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._fast = _FastThread()
        self._shares = _Shares()
        self._clients: dict[Work[Any], str] = {}
        """Whose the work is that is not yet done."""
        self._beside: set[Work[Any]] = set()
        self._looking: asyncio.TimerHandle | None = None

    def close(self) -> None:
        """Ends the fast thread. Work that comes later gets another."""
        self._fast.close()

    async def run(
        self, work: Callable[[], T], left: Callable[[], Awaitable[object]] | None = None, client: str = ""
    ) -> T:
        """What ``work`` returns. It may be given up and begun again. ``left``: returns when the client has left.
        ``client``: who asks; "" if that is not known.

        Raises `Left` then, and `ApiError` if the work takes too much CPU.
        """
        given = Work(work, left)
        self._fast.put(given)
        self._clients[given] = client
        self._look_later()
        try:
            return await self._result(given)
        except _Again:
            await self._shares.take(client)
        given = Work(work, left)
        try:
            threading.Thread(target=given.run, daemon=True).start()
        except RuntimeError:  # the system gives no thread
            self._shares.leave(client)
            raise
        self._clients[given] = client
        self._goes_on_beside(given)
        return await self._result(given)

    async def _result(self, given: Work[T]) -> T:
        try:
            await given.wait()
        finally:
            client = self._clients.pop(given)
            if given in self._beside:
                self._beside.remove(given)
                self._shares.leave(client)
                _sweeps.leave()
        return given.result()

    def _goes_on_beside(self, given: Work[Any]) -> None:
        """It has a place there."""
        self._beside.add(given)
        given.watch()
        _sweeps.enter()
        self._look_later()

    def _look_later(self) -> None:
        if self._looking is None:
            self._looking = asyncio.get_running_loop().call_later(FAST, self._look)

    def _look(self) -> None:
        """Looks at the work that is being done."""
        self._looking = None
        given = self._fast.holds_up()
        if given is not None:
            self._clear(given)
        for one in self._beside:
            if one.cpu() > self._seconds:
                taken = f"the request takes more than {self._seconds:g} seconds of CPU"
                said = f"{taken}: send smaller tools or schemas"
                one.give_up(ApiError(said, status=413, code="too_expensive"))
        if self._beside or self._fast.busy:
            self._look_later()

    def _clear(self, given: Work[Any]) -> None:
        """Frees the fast thread of work that holds it up."""
        client = self._clients.get(given)
        if client is None:  # it is done
            return
        if not self._shares.take_now(client):
            if given.cpu() > FAST:  # else it is cheap, and the others take the time
                given.give_up(_Again())
            return
        if self._fast.let_go(given):
            self._goes_on_beside(given)
        else:
            self._shares.leave(client)


class _Shares:
    """The places beside the fast thread. A client that is known has at most `SHARE` of them."""

    def __init__(self) -> None:
        self._free = BESIDE
        self._held: Counter[str] = Counter()
        self._waiting: list[tuple[str, asyncio.Future[None]]] = []

    def _may(self, client: str) -> bool:
        return self._free > 0 and (not client or self._held[client] < SHARE)

    def take_now(self, client: str) -> bool:
        """Whether there was a place for the client, which it has now."""
        if not self._may(client):
            return False
        self._free -= 1
        self._held[client] += 1
        return True

    async def take(self, client: str) -> None:
        """Takes a place as soon as there is one for the client."""
        if self.take_now(client):
            return
        one = client, asyncio.get_running_loop().create_future()
        self._waiting.append(one)
        try:
            await one[1]
        except asyncio.CancelledError:
            if one in self._waiting:
                self._waiting.remove(one)
            else:
                self.leave(client)
            raise

    def leave(self, client: str) -> None:
        """Gives a place back. The next is of the client that has fewest, and of those of the one that waits longest."""
        self._free += 1
        self._held[client] -= 1
        if not self._held[client]:
            del self._held[client]
        may = [one for one in self._waiting if self._may(one[0]) and not one[1].done()]
        if may:
            one = min(may, key=lambda waits: self._held[waits[0]])
            self._waiting.remove(one)
            self.take_now(one[0])
            one[1].set_result(None)


class _FastThread:
    """One thread that does work after work. `let_go` leaves the thread to the work that it does, and makes another."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[Work[Any] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._served = False
        self._number = 0
        """Of the thread that is the fast one; the others end."""
        self._does: Work[Any] | None = None
        self._since = 0.0

    @property
    def busy(self) -> bool:
        return self._does is not None or not self._waiting.empty()

    def put(self, given: Work[Any]) -> None:
        """Work that is done when all before it is done."""
        if not self._served:
            self._serve_anew()
        self._waiting.put(given)

    def close(self) -> None:
        """Ends the thread when all before is done."""
        self._waiting.put(None)
        self._waiting, self._served = SimpleQueue(), False

    def holds_up(self) -> Work[Any] | None:
        """The work that has been done for `FAST` seconds; None if there is none."""
        with self._lock:
            return self._does if time.monotonic() - self._since > FAST else None

    def let_go(self, given: Work[Any]) -> bool:
        """Whether the work was still being done, and goes on beside it now."""
        with self._lock:
            if self._does is not given:
                return False
            try:
                self._serve_anew()
            except RuntimeError:  # the system gives no thread: this one goes on to be the fast one
                return False
            self._does = None
            return True

    def _serve_anew(self) -> None:
        threading.Thread(target=self._serve, args=(self._number + 1, self._waiting), daemon=True).start()
        self._number += 1
        self._served = True

    def _serve(self, number: int, waiting: SimpleQueue[Work[Any] | None]) -> None:
        while (given := waiting.get()) is not None:
            with self._lock:
                self._does, self._since = given, time.monotonic()
            given.run()
            with self._lock:
                if number != self._number:
                    return
                self._does = None
            del given  # it holds what a request has sent


class _Sweeps:
    """While slow work runs, the garbage collector makes no whole pass. One stops all threads, the longer
    the more objects there are: with a large grammar half made, a quarter of a second, again and again."""

    def __init__(self) -> None:
        self._entered = 0
        self._usual = gc.get_threshold()

    def enter(self) -> None:
        if not self._entered:
            self._usual = gc.get_threshold()
            gc.set_threshold(*self._usual[:2], _NEVER)
        self._entered += 1

    def leave(self) -> None:
        self._entered -= 1
        if not self._entered:
            gc.set_threshold(*self._usual)


_sweeps = _Sweeps()
