"""The HTTP server: uvicorn, with the bounds that uvicorn does not have.

A connection that sends no whole head, or takes nothing of what is written to it, holds a socket, and nothing would ever
close it. So a timer runs while a connection is open and no request of it is being answered, and another while it is
full. A head has a size too: not all of uvicorn's parsers bound it. `Settings.body_timeout` is the time for a body.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from .websocket import DRAIN

HEAD_SECONDS = 20.0
"""How long a connection may take for the head of its next request."""
HEAD_SIZE = 65_536
"""How many bytes that head may have."""
_AT_ONCE = 16_384
"""How many bytes are read before the other connections have their turn: a body may come in chunks of one byte."""

_Base: Any = AutoHTTPProtocol


def timed_protocol(seconds: float = HEAD_SECONDS, slow: float = 120.0) -> Any:
    """The protocol for ``uvicorn.Config(http=…)``. ``slow``: for how many seconds a client may take nothing."""

    class Timed(_Base):  # type: ignore[misc]
        _timer: asyncio.TimerHandle | None = None
        _full: asyncio.TimerHandle | None = None
        _upgraded = False
        _head = 0
        """How many bytes have come of the next head."""

        def connection_made(self, transport: Any) -> None:
            with suppress(AttributeError):  # a transport of another loop
                transport.max_size = _AT_ONCE
            super().connection_made(transport)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._asked():
                self._stop()
                self._head = 0
            else:
                self._wait()
                self._head += len(data)
                if self._head > HEAD_SIZE:
                    self.transport.abort()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop()
            self._emptied()
            super().connection_lost(error)

        def pause_writing(self) -> None:
            super().pause_writing()
            self._look(-1)

        def resume_writing(self) -> None:
            super().resume_writing()
            self._emptied()

        def _asked(self) -> bool:
            """Whether a request is being answered."""
            cycle: Any = self.cycle
            return cycle is not None and not cycle.response_complete

        def handle_websocket_upgrade(self, *event: Any) -> None:
            self._stop()  # it is no request any more
            self._upgraded = True
            super().handle_websocket_upgrade(*event)

        def _wait(self) -> None:
            if self._timer is None and not self._upgraded:
                self._timer = self.loop.call_later(seconds, self._late)

        def _stop(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

        def _late(self) -> None:
            self._timer = None
            if not self._asked():
                self.transport.close()

        def _look(self, before: int) -> None:
            """Leaves a client that has taken nothing since ``before`` bytes waited for it, and looks again later."""
            waiting = self.transport.get_write_buffer_size()
            if waiting == before:
                self.transport.abort()
            else:
                self._full = self.loop.call_later(slow, self._look, waiting)

        def _emptied(self) -> None:
            if self._full is not None:
                self._full.cancel()
                self._full = None

    return Timed


def draining_socket() -> Any:
    """The protocol for ``uvicorn.Config(ws=…)``, under which a response that runs may end before the server does; the
    word for none if the package websockets is not there."""
    try:
        from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
    except ImportError:
        return "none"
    base: Any = WebSocketsSansIOProtocol

    class Draining(base):  # type: ignore[misc]
        def shutdown(self) -> None:
            if self.handshake_complete and not self.close_sent:
                self.stop_keepalive()
                self.queue.put_nowait(DRAIN)
            else:
                super().shutdown()

    return Draining
