"""Recorded sessions outlive ``kill -9``: what a client has whole is in the log, once, and the session goes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from behaviours import Agent
from clients import CLIENTS
from model import Model, chat_of
from servers import free_port, listens
from test_behaviours import check_rows, rows, script

HERE = Path(__file__).parent
PROGRAM = f"""
import sys
sys.path[:0] = {[str(HERE), str(HERE.parent), str(HERE.parents[1] / "common")]!r}
import uvicorn
from model import Model, chat_of
from test_behaviours import script
from chatparsers.gateway import Settings, create_app
model = Model(chat_of("qwen3"), script("", True), pause=0.002)
folder, port, *store = sys.argv[1:]
named = {{"rollouts_name": f"127.0.0.1:{{port}}", "store": store[0]}} if store else {{}}
uvicorn.run(create_app(model.chat, model, Settings(rollouts=folder, **named)), port=int(port), log_level="critical")
"""


class Process:
    """A gateway in a process of its own, on the same port and folder after each kill. ``store``: where its index is."""

    def __init__(self, folder: Path, *store: str) -> None:
        self.folder, self.port, self._store = folder, free_port(), store
        self.url = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-c", PROGRAM, str(self.folder), str(self.port), *self._store]
        self._process = subprocess.Popen(command)
        until = time.monotonic() + 60
        while not listens(self.port):
            assert time.monotonic() < until, "the gateway did not start"
            time.sleep(0.05)

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.wait()


@pytest.mark.nightly
def test_kills(tmp_path: Path, amount: Callable[[int, int, int], int]) -> None:
    """Clients of the three APIs go on asking while the gateway is killed again and again."""
    process, random = Process(tmp_path / "runs"), Random(3)
    over = threading.Event()
    has: list[tuple[str, str, str]] = []  # what a client has whole: session, answer, text
    asked = {"tries": 0}

    def client(number: int) -> None:
        kind = CLIENTS[number % 3]
        agent = Agent(kind(f"{process.url}/sessions/s{number}/v1", stream=number % 2 == 0))
        items = agent.begin()
        while not over.is_set():
            asked["tries"] += 1
            try:
                reply = agent.client.ask("Be terse.", items)
            except (httpx2.HTTPError, AssertionError, ValueError, KeyError):
                time.sleep(0.2)
                continue
            has.append((f"s{number}", reply.session["answer"], reply.text))
            items = (
                agent.after(items, reply, len(has)) if len(items) < 12 else agent.begin(f"Again {len(has)}.")
            )

    threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(amount(2, 5, 20)):
        wanted, until = len(has) + random.randint(1, 9), time.monotonic() + 60
        while len(has) < wanted and time.monotonic() < until:
            time.sleep(0.002)
        time.sleep(random.uniform(0, 0.1))
        process.kill()
        process.start()
    over.set()
    for thread in threads:
        thread.join()
    process.kill()
    process.start()
    counted = {name: rows(process, name, twins="keep") for name, *_ in has}
    model = Model(chat_of("qwen3"), script("", True))
    logged: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted((tmp_path / "runs").glob("*.jsonl")):
        for line in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if line["t"] == "answer":
                key = path.stem, str(line["answer"])
                assert key not in logged, f"{key} is there twice"
                logged[key] = line
    for name, answer, text in has:
        assert (name, answer) in logged, f"{name} has answer {answer}, and the log does not"
        message = logged[name, answer]["message"]["content"]
        assert (message if isinstance(message, str) else "".join(part["text"] for part in message)) == text
    for name, found in counted.items():
        number, gap = check_rows(model, found)
        sampled = sum(len(line["sampled"]) for key, line in logged.items() if key[0] == name)
        assert number == sampled and gap < 1e-9, (name, number, sampled, gap)
    assert len(has) >= amount(2, 5, 20)
    print(f"{len(has)} answers of {asked['tries']} tries, {len(logged)} in the log")
    process.kill()
