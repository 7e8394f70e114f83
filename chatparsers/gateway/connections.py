"""The connections to an engine.

A pool of httpx2 looks at each of its connections and requests when a request begins and when it ends. That is most of
what a request costs where some hundred run at once, and of thousands none gets through on a busy machine. So a pool has
`EACH` requests at most, and where all are full, there is one more.

And a server keeps some hundred connections that it has not yet taken; what comes beyond is tried again after seconds,
and at last in vain. So only `AT_ONCE` are opened at once. The others wait, and the time that a connection may take
begins when it is opened. If one fails and none was opened meanwhile, those that wait fail with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx2

EACH = 32
"""How many requests a pool has at most."""
AT_ONCE = 64
_KEPT = 256
"""How many connections are kept open for later requests."""


class Connections:
    """The HTTP clients of an engine, each with a pool of its own. ``make``: a new one, which may keep so many
    connections open. ``only``: a client of the user's own, which takes all requests."""

    def __init__(
        self, make: Callable[[int], httpx2.AsyncClient], only: httpx2.AsyncClient | None = None
    ) -> None:
        self._make = make
        self._only = only
        self._clients: list[_Client] = []
        self._requests = 0
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._opened = self._failed = 0
        """How many connections were opened in turn, and how many could not be."""

    @contextmanager
    def client(self) -> Iterator[httpx2.AsyncClient]:
        """The client for one request, until its response is closed."""
        if self._only is not None:
            yield self._only
            return
        found = next((one for one in self._clients if one.requests < EACH), None)
        if found is None:
            found = _Client(self._make(EACH if len(self._clients) * EACH < _KEPT else 0))
            self._clients.append(found)
        found.requests += 1
        self._requests += 1
        try:
            yield found.client
        finally:
            found.requests -= 1
            self._requests -= 1

    @property
    def extensions(self) -> dict[str, Any]:
        """Of a request. Where there are few, none has to wait."""
        return {"trace": self._trace} if self._requests > AT_ONCE else {}

    async def _trace(self, event: str, info: dict[str, Any]) -> None:
        """Is called before and after a connection is opened, and at other times."""
        if event == "connection.connect_tcp.started":
            opened, failed = self._opened, self._failed
            await self._turns.acquire()
            if self._failed > failed and self._opened == opened:
                self._turns.release()
                raise httpx2.ConnectTimeout("no other connection could be opened")
        elif event == "connection.connect_tcp.complete":
            self._opened += 1
            self._turns.release()
        elif event == "connection.connect_tcp.failed":
            self._failed += isinstance(info["exception"], Exception)  # else its client has left
            self._turns.release()

    async def close(self) -> None:
        """Closes all of them."""
        for client in [one.client for one in self._clients] if self._only is None else [self._only]:
            await client.aclose()


class _Client:
    """``requests``: how many it has now."""

    __slots__ = ("client", "requests")

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self.client = client
        self.requests = 0
