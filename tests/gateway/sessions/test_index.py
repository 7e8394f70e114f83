"""Gateways that share a store know which of them has which session."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("starlette", reason="the package starlette is not installed")

from test_sessions import Gateway, turns

from chatparsers.gateway.store import Store
from chatparsers.storage.session_index import Indexed, SessionIndex

ASK = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
HOSTS = ["one:8001", "two:8002"]


@pytest.fixture
def gateways(tmp_path: Path, place: Callable[[str], str]) -> Iterator[list[Gateway]]:
    """Two, each with its folder; alice and bob have keys there, and the trainer has the gateway's own."""
    (tmp_path / "keys").write_text("alice\nbob\n")
    shared = {"store": place(str(tmp_path / "kept")), "key_file": str(tmp_path / "keys"), "api_key": "main"}
    made = [Gateway(tmp_path / host[:3], rollouts_name=host, **shared) for host in HOSTS]
    yield made
    for one in made:
        one.server.close()


def by(key: str) -> dict[str, Any]:
    return {"headers": {"authorization": f"Bearer {key}"}}


def test_a_session_is_at_one_gateway(gateways: list[Gateway]) -> None:
    """Any other names that one, however the session is named, and begins none."""
    here, there = gateways
    begun = here.post("/sessions", {"id": "a/b"}, **by("alice")).json()
    items = turns(here.talk("a/b", key="alice"), 1)
    own = by(begun["api_key"])
    named = {"headers": {**own["headers"], "x-session-id": "a/b"}}
    elsewhere = [
        there.post("/sessions/a/b/v1/chat/completions", ASK, **by("alice")),
        there.post("/sessions/a/b/v1/messages", ASK, **own),
        there.post("/sessions/a/b/v1/messages/count_tokens", ASK, **own),
        there.post("/v1/chat/completions", ASK, **own),
        there.post("/v1/chat/completions", ASK, **named),
        there.post("/sessions", {"id": "a/b"}, **by("alice")),
        there.post("/sessions/a/b/reward", {"value": 1.0}, **by("alice")),
        there.post("/sessions/a/b/close", {}, **by("main")),
        there.get("/sessions/a/b", **by("alice")),
        there.get("/sessions/a/b/samples", **by("alice")),
    ]
    for answer in elsewhere:
        assert (answer.status_code, answer.headers.get("x-session-gateway")) == (421, HOSTS[0]), answer.text
        assert "is at the gateway one:8001" in answer.json()["error"]["message"]
    assert not (there.folder / "a%2Fb.jsonl").exists()
    assert there.get("/sessions/a/b", **by("bob")).status_code == 404, "it is not bob's"
    for wrong in (by("sk-session-none"), by("none")):
        assert there.post("/sessions/a/b/v1/chat/completions", ASK, **wrong).status_code == 401
    assert there.post("/v1/chat/completions", {**ASK, "model": "m"}, **by("alice")).status_code == 200
    assert here.talk("a/b", key="alice").ask(items).session["reason"] == "exact"


def test_sessions_of_all_gateways_are_one_list_and_one_group(gateways: list[Gateway]) -> None:
    """Also after a restart, after a folder has another gateway, and after a log is taken away."""
    for number, one in enumerate(gateways):
        for place in range(2):
            id = f"s{number}{place}"
            assert one.post("/sessions", {"id": id, "group": "g"}, **by("alice")).status_code == 200
            turns(one.talk(id, key="alice"), 1)
            one.post(f"/sessions/{id}/reward", {"value": float(number)}, **by("alice"))

    def listed(key: str = "alice") -> dict[str, str]:
        found = [one.get("/sessions", **by(key)).json()["data"] for one in gateways]
        assert found[0] == found[1] and {one["group"] for one in found[0]} <= {"g"}
        return {one["id"]: one["gateway"] for one in found[0]}

    def advantages() -> set[float]:
        text = "".join(one.get("/samples?group=g", **by("alice")).text for one in gateways)
        return {round(json.loads(line)["advantage"], 3) for line in text.splitlines()}

    assert listed() == {"s00": HOSTS[0], "s01": HOSTS[0], "s10": HOSTS[1], "s11": HOSTS[1]}
    assert listed("bob") == {} and advantages() == {-1.0, 1.0}
    first = gateways[0]
    first.restart()
    assert len(listed()) == 4 and advantages() == {-1.0, 1.0}
    first.server.close()
    os.remove(first.folder / "s01.jsonl")
    first.start()
    assert listed().keys() == {"s00", "s10", "s11"}
    first.server.close()
    shutil.move(first.folder, first.folder.with_name("moved"))
    first.folder = first.folder.with_name("moved")
    first.settings["rollouts_name"] = "new:8003"
    first.start()
    assert listed()["s00"] == "new:8003" and advantages() == {-1.414, 0.707}


def test_what_is_damaged_in_the_index_is_left_out(tmp_path: Path, place: Callable[[str], str]) -> None:
    """And told, and its name is nobody's until its gateway starts again."""
    told: list[str] = []
    with closing(Store(place(str(tmp_path)))) as store:
        here, there = (SessionIndex(store.base, host, lambda *said: told.append(said[0])) for host in HOSTS)
        found = [Indexed(id, HOSTS[0], None, None, None) for id in ("a", "b")]
        for one in found:
            here.claim(one)
        assert here.all() == found and there.elsewhere("a") == found[0]
        with store.base.writing() as db:
            db.run("UPDATE sessions SET gateway = 'x' WHERE id = 'a'")
        assert there.elsewhere("a") is None and there.all() == found[1:] and told == ["damaged"] * 2
        with pytest.raises(Exception, match="the place of the session 'a' is damaged"):
            there.claim(found[0]._replace(gateway=HOSTS[1]))
        here.sync(found, lambda id: None)
        assert there.elsewhere("a") == found[0]
