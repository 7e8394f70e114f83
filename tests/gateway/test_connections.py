"""Many requests to one engine at once: pools stay small, and few connections are opened at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import pytest
from scripted import Llama, Upstream
from servers import tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

from chatparsers.gateway import Job, LlamaServer
from chatparsers.gateway.connections import AT_ONCE, EACH, Connections

STARTED, OPENED, FAILED = (f"connection.connect_tcp.{name}" for name in ("started", "complete", "failed"))


def test_many_requests_have_several_pools(upstream: Callable[..., Upstream]) -> None:
    """None has more than its share, in flight or kept open, and all come back for the next request."""
    model = tiny_model("qwen3")
    upstream_engine = upstream(Llama(["Hi"], model.tokenizer))
    number = AT_ONCE + 2 * EACH
    largest: list[int] = []

    async def run() -> None:
        engine = LlamaServer(upstream_engine.url)
        await engine.start(model.chat)

        async def one() -> str:
            async with aclosing(engine.generate(Job(model.chat.bind(), [1], max_tokens=9))) as batches:
                text = "".join([batch.text async for batch in batches])
            largest.append(max(client.requests for client in engine._connections._clients))
            return text

        assert set(await asyncio.gather(*(one() for _ in range(number)))) == {"Hi"}
        clients = engine._connections._clients
        assert len(clients) == number / EACH and max(largest) == EACH
        assert not any(client.requests for client in clients)
        assert await one() == "Hi" and len(clients) == number / EACH
        await engine.close()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("events", "waits"),
    [
        ([], True),
        ([(OPENED, {})], None),
        ([(FAILED, {"exception": asyncio.CancelledError()})], None),
        ([(FAILED, {"exception": OSError()})], "no other connection could be opened"),
        ([(OPENED, {}), (FAILED, {"exception": OSError()})], None),
    ],
    ids=["waits", "opened", "left", "failed", "one failed"],
)
def test_connections_are_opened_in_turn(events: list[Any], waits: str | bool | None) -> None:
    """An engine that cannot be reached is said to all that wait, and not to one after the other."""

    async def run() -> str | bool | None:
        connections = Connections(lambda kept: httpx2.AsyncClient())
        for _ in range(AT_ONCE):
            await connections._trace(STARTED, {})
        late = asyncio.ensure_future(connections._trace(STARTED, {}))
        await asyncio.sleep(0)
        for event in events:
            await connections._trace(*event)
        for _ in range(9):
            await asyncio.sleep(0)
        if not late.done():
            late.cancel()
            return True
        error = late.exception()
        return None if error is None else str(error)

    assert asyncio.run(run()) == waits
