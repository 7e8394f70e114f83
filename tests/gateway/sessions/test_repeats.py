"""A request that comes again while it runs: it gets the answer that runs. Nothing is sampled, counted or told twice."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from behaviours import SYSTEM
from clients import CLIENTS, TOOLS, Client
from scripted import soon
from test_behaviours import check_rows, rows
from test_sessions import Gateway, turns

Make = Callable[..., Gateway]


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    made = Gateway(tmp_path / "rollouts")
    made.model.pause = 0.01
    yield made
    made.server.close()


class Asking:
    """One request, asked as often as its client likes."""

    def __init__(self, made: Gateway, kind: type[Client], stream: bool, session: str = "s") -> None:
        self.client = kind(f"{made.url}/sessions/{session}/v1", stream=stream)
        body = self.client.body(SYSTEM, made.talk(session, kind).begin(), TOOLS)
        self.body = {"model": "m", "stream": stream, **body}

    def ask(self, count: int, leaves: bool = False) -> bytes | None:
        """``count``: how often it was asked before. ``leaves``: when its first bytes are here, or soon."""
        headers, timeout = {"x-stainless-retry-count": str(count)}, 0.1 if leaves else 60
        try:
            with httpx2.stream(
                "POST",
                f"{self.client.base}/{self.client.path}",
                json=self.body,
                headers=headers,
                timeout=timeout,
            ) as response:
                assert response.status_code == 200, response.read()
                pieces = response.iter_bytes()
                return next(pieces) if leaves else b"".join(pieces)
        except httpx2.TimeoutException:
            assert leaves
            return None


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("kind", CLIENTS, ids=[one.name for one in CLIENTS])
def test_a_client_that_left_gets_the_answer_that_runs(
    kind: type[Client], stream: bool, gateway: Gateway
) -> None:
    """From its beginning, also where some of it was told already; and both of two that wait get it."""
    asking = Asking(gateway, kind, stream)
    head = asking.ask(0, leaves=True)
    found: list[Any] = []
    both = [threading.Thread(target=lambda: found.append(asking.ask(1))) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    assert found[0] == found[1] and found[0].startswith(head or b"")
    assert len(gateway.model.asked) == 1
    (line,) = (line for line in gateway.lines("s") if line["t"] != "session" and line["t"] != "options")
    assert line["t"] == "answer" and line["delivered"] and line["error"] is None
    counted, gap = check_rows(gateway.model, rows(gateway.server, "s"))
    assert counted == gateway.model.sampled and gap < 1e-9
    soon(lambda: gateway.server.app.state.repeats.running == 0)


def test_what_is_no_repetition_is_sampled(gateway: Gateway) -> None:
    """Equal requests that nobody calls a repetition, those of other sessions, and one whose answer was had."""
    asking, other = Asking(gateway, CLIENTS[0], True), Asking(gateway, CLIENTS[0], True, "other")
    threads = [threading.Thread(target=one.ask, args=(0,)) for one in (asking, asking, other)]
    for thread in threads:
        thread.start()
    soon(lambda: len(gateway.model.asked) == 3)
    different = Asking(gateway, CLIENTS[0], True)
    different.body["temperature"] = 0.5
    different.ask(1)
    for thread in threads:
        thread.join()
    asking.ask(1)
    assert len(gateway.model.asked) == 5
    assert len(rows(gateway.server, "s", twins="keep")) == 4


def test_a_client_that_does_not_come_again(gateway: Gateway) -> None:
    """It is awaited for a while; then the engine is stopped, and what it sampled was not delivered."""
    gateway.model.pause, gateway.server.app.state.repeats.seconds = 0.05, 0.2
    asking = Asking(gateway, CLIENTS[0], True)
    asking.ask(0, leaves=True)
    soon(lambda: [line["t"] for line in gateway.lines("s")] == ["session", "options", "answer"])
    (line,) = (line for line in gateway.lines("s") if line["t"] == "answer")
    assert (line["delivered"], line["cut"]) == (False, True)
    assert len(line["sampled"]) < gateway.model.sampled
    gateway.model.pause = 0.0
    asking.ask(1)
    assert len(gateway.model.asked) == 2
    assert [row["answers"] for row in rows(gateway.server, "s", twins="drop")] == [[2]]


def test_an_answer_that_is_whole_waits_for_its_client(gateway: Gateway) -> None:
    """It is in the log before anybody has it. If nobody comes, that is written too."""
    gateway.server.app.state.repeats.seconds = 0.7
    left, again = Asking(gateway, CLIENTS[1], False), Asking(gateway, CLIENTS[1], False, "again")
    for asking in (left, again):
        assert asking.ask(0, leaves=True) is None
    soon(lambda: gateway.lines("again")[-1]["t"] == "answer")
    assert json.loads(again.ask(1) or b"")["type"] == "message"
    soon(lambda: [line["t"] for line in gateway.lines("s")][2:] == ["answer", "undelivered"])
    assert [line["t"] for line in gateway.lines("again")][2:] == ["answer"]
    assert len(gateway.model.asked) == 2


def test_what_is_refused_is_told_as_it_is(gateway: Gateway) -> None:
    asking = Asking(gateway, CLIENTS[0], False)
    headers = {"x-stainless-retry-count": "0"}
    address = f"{asking.client.base}/{asking.client.path}"
    refused = httpx2.post(address, json={**asking.body, "messages": "none"}, headers=headers, timeout=60)
    assert refused.status_code == 400 and "messages" in refused.text
    gateway.model.spoils = lambda batch: (_ for _ in ()).throw(OSError("broken"))
    failed = httpx2.post(address, json=asking.body, headers=headers, timeout=60)
    assert failed.status_code == 500
    soon(lambda: gateway.server.app.state.repeats.running == 0)
    gateway.model.spoils = lambda batch: batch
    assert asking.ask(1)


def test_the_sdks_own_retries(gateway: Gateway, openai: Any) -> None:
    """Their clients give up, come again by themselves, and read the one answer."""
    gateway.model.pause = 0.03
    base = f"{gateway.url}/sessions/s/v1"
    asked = Asking(gateway, CLIENTS[0], False).body
    del asked["stream"]
    with openai.OpenAI(base_url=base, api_key="any", timeout=0.3, max_retries=9) as client:
        answer = client.chat.completions.create(**asked)
    assert answer.choices[0].message.tool_calls
    assert len(gateway.model.asked) == 1
    gateway.model.pause = 0.0
    talk = turns(gateway.talk(), 1)
    assert talk and len(gateway.model.asked) == 2
