"""Runs a gateway: what ``chatparsers serve`` does."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import signal
import socket
import sys
import time
import warnings
from argparse import Namespace
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import tomli_w
import uvicorn

from .. import CORE
from ..cli.about import version
from ..cli.arguments.words import WORDS
from ..cli.files import Refused
from ..errors import ChatParsersError
from ..gateway.app import create_team_app
from ..gateway.engine import EngineError
from ..gateway.metrics import Metrics
from ..gateway.models import Model
from ..gateway.server import draining_socket, timed_protocol
from ..plain import one_line
from . import config as files
from .config import Config
from .settings import settings_of
from .spent import spent_of
from .team import Team, keys

_OF_FILES = ("config", "check_config", "print_config")
_OF_MODELS = frozenset(word.key for word in WORDS.values() if "models" in dict(word.places))
_AGAIN = 1.0
_WARNINGS = 100
_LAST_WORDS = 2
"""How many seconds answers have to say that they are cut off."""
_LOOK = 0.1
_FILES, _OTHER_FILES = 65_536, 64
"""How many files may be open at most, and how many of them are no requests."""
SWITCH = 0.001
"""How many seconds a thread that prepares a request may keep the interpreter from the thread of the streams."""


def run(arguments: Namespace) -> int:
    """Serves until it is interrupted. Raises `Refused`, or `EngineError` if the engine cannot be used."""
    if arguments.check_config is not None:
        return _check(arguments.check_config)
    config = _config(arguments)
    if arguments.print_config:
        sys.stdout.write(tomli_w.dumps(files.written(config)))
        return 0
    team = Team()
    try:
        models = team.models(config)
    except EngineError as error:
        raise _away(error) from error
    given = config.gateway() if len(models) > 1 else config.model(next(iter(config.models)))
    try:
        settings = settings_of(given, models[0].name, given.api_key)
        spans = _spans() if given.spans else None
        app = create_team_app(models, settings, keys(config), spans)
    except ValueError as error:
        raise Refused(str(error)) from error
    server = uvicorn.Config(
        app,
        host=given.host,
        port=given.port,
        backlog=max(2048, 2 * settings.concurrency),  # these wait while it is busy
        http=timed_protocol(slow=settings.slow_client),
        ws=draining_socket(),
        ws_max_size=settings.max_body,
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=math.ceil(given.drain),
        ssl_certfile=given.tls_cert,
        ssl_keyfile=given.tls_key,
    )
    sys.setswitchinterval(SWITCH)
    _show_few_warnings()
    _open_files(settings.concurrency)
    usual = signal.getsignal(signal.SIGTERM)
    try:
        again = _Again(arguments, config, team, app, server)
        terminated = asyncio.run(_serve(app, server, models, given, again))
    except EngineError as error:
        raise _away(error) from error
    finally:
        if spans is not None:
            spans.close()
    if terminated:  # only now: what was kept is closed, and the spans are sent
        signal.signal(signal.SIGTERM, usual)
        signal.raise_signal(signal.SIGTERM)
    return 0


def _spans() -> Any:
    """Who traces requests. Raises `Refused` if its packages are not installed."""
    try:
        from .spans import Spans

        return Spans.exported()
    except ModuleNotFoundError as error:
        raise Refused(f"--spans needs {error.name}: pip install 'chatparsers[otel]'") from error


def _check(path: str) -> int:
    """Says what is wrong in a file."""
    found, mistakes = files.read(path, {})
    for mistake in mistakes:
        print(mistake)
    if not mistakes:
        print(f"{path}: {len(found.models)} models, {len(found.keys)} keys, no mistakes")
    return 1 if mistakes else 0


def _config(arguments: Namespace) -> Config:
    """What is to be served. Raises `Refused` if that cannot be."""
    said = {name: value for name, value in arguments.said.items() if name not in _OF_FILES}
    if arguments.config is None:
        _refuse(arguments)
        return files.of_flags(Namespace(said=said))
    config, mistakes = files.read(arguments.config, said)
    if mistakes:
        more = f" (and {len(mistakes) - 1} more: --check-config says all)" if mistakes[1:] else ""
        raise Refused(f"{mistakes[0]}{more}")
    alone = [name for name in ("model", "url", "gguf") if name in said]
    if alone and len(config.models) > 1:
        raise Refused(f"--{alone[0]} is of one model, and {arguments.config} has {len(config.models)}")
    return config


def _refuse(arguments: Namespace) -> None:
    """Raises `Refused` for flags that cannot be."""
    if arguments.url is not None and not arguments.url.startswith(("http://", "https://")):
        raise Refused(f"{arguments.url}: expected a URL such as http://127.0.0.1:8080")
    for key, said in files.wrong(arguments, "say --api-key or --api-key-file as well"):
        word = WORDS[key]
        by_variable = os.environ.get(word.variable) == str(getattr(arguments, key))
        raise Refused(f"{f'${word.variable}' if by_variable else word.flag}: {said}")


class _Again:
    """Has the file read again at SIGHUP: models and keys change, certificates and the log are opened anew, and what
    runs goes on. A file with a mistake changes nothing."""

    def __init__(
        self, arguments: Namespace, config: Config, team: Team, app: Any, server: uvicorn.Config
    ) -> None:
        self._arguments = arguments
        self._config = config
        self._team = team
        self._app = app
        self._server = server
        self._asked = asyncio.Event()

    async def run(self) -> None:
        """Waits for signals, and reads."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            try:
                said = await self._read()
            except (Refused, EngineError, ChatParsersError, OSError) as error:
                said = f"what runs stays as it is: {error}"
            print(f"chatparsers: SIGHUP: {one_line(said)}", file=sys.stderr, flush=True)

    def ask(self) -> None:
        """The signal came."""
        self._asked.set()

    async def _read(self) -> str:
        tls = self._arguments.tls_cert or self._config.gateway().tls_cert
        if tls is not None and self._server.ssl is not None:
            self._server.ssl.load_cert_chain(tls, self._config.gateway().tls_key)
        path = self._arguments.config
        if path is None:
            return "the log and the certificate are opened anew; there is no --config to read"
        config = await asyncio.to_thread(_config, self._arguments)
        fixed = [name for name in {**config.server, **self._config.server} if name not in _OF_MODELS]
        left = [n for n in fixed if config.server.get(n) != self._config.server.get(n)]
        models = await asyncio.to_thread(self._team.models, config)
        await self._app.state.change(models, keys(config))
        self._config = config
        names = ", ".join(one.name + ("" if one.started else " (not yet)") for one in models)
        more = f"; only a restart changes {', '.join(left)}" if left else ""
        return f"{path} is read: models {names}; {len(config.keys)} keys{more}"


