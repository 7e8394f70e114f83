"""Several gateways with a router before them: a session's requests reach the gateway that has its log, and no other."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from behaviours import Agent
from clients import CLIENTS
from model import Model, chat_of
from servers import nginx, nginx_program
from test_behaviours import check_rows, rows, script
from test_kills import Process

PAGE = Path(__file__).parents[3] / "docs" / "tables" / "routers.md"
IDS = [f"run/{number}" for number in range(8)]


def configuration(name: str) -> str:
    """A file of the page."""
    found = re.search(
        rf"^<!-- file: {re.escape(name)} -->\n```\w*\n(.*?)^```$", PAGE.read_text("utf-8"), re.S | re.M
    )
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("path", "session"),
    [
        ("/sessions/one/v1/chat/completions", "one"),
        ("/sessions/a/b c/v1/messages", "a/b c"),
        ("/sessions/v1/v1/responses", "v1"),
        ("/sessions/a/samples", "a"),
        ("/sessions/a/b/reward", "a/b"),
        ("/sessions/a/close", "a"),
        ("/sessions/a/b", "a/b"),
        ("/sessions", None),
        ("/v1/chat/completions", None),
    ],
)
def test_nginx_names_the_session_of_a_path_as_the_gateway_does(path: str, session: str | None) -> None:
    patterns = re.findall(r"~(\S+) \$id;", configuration("nginx.conf"))
    found = [re.search(one.replace("?<", "?P<"), path) for one in patterns]
    assert len(patterns) == 2 and next((match["id"] for match in found if match), None) == session


def test_nginx_before_two_gateways_of_which_one_is_killed(tmp_path: Path) -> None:
    """The sessions of the one that lives go on; those of the other are refused until it is back, and then go on by the
    same ids. Nothing is lost, and no session is in two logs."""
    with (
        gateways_of(tmp_path) as gateways,
        nginx(configuration("nginx.conf"), ports(gateways), tmp_path) as url,
    ):
        check_a_kill(url, gateways)


def test_nginx_asks_the_gateway_that_has_the_session(tmp_path: Path, place: Callable[[str], str]) -> None:
    """The same by the index alone, wherever requests go first."""
    text = configuration("nginx-index.conf")
    with (
        gateways_of(tmp_path, place(str(tmp_path / "kept"))) as gateways,
        nginx(text, ports(gateways), tmp_path) as url,
    ):
        check_a_kill(url, gateways)


@contextmanager
def gateways_of(folder: Path, *store: str) -> Iterator[list[Process]]:
    """Two gateways, if there is an nginx to stand before them."""
    nginx_program()
    gateways = [Process(folder / f"runs{number}", *store) for number in range(2)]
    try:
        yield gateways
    finally:
        for gateway in gateways:
            gateway.kill()


def ports(gateways: list[Process]) -> list[int]:
    return [gateway.port for gateway in gateways]


class At:
    """What is asked at an address."""

    def __init__(self, url: str) -> None:
        self.url = url


def check_a_kill(url: str, gateways: list[Process]) -> None:
    talks: dict[str, tuple[Agent, Any]] = {}
    for number, id in enumerate(IDS):
        agent = Agent(CLIENTS[number % 3](f"{url}/sessions/{id}/v1", stream=number % 2 == 0))
        if number == 0:  # by its header
            httpx2.post(f"{url}/sessions", json={"id": id}, headers={"x-session-id": id}).raise_for_status()
            agent.client.base, agent.client.headers["x-session-id"] = f"{url}/v1", id
        talks[id] = agent, agent.after(agent.begin(), agent.ask(agent.begin()), 0)
    place = {
        one["id"]: gateway
        for gateway in gateways
        for one in httpx2.get(f"{gateway.url}/sessions").json()["data"]
        if one.get("gateway", gateway.url[7:]) == gateway.url[7:]
    }
    assert place.keys() == set(IDS) and set(place.values()) == set(gateways), "each has some"
    lost, model = gateways[0], Model(chat_of("qwen3"), script("", True))
    lost.kill()
    for id, (agent, items) in talks.items():
        if place[id] is lost:
            assert agent.client.send("Be terse.", items).status_code == 502
        else:
            assert agent.ask(items).session["reason"] == "exact"
    lost.start()
    for id, (agent, items) in talks.items():
        if place[id] is lost:
            assert agent.ask(items).session["reason"] == "exact"
        httpx2.post(f"{url}/sessions/{id}/reward", json={"value": 1.0}).raise_for_status()
        found = rows(At(url), id)
        assert {row["reward"] for row in found} == {1.0} and sum(len(row["answers"]) for row in found) == 2
        assert check_rows(model, found)[1] < 1e-9
