"""The HTTP server: uvicorn, with a time limit for a request's head, which uvicorn does not have.

A connection that sends no whole head holds a socket, and nothing would ever close it. So a timer runs while a
connection is open and no request of it is being answered. `Settings.body_timeout` is the time
for a body.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

__all__ = ["HEAD_SECONDS", "timed_protocol"]

HEAD_SECONDS = 20.0
"""How long a connection may take for the head of its next request."""

_Base: Any = AutoHTTPProtocol


def timed_protocol(seconds: float = HEAD_SECONDS) -> Any:
    """The protocol for ``uvicorn.Config(http=…)``."""

    class Timed(_Base):  # type: ignore[misc]
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._asked():
                self._stop()
            else:
                self._wait()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop()
            super().connection_lost(error)

        def _asked(self) -> bool:
            """Whether a request is being answered."""
            cycle: Any = self.cycle
            return cycle is not None and not cycle.response_complete

        def _wait(self) -> None:
            if self._timer is None:
                self._timer = self.loop.call_later(seconds, self._late)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _late(self) -> None:
            self._timer = None
            if not self._asked():
                self.transport.close()

    return Timed
