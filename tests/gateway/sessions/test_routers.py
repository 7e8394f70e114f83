"""Several gateways with a router before them: a session's requests reach the gateway that has its log, and no other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from getpass import getuser
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from behaviours import Agent
from clients import CLIENTS
from model import Model, chat_of
from scripted import soon
from servers import free_port, listens
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


def nginx() -> str:
    found = os.environ.get("CHATPARSERS_NGINX") or shutil.which("nginx")
    if found is None:
        pytest.skip("nginx is not installed, and CHATPARSERS_NGINX names no other")
    return found


def test_nginx_before_two_gateways_of_which_one_is_killed(tmp_path: Path) -> None:
    """The sessions of the one that lives go on; those of the other are refused until it is back, and then go on by the
    same ids. Nothing is lost, and no session is in two logs."""
    program, port = nginx(), free_port()
    gateways = [Process(tmp_path / f"runs{number}") for number in range(2)]
    text = configuration("nginx.conf").replace("listen 8000;", f"listen 127.0.0.1:{port};")
    for number, gateway in enumerate(gateways):
        text = text.replace(f"127.0.0.1:{8001 + number}", f"127.0.0.1:{gateway.port}")
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    places = "".join(f"{kind}_temp_path {tmp_path}/{kind}; " for kind in kinds)
    text = text.replace("http {", f"http {{ access_log off; {places}")
    file, log = tmp_path / "nginx.conf", tmp_path / "log"
    file.write_text(f"daemon off; user {getuser()}; pid {tmp_path}/pid;\n{text}")
    router = subprocess.Popen([program, "-p", str(tmp_path), "-e", str(log), "-c", str(file)])
    try:
        soon(lambda: listens(port))
        check_a_kill(f"http://127.0.0.1:{port}", gateways)
    finally:
        router.terminate()
        router.wait()
        for gateway in gateways:
            gateway.kill()


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
