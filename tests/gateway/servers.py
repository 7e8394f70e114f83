"""An ASGI application on a port of this machine, and gateways as processes."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest
from scripted import soon

from chatparsers.templates.builtins import builtin_source
from chatparsers.testing import tiny


@cache
def tiny_model(format: str) -> tiny.TinyModel:
    """A tiny random model, one for all tests: what its chat finds out for the first gateway, the next ones have."""
    return tiny.tiny_model(format)


class Prompt:
    """``asyncio`` for uvicorn, which looks as often as this sleeps whether it must end: many tests wait for that."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, 0.01))


class Server:
    """An ASGI application on a port, in a thread. ``patience``: how many seconds it may take to start."""

    def __init__(self, app: Any, patience: float = 20, **options: Any) -> None:
        import uvicorn

        server: Any = uvicorn.server
        server.asyncio = Prompt()
        self.app = app
        known = {"log_level": "critical", "timeout_graceful_shutdown": 1, **options}
        config = uvicorn.Config(app, host="127.0.0.1", port=0, **known)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        until = time.monotonic() + patience
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


def model_files(folder: Path) -> dict[str, str]:
    """The files of the tiny model, its template and its tokenizer, as flags."""
    template = folder / "chat.jinja"
    template.write_text(builtin_source("qwen3"), encoding="utf-8")
    tiny_model("qwen3").tokenizer.save(str(folder / "tokenizer.json"))
    return {"--model": str(template), "--tokenizer": str(folder / "tokenizer.json"), "--format": "qwen3"}


def flags(given: dict[str, str]) -> list[str]:
    return [word for pair in given.items() for word in pair]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
    return port


def listens(port: int) -> bool:
    import httpx2

    try:
        return httpx2.get(f"http://127.0.0.1:{port}/health", timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


def nginx_program() -> str:
    """Skips the test where there is none."""
    found = os.environ.get("CHATPARSERS_NGINX") or shutil.which("nginx")
    if found is None:
        pytest.skip("nginx is not installed, and CHATPARSERS_NGINX names no other")
    return found


@contextmanager
def nginx(configuration: str, ports: Sequence[int], folder: Path) -> Iterator[str]:
    """The URL of nginx before gateways, as a page has it: the ports 8001 and 8002 are these, and 8000 is its own."""
    port = free_port()
    text = configuration.replace("listen 8000;", f"listen 127.0.0.1:{port};")
    for number, one in enumerate(ports):
        text = text.replace(f"127.0.0.1:{8001 + number}", f"127.0.0.1:{one}")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {folder}/{kind}; " for kind in kinds)
    whole = text if "http {" in text else f"events {{}}\nhttp {{\n{text}}}\n"
    whole = whole.replace("http {", f"http {{ access_log off; {places}")
    file, log = folder / "nginx.conf", folder / "nginx.log"
    file.write_text(f"daemon off; user {getuser()}; pid {folder}/pid;\n{whole}")
    command = [nginx_program(), "-p", str(folder), "-e", str(log), "-c", str(file)]
    subprocess.run([*command, "-t"], check=True, capture_output=True)
    router = subprocess.Popen(command)
    try:
        soon(lambda: listens(port))
        yield f"http://127.0.0.1:{port}"
    finally:
        router.terminate()
        router.wait()


def served(
    port: int, engine: Any, model: dict[str, str], *more: str, file: int | None = None
) -> subprocess.Popen[str]:
    """A gateway as a process that listens. ``file``: the disk is full after so many bytes of a file."""

    def small_files() -> None:
        if file is not None:
            import resource  # Windows has none

            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file, file))

    command = [
        *(sys.executable, "-m", "chatparsers", "serve", "--port", str(port), *more),
        *("--upstream", engine.url, "--upstream-kind", "llama-server", *flags(model)),
    ]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, preexec_fn=small_files
    )
    soon(lambda: listens(port), 60)
    return process
