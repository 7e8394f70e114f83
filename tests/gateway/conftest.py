"""Gateways and scripted engines on ports of this machine."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from databases import database, server
from scripted import Script, Upstream
from servers import Server, model_files


@pytest.fixture(scope="session", autouse=True)
def no_certificates(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A client reads all certificates of this machine: 40 ms each time. No test needs one.

    The environment tells it to other processes, and to clients that look at it; ours do not for an engine beside them.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SSL_CERT_FILE", raising=False)
        patch.setenv("SSL_CERT_DIR", str(tmp_path_factory.mktemp("certificates")))
        patch.setattr(ssl.SSLContext, "load_verify_locations", lambda *arguments, **more: None)
        yield


@pytest.fixture
def upstream() -> Iterator[Callable[..., Upstream]]:
    """``upstream(script, context)``: a scripted engine. More arguments are those of `Upstream`."""
    made: list[Upstream] = []

    def make(script: Script, context: int | None = None, port: int = 0, **more: Any) -> Upstream:
        made.append(Upstream(script, context, port, **more))
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


@pytest.fixture
def model(tmp_path: Path) -> dict[str, str]:
    """The files of the tiny model, as flags."""
    return model_files(tmp_path)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Callable[[], str]]:
    """The URL of a server, which is started when it is first asked for."""
    with ExitStack() as stack:
        found: list[str] = []
        yield lambda: found[0] if found else found.append(stack.enter_context(server())) or found[0]


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, postgresql: Callable[[], str]) -> Iterator[Callable[[str], str]]:
    """Where a store is that a test calls so: there, or for all names in one new database."""
    if request.param == "sqlite":
        yield lambda where: where
    else:
        with database(postgresql()) as url:
            yield lambda where: url