def _away(error: EngineError) -> Exception:
    """What is said of an engine that is not there, or not yet; the error itself for any other."""
    if error.where is not None:
        said = f"no engine answers at {error.where}: start it, or name its URL"
    elif error.status == 503:
        said = str(error)
    else:
        return error
    return Refused(f"{said} (--wait 300 waits so many seconds for one that starts)")


async def _serve(
    app: Any, config: uvicorn.Config, models: Sequence[Model], arguments: Namespace, again: _Again
) -> bool:
    """Whether SIGTERM ended it."""
    listening, got = _bound(arguments), list[int]()
    if hasattr(signal, "SIGHUP"):  # not on Windows
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, again.ask)
    running = [asyncio.ensure_future(again.run())]
    spent = spent_of(arguments.store, arguments.port, app.state.keys)
    if spent is not None:
        running.append(asyncio.ensure_future(spent.keep()))
    try:
        async with _lifespan(app, arguments.wait):  # an engine that cannot be used is an error of the command
            scheme = "http" if arguments.tls_cert is None else "https"
            for model in models:
                print(
                    f"chatparsers: {model.name} ({model.chat.format.title}; {CORE} core) "
                    f"at {scheme}://{config.host}:{config.port}/v1",
                    flush=True,
                )
            print(f"chatparsers: {version()}", flush=True)
            gc.collect()
            gc.freeze()  # what is there now stays: the collector need not look at it again
            server = _Draining(config, app.state.metrics, app.state.end, app.state.stop)
            signal.signal(signal.SIGTERM, lambda number, frame: got.append(number))  # uvicorn sends it again
            with suppress(KeyboardInterrupt):  # Python 3.10 raises it here, when all has ended
                await server.serve(sockets=[listening])
    finally:
        for task in running:
            task.cancel()
        if spent is not None:
            spent.write()
        listening.close()
    return bool(got)


