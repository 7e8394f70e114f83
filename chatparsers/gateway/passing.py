"""Passes requests on to the engine as they are: for its other paths, such as embeddings."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ..serving import ApiError
from .apis import CHAT
from .http_engine import HttpEngine
from .record import Record

__all__ = ["pass_on"]

_KEPT = ("content-type", "retry-after")


async def pass_on(engine: HttpEngine, http: Request, raw: bytes, record: Record) -> Response:
    """The engine's response to a request whose body is ``raw``."""
    headers = {"content-type": "application/json", **record.passed_on}
    try:
        response = await engine.send(http.url.path, raw, headers)
    except httpx2.HTTPError as error:
        failed = engine.broken(error)
        record.end(failed.status)
        return CHAT.failed(failed)
    record.asked()

    async def pieces() -> AsyncIterator[bytes]:
        status = response.status_code
        try:
            async for piece in response.aiter_bytes():
                record.first()
                yield piece
        except httpx2.HTTPError as error:
            status = ApiError.of(engine.broken(error)).status
            raise  # the client sees that its response breaks off
        finally:
            await response.aclose()
            record.end(status)

    kept = {name: value for name, value in response.headers.items() if name in _KEPT}
    return StreamingResponse(pieces(), response.status_code, kept)
