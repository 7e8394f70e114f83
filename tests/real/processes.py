"""A llama-server with a real model, and gateways before it, as processes on ports of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

_PATIENCE = 600
"""How many seconds a server may take to start: a busy machine reads a model of a gigabyte slowly."""


@dataclass(frozen=True)
class Servers:
    """The URLs of a llama-server, of a gateway before it, of one that sends no grammars, and of one that reads whole
    answers as calls."""

    engine: str
    gateway: str
    no_grammar: str
    lenient: str
    pids: tuple[int, ...]

    def cpu(self) -> float:
        """How many seconds of CPU they took together. Linux alone tells."""
        stats = (Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split() for pid in self.pids)
        return sum(int(stat[11]) + int(stat[12]) for stat in stats) / os.sysconf("SC_CLK_TCK")


@contextmanager
def servers(
    folder: Path, model: Path, logs: Path, *, context: int = 8192, slots: int = 1
) -> Iterator[Servers]:
    """Servers of ``model``, until the block ends. ``folder``: what ``tests/real/install`` made. One thread each."""
    flags: tuple[list[str], ...] = ([], ["--no-grammar"], ["--lenient-calls"])
    with running(folder, model, logs, flags, context=context, slots=slots) as (urls, pids):
        engine, gateway, no_grammar, lenient = urls
        yield Servers(engine, gateway, no_grammar, lenient, pids)


@contextmanager
def running(
    folder: Path, model: Path, logs: Path, flags: Iterable[list[str]], *, context: int = 8192, slots: int = 1
) -> Iterator[tuple[list[str], tuple[int, ...]]]:
    """A llama-server, and a gateway before it for each list of flags: their URLs and their processes."""
    port = free_port()
    urls = [f"http://127.0.0.1:{port}"]
    command = [
        *(str(folder / "bin" / "llama-server"), "-m", str(model), "--jinja", "--port", str(port)),
        *("--ctx-size", str(context), "--parallel", str(slots), "--threads", "1"),
        *("--no-warmup", "--cache-ram", "0"),
    ]
    serve = [
        *(sys.executable, "-m", "chatparsers", "serve", "--upstream", urls[0]),
        *("--upstream-kind", "llama-server", "--model", str(model), "--wait", str(_PATIENCE)),
    ]
    with ExitStack() as stack:
        log = logs / f"{model.stem}-llama-server.log"
        started = [stack.enter_context(process(command, f"{urls[0]}/health", log))]
        for more in flags:
            port = free_port()
            words, log = [*serve, "--port", str(port), *more], logs / f"{model.stem}-{port}.log"
            urls.append(f"http://127.0.0.1:{port}")
            started.append(stack.enter_context(process(words, f"{urls[-1]}/ready", log)))
        yield urls, tuple(one.pid for one in started)


@contextmanager
def process(command: list[str], ready: str, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that answers at the URL ``ready``. Its output goes to ``log``, whose end is in the error if it ends."""
    with open(log, "wb") as out:
        started = subprocess.Popen(
            command, stdout=out, stderr=out, env={**os.environ, "CUDA_VISIBLE_DEVICES": ""}
        )
    try:
        until = time.monotonic() + _PATIENCE
        while not _answers(ready):
            if started.poll() is not None or time.monotonic() > until:
                said = log.read_text(encoding="utf-8", errors="replace")[-1500:]
                raise RuntimeError(f"{command[0]} did not start ({started.poll()}): {said}")
            time.sleep(0.2)
        yield started
    finally:
        started.terminate()
        try:
            started.wait(20)
        except subprocess.TimeoutExpired:
            started.kill()


def _answers(url: str) -> bool:
    try:
        return bool(httpx2.get(url, timeout=10, trust_env=False).status_code == 200)
    except httpx2.HTTPError:
        return False


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