@asynccontextmanager
async def _lifespan(app: Any, wait: float) -> AsyncIterator[None]:
    """The application, started. ``wait``: for how many seconds an engine may not yet answer."""
    until = time.monotonic() + wait
    async with AsyncExitStack() as stack:
        while True:
            try:
                await stack.enter_async_context(app.router.lifespan_context(app))
                break
            except EngineError as error:
                if (error.where is None and error.status != 503) or time.monotonic() > until:
                    await app.state.close_engines()
                    raise
            await asyncio.sleep(_AGAIN)
        yield


def _bound(arguments: Namespace) -> socket.socket:
    """The socket that listens. It is bound before anything is said of the URL."""
    family = socket.AF_INET6 if ":" in arguments.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((arguments.host, arguments.port))
    except OSError as error:
        listening.close()
        said = (
            f"--host {arguments.host} --port {arguments.port}: cannot listen there: {error.strerror or error}"
        )
        raise Refused(said) from error
    return listening


def _show_few_warnings() -> None:
    """Shows the first warnings alone: most are of what is in requests, and strangers send these. Where in a library one
    was raised tells whoever runs the server nothing."""
    show, left = warnings.showwarning, _WARNINGS

    def few(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        nonlocal left
        left -= 1
        if left >= 0 and issubclass(category, UserWarning):
            print(f"chatparsers: warning: {one_line(str(message))}", file=sys.stderr)
        elif left >= 0:
            show(message, category, *where, **more)
        if left == 0:
            print(f"chatparsers: these were {_WARNINGS} warnings, no more are shown", file=sys.stderr)

    warnings.showwarning = few


def _open_files(concurrency: int) -> None:
    """Allows as many open sockets as the system does, and warns if these are too few: a stream has two."""
    try:
        import resource
    except ModuleNotFoundError:  # not on Windows, which has no such limit
        return
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if most == resource.RLIM_INFINITY else min(most, _FILES)
    if limit < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
            limit = wanted
    if limit < 2 * concurrency + _OTHER_FILES:
        said = f"{limit} files may be open, too few for --concurrency {concurrency}: raise ulimit -n"
        print(f"chatparsers: warning: {said}", file=sys.stderr)


class _Draining(uvicorn.Server):
    """A server that says what it waits for when it ends. ``end``: it is said that it ends. ``stop``: ends the answers
    that take longer."""

    def __init__(
        self, config: uvicorn.Config, metrics: Metrics, end: Callable[[], None], stop: Callable[[], object]
    ) -> None:
        super().__init__(config)
        self._metrics = metrics
        self._end = end
        self._stop = stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._end()
        limit, before = self.config.timeout_graceful_shutdown, self._ended()
        print(f"chatparsers: ending: {self._metrics.active} requests have {limit} seconds", file=sys.stderr)
        self.config.timeout_graceful_shutdown = (limit or 0) + _LAST_WORDS
        timer = asyncio.get_running_loop().call_later(limit or 0, self._stop)
        late = time.monotonic() + self.config.timeout_graceful_shutdown
        await super().shutdown(sockets)
        while self._metrics.active and not self.force_exit and time.monotonic() < late:
            await asyncio.sleep(_LOOK)  # a response in the background has no connection
        timer.cancel()
        answered, cut = (now - then for now, then in zip(self._ended(), before, strict=True))
        cut += self._metrics.active
        print(f"chatparsers: ended: {answered} requests were answered, {cut} cut off", file=sys.stderr)

    def _ended(self) -> tuple[int, int]:
        """How many requests were answered, and how many were not because the server ends."""
        return self._metrics.value("requests", status="200"), self._metrics.value("requests", status="503")
