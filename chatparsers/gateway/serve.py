"""Runs a gateway: what ``chatparsers serve`` does."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import socket
import sys
import time
import warnings
from argparse import Namespace
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import uvicorn

from .. import CORE
from ..chat.chat import Chat
from ..cli.about import version
from ..cli.files import Refused, json_object
from ..cli.request import chat_of, thinking_of
from ..plain import one_line
from ..sessions.paths import VOLATILE
from ..sessions.session import Limits
from ..sessions.sessions import Rules
from .app import create_app
from .engine import Engine, EngineError
from .guard import KeyFile, is_loopback
from .http_engine import HttpEngine
from .kind import kind_at
from .llama_server import LlamaServer
from .metrics import Metrics
from .ollama import Ollama
from .openai_completions import VLLM, OpenAICompletions, SGLang, SGLangGenerate, VLLMGenerate
from .server import draining_socket, timed_protocol
from .settings import Settings

KINDS: dict[str, type[HttpEngine]] = {
    "llama-server": LlamaServer,
    "vllm": VLLM,
    "vllm-generate": VLLMGenerate,
    "sglang": SGLang,
    "sglang-generate": SGLangGenerate,
    "ollama": Ollama,
    "openai-completions": OpenAICompletions,
}
"""The engines over HTTP by the names of ``--kind``."""
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
    key = _key(arguments)
    if arguments.port > 65_535:
        raise Refused(f"--port {arguments.port}: expected a port from 1 to 65535")
    if arguments.url is not None and not arguments.url.startswith(("http://", "https://")):
        raise Refused(f"{arguments.url}: expected a URL such as http://127.0.0.1:8080")
    if arguments.api_key_file is not None and not KeyFile(arguments.api_key_file).keys():
        raise Refused(
            f"--api-key-file {arguments.api_key_file}: expected a file with a key in each line, found none"
        )
    if key is None and arguments.api_key_file is None and not is_loopback(arguments.host):
        raise Refused(
            f"--host {arguments.host}: without a key anybody who reaches this address may use the model: "
            "say --api-key or --api-key-file as well, or set CHATPARSERS_API_KEY"
        )
    try:
        chat, engine, name = _local(arguments) if arguments.gguf is not None else _remote(arguments)
    except EngineError as error:
        raise _away(error) from error
    try:
        settings = settings_of(arguments, name, key)
        app = create_app(chat, engine, settings)
    except ValueError as error:
        raise Refused(str(error)) from error
    config = uvicorn.Config(
        app,
        host=arguments.host,
        port=arguments.port,
        http=timed_protocol(slow=settings.slow_client),
        ws=draining_socket(),
        ws_max_size=settings.max_body,
        lifespan="off",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=math.ceil(arguments.drain),
    )
    sys.setswitchinterval(SWITCH)
    _show_few_warnings()
    _open_files(settings.concurrency)
    try:
        asyncio.run(_serve(app, config, chat, settings, arguments))
    except EngineError as error:
        raise _away(error) from error
    return 0


def _away(error: EngineError) -> Exception:
    """What is said of an engine that is not there, or not yet; the error itself for any other."""
    if error.where is not None:
        said = f"no engine answers at {error.where}: start it, or name its URL"
    elif error.status == 503:
        said = str(error)
    else:
        return error
    return Refused(f"{said} (--wait 300 waits so many seconds for one that starts)")


def settings_of(arguments: Namespace, name: str, key: str | None) -> Settings:
    """The settings that the flags ask for. ``name``: the model's, if no flag names it."""
    return Settings(
        model=arguments.name or name,
        api_key=key,
        max_body=arguments.max_body * 1024 * 1024,
        max_tools=arguments.max_tools,
        concurrency=arguments.concurrency,
        max_tokens=arguments.max_tokens,
        keep_alive=arguments.keep_alive,
        slow_client=arguments.slow_client,
        grammar=not arguments.no_grammar,
        max_schemas=arguments.max_schemas,
        max_prompt=arguments.max_prompt,
        max_cpu=arguments.max_cpu,
        body_timeout=arguments.body_timeout,
        hosts=None if arguments.allowed_hosts is None else tuple(arguments.allowed_hosts),
        cors=tuple(arguments.cors or ()),
        trust_ids=arguments.trust_ids,
        strict_fields=arguments.strict_fields,
        store=arguments.store,
        store_entries=arguments.store_entries,
        store_size=arguments.store_size * 1024 * 1024,
        store_age=arguments.store_age * 86_400,
        max_images=arguments.max_images,
        fetch_images=tuple(arguments.fetch_images or ()),
        drop_unsupported=arguments.drop_unsupported,
        lenient_calls=arguments.lenient_calls,
        strict_tools=arguments.strict_tools,
        loops=arguments.loops,
        cache_watch=arguments.cache_watch * 1024 * 1024,
        rollouts=arguments.rollouts,
        rules=Rules(
            sessions=arguments.sessions,
            size=arguments.rollouts_size * 1024 * 1024,
            idle=arguments.session_idle,
            volatile=tuple(arguments.ignore or (VOLATILE,)),
            history=arguments.history,
            limits=Limits(arguments.session_answers, arguments.session_ids, arguments.session_lines),
        ),
        key_file=arguments.api_key_file,
        seal_key_file=arguments.seal_key_file,
        log=arguments.log,
        passed=tuple(arguments.pass_on or ()),
        thinking=thinking_of(arguments),
        effort=arguments.effort,
        template_kwargs=json_object("--template-kwargs", arguments.template_kwargs),
        pin_template_kwargs=arguments.pin_template_kwargs,
    )


