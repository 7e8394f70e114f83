"""A drill: what clients of a served gateway see while everything around it goes wrong. It prints a table."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from scripted import ENDLESS, WORD, Slow, Upstream, soon
from servers import flags, free_port, listens, tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/messages")
WHOLE = ("data: [DONE]", "event: response.completed", "event: message_stop")
FAILED = ('data: {"error"', "event: error", "event: error")
CLIENTS = 30


class Drill:
    """A gateway of its own process with a scripted engine. ``rows``: what the clients of each phase saw."""

    def __init__(self, model: dict[str, str], folder: Path, upstream: Callable[..., Upstream]) -> None:
        self.port, self.engine_port = free_port(), free_port()
        self.keys, self.log = folder / "keys", folder / "log"
        self.keys.write_text("first\n")
        self.upstream = upstream
        self.engine = self.started()
        command = [
            *(sys.executable, "-m", "chatparsers", "serve", "--port", str(self.port), "--drain", "10"),
            *("--upstream", self.engine.url, "--upstream-kind", "llama-server", *flags(model)),
            *("--api-key-file", str(self.keys), "--log", str(self.log)),
        ]
        self.server = subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, preexec_fn=_small_files
        )
        soon(lambda: listens(self.port), 60)
        self.pool = ThreadPoolExecutor(CLIENTS)
        self.rows: list[tuple[str, Counter[str]]] = []

    def started(self) -> Upstream:
        return self.upstream(Slow(tokenizer=tiny_model("qwen3").tokenizer), port=self.engine_port)

    def ask(self, way: int, tokens: int, key: str) -> str:
        """What one client sees: ``whole``, ``said``: an error of its API, or ``silent``."""
        most = {"max_output_tokens": tokens, "input": "Hi"} if way == 1 else {"max_tokens": tokens}
        body = {"messages": [{"role": "user", "content": "Hi"}], "stream": True, **most}
        head = {"authorization": f"Bearer {key}"}
        url = f"http://127.0.0.1:{self.port}{PATHS[way]}"
        try:
            answer = httpx2.post(url, json=body, headers=head, timeout=60)
        except httpx2.HTTPError:
            return "silent"
        if answer.status_code != 200:
            return f"status {answer.status_code}" if "error" in answer.json() else "silent"
        if FAILED[way] in answer.text:
            return "error event"
        return "whole" if WHOLE[way] in answer.text and _words(answer.text) == tokens else "silent"

    def phase(self, name: str, tokens: Sequence[int], key: str, act: Callable[[], object]) -> Counter[str]:
        """Asks with so many tokens each, acts while the answers are written, and notes what was seen."""
        before = len(self.engine.requests)
        asked = [self.pool.submit(self.ask, place % 3, most, key) for place, most in enumerate(tokens)]
        act_now = act is not _nothing
        if act_now:
            soon(lambda: len(self.engine.requests) - before >= len(tokens), 60)
            act()
        self.rows.append((name, Counter(found.result() for found in asked)))
        return self.rows[-1][1]

    def close(self) -> None:
        self.server.kill()
        self.server.wait()
        self.pool.shutdown()


def _words(text: str) -> int:
    """How many words came in pieces, in any of the three APIs."""
    found = 0
    for line in text.split("\n"):
        if line.startswith("data: {"):
            event = json.loads(line[6:])
            delta = event["choices"][0]["delta"] if event.get("choices") else event.get("delta", "")
            found += json.dumps(delta).count(WORD)
    return found


def _nothing() -> None:
    pass


def _small_files() -> None:
    """The disk is full after 4 kB of a file."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_the_whole_drill(
    model: dict[str, str],
    upstream: Callable[..., Upstream],
    tmp_path: Path,
    pytestconfig: pytest.Config,
    capsys: Any,
) -> None:
    if not pytestconfig.getoption("--nightly"):
        pytest.skip("the drill is run with --nightly")
    drill = Drill(model, tmp_path, upstream)
    try:
        found = drill.phase("all is well; the log's disk gets full", [20] * CLIENTS, "first", _nothing)
        assert found == {"whole": CLIENTS}
        found = drill.phase("the engine dies", [ENDLESS] * CLIENTS, "first", drill.engine.close)
        assert found == {"error event": CLIENTS}
        found = drill.phase("no engine", [20] * CLIENTS, "first", _nothing)
        assert found == {"status 502": CLIENTS}
        drill.engine = drill.started()
        found = drill.phase("the engine is there again", [20] * CLIENTS, "first", _nothing)
        assert found == {"whole": CLIENTS}
        fresh = tmp_path / "fresh"
        fresh.write_text("second\n")
        found = drill.phase(
            "the key changes", [100] * CLIENTS, "first", lambda: os.replace(fresh, drill.keys)
        )
        assert found == {"whole": CLIENTS}  # a stream goes on
        soon(lambda: drill.ask(0, 2, "first") == "status 401")
        assert drill.phase("with the new key", [20] * CLIENTS, "second", _nothing) == {"whole": CLIENTS}
        counted = httpx2.get(f"http://127.0.0.1:{drill.port}/metrics").text
        half = [20, ENDLESS] * (CLIENTS // 2)
        found = drill.phase("SIGTERM", half, "second", lambda: drill.server.send_signal(signal.SIGTERM))
        assert found == {"whole": CLIENTS // 2, "error event": CLIENTS // 2}
        _, errors = drill.server.communicate(timeout=60)
        assert f"requests were answered, {CLIENTS // 2} cut off" in errors
        assert errors.count("the request log cannot be written") == 1
        assert "chatparsers_log_failures_total" in counted and drill.log.stat().st_size <= 4096
        lines = drill.log.read_bytes().split(b"\n")[:-1]
        assert lines and all(json.loads(line)["status"] for line in lines)
    finally:
        drill.close()
    with capsys.disabled():
        print("\n| what happens | clients | whole | an error of their API | lost in silence |")
        print("|---|---:|---:|---:|---:|")
        for name, seen in drill.rows:
            said = seen.total() - seen["whole"] - seen["silent"]
            print(f"| {name} | {seen.total()} | {seen['whole']} | {said} | {seen['silent']} |")
    assert not any(seen["silent"] for _, seen in drill.rows)
