"""Gateways and scripted engines on ports of this machine."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from scripted import Script, Upstream
from servers import Server


@pytest.fixture(scope="session", autouse=True)
def one_context() -> Iterator[None]:
    """Each client reads all certificates of this machine for a context of TLS. No test needs one, so they share it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


@pytest.fixture
def upstream() -> Iterator[Callable[..., Upstream]]:
    """``upstream(script, context)``: a scripted engine."""
    made: list[Upstream] = []

    def make(script: Script, context: int | None = None, port: int = 0) -> Upstream:
        made.append(Upstream(script, context, port))
        return made[-1]

    yield make
    for found in made:
        found.close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    """``serve(app)``: the application on a port. More arguments are options of ``uvicorn.Config``."""
    made: list[Server] = []

    def make(app: Any, **options: Any) -> Server:
        made.append(Server(app, **options))
        return made[-1]

    yield make
    for found in reversed(made):
        found.close()