async def _serve(
    app: Any, config: uvicorn.Config, chat: Chat, settings: Settings, arguments: Namespace
) -> None:
    listening = _bound(arguments)
    try:
        async with _lifespan(app, arguments.wait):  # an engine that cannot be used is an error of the command
            print(
                f"chatparsers: {settings.model} ({chat.format.title}; {CORE} core) "
                f"at http://{config.host}:{config.port}/v1",
                flush=True,
            )
            print(f"chatparsers: {version()}", flush=True)
            gc.collect()
            gc.freeze()  # what is there now stays: the collector need not look at it again
            server = _Draining(config, app.state.metrics, app.state.stop)
            with suppress(KeyboardInterrupt):  # Python 3.10 raises it here, when all has ended
                await server.serve(sockets=[listening])
    finally:
        listening.close()


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
                    await app.state.engine.close()
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
    """A server that says what it waits for when it ends. ``stop``: ends the answers that take longer."""

    def __init__(self, config: uvicorn.Config, metrics: Metrics, stop: Callable[[], object]) -> None:
        super().__init__(config)
        self._metrics = metrics
        self._stop = stop

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
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


def _remote(arguments: Namespace) -> tuple[Chat, Engine, str]:
    if arguments.url is None:
        raise Refused("which engine? Say its URL, or --gguf FILE to run a model in this process")
    if arguments.model is None:
        raise Refused(
            "which model? Say --model with its folder, its tokenizer_config.json or its chat template"
        )
    chat = chat_of(arguments.model, arguments, tokenizer=arguments.tokenizer)
    key = arguments.upstream_key or os.environ.get("CHATPARSERS_UPSTREAM_KEY")
    kind = arguments.kind if arguments.kind != "auto" else kind_at(arguments.url, key, arguments.wait)
    if kind is None:
        raise Refused(f"what runs at {arguments.url}? Say --kind, one of {', '.join(KINDS)}")
    engine = KINDS[kind](arguments.url, model=arguments.upstream_model, api_key=key, stall=arguments.stall)
    path = Path(arguments.model)
    known = path.stem if path.is_file() else path.name
    return chat, engine, arguments.upstream_model or known


def _local(arguments: Namespace) -> tuple[Chat, Engine, str]:
    if arguments.url is not None:
        raise Refused("--gguf runs the model in this process: leave the URL out")
    try:
        from .local import Local
    except ModuleNotFoundError as error:
        raise Refused(
            f"--gguf needs llama-cpp-python, and {error.name} is not installed: pip install llama-cpp-python"
        ) from error
    chat = chat_of(arguments.model or arguments.gguf, arguments, tokenizer=arguments.tokenizer)
    engine = Local(
        arguments.gguf,
        context=arguments.context,
        gpu_layers=arguments.gpu_layers,
        threads=arguments.threads,
    )
    return chat, engine, Path(arguments.gguf).stem


def _key(arguments: Namespace) -> str | None:
    """The key that clients must send. An empty one is refused: somebody meant to set one, and anybody can send it."""
    if arguments.api_key is not None:
        name, key = "--api-key", arguments.api_key
    elif "CHATPARSERS_API_KEY" in os.environ:
        name, key = "$CHATPARSERS_API_KEY", os.environ["CHATPARSERS_API_KEY"]
    else:
        return None
    if not key.strip():
        raise Refused(f"{name} is empty: name a key, or leave it out to serve this machine alone")
    found: str = key
    return found
