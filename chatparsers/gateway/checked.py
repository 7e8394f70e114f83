"""What each request passes before anything reads it: the consent for other origins, and the guard."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..serving import ApiError
from .guard import Guard
from .record import request_id
from .rollouts import Named, Rollouts
from .settings import Settings

Refused = Callable[[str, Headers, ApiError], Response]
"""Makes the response to a request that is refused: of its path, its headers and what is wrong."""


def middleware(
    settings: Settings, guard: Guard, refused: Refused, rollouts: Rollouts | None
) -> list[Middleware]:
    """What each request passes first."""
    found = [Middleware(Checked, guard=guard, refused=refused)]
    if rollouts is not None:
        indexed = settings.rollouts_name is not None
        elsewhere = partial(rollouts.elsewhere, guard=guard) if indexed else None
        found.append(Middleware(Named, elsewhere=elsewhere, refused=refused))
    if settings.cors:
        consent = Middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors),
            allow_methods=["*"],
            allow_headers=["*"],
            allow_private_network=True,  # such as this machine, to which the named pages may send
            expose_headers=[
                "x-request-id",
                "x-chatparsers-thoughts",
                "x-chatparsers-loop",
                "x-chatparsers-cache",
            ],
        )
        found.insert(0, consent)
    return found


class Checked:
    """Passes on the requests that the guard lets in, each with an id that its response bears too."""

    def __init__(self, app: ASGIApp, guard: Guard, refused: Refused) -> None:
        self._app = app
        self._guard = guard
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = MutableHeaders(scope=scope)
        id = request_id(headers.get("x-request-id"))
        headers["x-request-id"] = id

        async def named(event: Message) -> None:
            if event["type"] in ("http.response.start", "websocket.http.response.start"):
                event["headers"] = [*event["headers"], (b"x-request-id", id.encode())]
            await send(event)

        try:
            self._guard.check(dict(scope))
        except ApiError as error:
            response = self._refused(scope["path"], headers, error)
            if error.status == 400:
                response.headers["connection"] = "close"  # where this body ends is not sure
            await response(scope, receive, named)
            return
        await self._app(scope, receive, named)
