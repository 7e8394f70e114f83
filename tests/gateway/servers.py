"""An ASGI application on a port of this machine."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any


class Server:
    """An ASGI application on a port, in a thread."""

    def __init__(self, app: Any, **options: Any) -> None:
        import uvicorn

        class Prompt(uvicorn.Server):
            """Looks ten times as often as usual whether it must end, because many tests wait for that."""

            async def main_loop(self) -> None:
                counter = 0
                while not await self.on_tick(counter):
                    counter += 1
                    await asyncio.sleep(0.01)

        self.app = app
        known = {"log_level": "critical", "timeout_graceful_shutdown": 1, **options}
        config = uvicorn.Config(app, host="127.0.0.1", port=0, **known)
        self._server = Prompt(config)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        until = time.monotonic() + 20
        while not self._server.started and self._thread.is_alive() and time.monotonic() < until:
            time.sleep(0.005)
        assert self._server.started, "the server did not start"
        self.port = self._server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def _run(self) -> None:
        async def serve() -> None:
            self.loop = asyncio.get_running_loop()
            await self._server.serve()

        asyncio.run(serve())

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)
