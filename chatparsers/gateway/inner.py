"""A request within the gateway: how an API that is another's in other clothes asks it, and reads the stream."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.types import Message, Scope

from ..templates import to_json
from .record import request_id

_OWN = (b"connection", b"upgrade", b"content-length", b"content-type", b"x-request-id", b"accept-encoding")
"""Headers of the outer request that say nothing of the inner one."""


def inner(scope: Scope, body: dict[str, Any], left: Callable[[], Awaitable[object]]) -> HttpRequest:
    """The request with a body, asked for by who asked with ``scope``. ``left``: returns when the client has left."""
    raw, secure = to_json(body).encode(), scope["scheme"] in ("https", "wss")
    kept = [
        (name, value) for name, value in scope["headers"] if name not in _OWN and b"websocket" not in name
    ]
    known = dict(scope["headers"]).get(b"x-request-id") if scope["type"] == "http" else None
    said = {
        b"content-type": b"application/json",
        b"content-length": str(len(raw)).encode(),
        b"x-request-id": known or request_id(None).encode(),
    }
    given = False

    async def receive() -> Message:
        nonlocal given
        if not given:
            given = True
            return {"type": "http.request", "body": raw, "more_body": False}
        await left()
        return {"type": "http.disconnect"}

    scheme = "https" if secure else "http"
    changed = {"type": "http", "method": "POST", "scheme": scheme, "headers": [*kept, *said.items()]}
    return HttpRequest({**scope, **changed}, receive)


class Events:
    """Reads the events of a stream over HTTP. ``status`` and ``headers``: of the response."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: list[tuple[bytes, bytes]] = []
        self._rest = ""

    def take(self, event: Message) -> list[tuple[str, str]]:
        """The events in what is sent, each as its name, or "", and its data."""
        if event["type"] == "http.response.start":
            self.status, self.headers = event["status"], event["headers"]
            return []
        self._rest += event.get("body", b"").decode()
        if self.status != 200:
            return []
        *blocks, self._rest = self._rest.split("\n\n")
        found = []
        for block in blocks:
            name, known, data = f"\n{block}".partition("\ndata: ")
            if known:  # else it is a comment
                found.append((name.strip().removeprefix("event: "), data))
        return found

    def error(self) -> dict[str, Any]:
        """The error of a response that has no events."""
        try:
            return dict(json.loads(self._rest)["error"])
        except (ValueError, KeyError, TypeError):
            return {"message": self._rest[:200], "type": "server_error"}
