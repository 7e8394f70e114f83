"""A session belongs to the key that began it, and a damaged log stops no other."""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("starlette", reason="the package starlette is not installed")

from model import chat_of
from test_sessions import Gateway, turns

from chatparsers.sessions.log import Logs
from chatparsers.sessions.report import sessions_of
from chatparsers.sessions.sessions import Sessions


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    made: list[Gateway] = []

    def make(**settings: Any) -> Gateway:
        made.append(Gateway(tmp_path / "rollouts", **settings))
        return made[-1]

    yield make
    for one in made:
        one.server.close()


def test_a_session_belongs_to_its_key(gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("alice\nbob\n")
    made = gateway(key_file=str(tmp_path / "keys"), api_key="main")
    alice, bob = ({"authorization": f"Bearer {key}"} for key in ("alice", "bob"))
    agent = made.talk("private", key="alice")
    items = turns(agent, 1)
    made.post("/sessions", {"id": "hers", "group": "g"}, headers=alice)
    made.post("/sessions", {"id": "his", "group": "g"}, headers=bob)
    for id, value in (("hers", 1.0), ("his", 3.0)):
        made.post(f"/sessions/{id}/reward", {"value": value}, headers=bob if id == "his" else alice)

    def check() -> None:
        for headers, ids in ((alice, {"private", "hers"}), (bob, {"his"})):
            found = made.get("/sessions", headers=headers).json()["data"]
            assert {one["id"] for one in found} == ids
        text = made.get("/samples", headers=alice).text
        assert {json.loads(line)["session"] for line in text.splitlines()} == {"private"}
        assert made.get("/samples", headers=bob).text == ""
        for path in ("", "/samples"):
            assert made.get(f"/sessions/private{path}", headers=alice).status_code == 200
            assert made.get(f"/sessions/private{path}", headers=bob).status_code == 404
        for path, body in (("reward", {"value": 1.0}), ("close", {})):
            assert made.post(f"/sessions/private/{path}", body, headers=bob).status_code == 404
        asked = {"messages": [{"role": "user", "content": "Hi"}]}
        named = {**bob, "x-session-id": "private"}
        assert made.post("/v1/chat/completions", asked, headers=named).status_code == 403
        assert (
            made.post("/sessions/private/v1/messages", {**asked, "max_tokens": 9}, headers=bob).status_code
            == 403
        )
        main = {"authorization": "Bearer main"}
        assert len(made.get("/sessions", headers=main).json()["data"]) == 3, "the gateway's own key sees all"
        assert made.get("/sessions/private/samples", headers=main).status_code == 200
        own = made.get("/sessions/hers", headers=alice).json()
        assert own["reward"] == 1.0 and own["damaged"] == 0

    check()
    made.restart()
    check()
    assert made.talk("private", key="alice").ask(items).session["reason"] == "exact"
    head = made.folder / "private.jsonl"
    lines = head.read_text().splitlines(keepends=True)
    first = json.loads(lines[0])
    del first["owner"], first["digest"]
    head.write_text("".join([json.dumps(first) + "\n", *lines[1:]]))
    made.restart()  # a session of a version that knew no owners
    assert made.get("/sessions/private", headers=bob).status_code == 200


def flip(raw: bytes, at: int) -> bytes:
    return raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


def test_a_damaged_log_stops_no_other(gateway: Callable[..., Gateway], capsys: Any) -> None:
    """Whatever is in it: what can be read is there, what cannot is told, and the other sessions go on."""
    made = gateway()
    items = turns(made.talk("one"), 3)
    turns(made.talk("two"), 1)
    whole = made.get("/sessions/two/samples").text
    made.server.close()
    log = made.folder / "one.jsonl"
    raw = log.read_bytes()
    lines = raw.splitlines(keepends=True)
    draw = random.Random(5)
    damages = {
        "a line of garbage": raw[: len(raw) // 2] + b"\n{bad\n",
        "zeros": raw + bytes(99) + b"\n",
        "the first line is gone": b"".join(lines[1:]),
        "the head is cut": raw[5:],
        "no text": b"\xff\xfe\n" + raw,
        "a list": b"[1]\n" + raw,
        "null": b"null\n" + raw,
        "zeros at the end": raw + bytes(99),
        "empty": b"",
        "an answer is gone": b"".join(line for line in lines if b'"answer":2,' not in line),
        **{f"flipped {at}": flip(raw, at) for at in draw.sample(range(len(raw)), 12)},
    }
    for what, damaged in damages.items():
        log.write_bytes(damaged)
        capsys.readouterr()
        made.start()
        assert made.get("/sessions/two/samples").text == whole, what
        found = made.get("/sessions/one/samples")
        told = capsys.readouterr().err
        if what in ("zeros at the end", "empty"):  # as a kill may leave it
            assert str(log) in told or "'one'" in told, (what, told)
            assert found.status_code == (200 if what != "empty" else 404)
            made.server.close()
            continue
        assert found.status_code == 410 or int(found.headers["x-damaged"]), (what, found.text)
        if "gone" not in what or found.status_code == 410:
            assert str(log) in told or "'one'" in told, (what, told)
            assert made.server.app.state.metrics.value("store_gone", why="session") > 0
        if found.status_code == 200:
            reply = made.talk("one").ask(items)
            numbers = re.findall(rb'"t":"answer","answer":(\d+)', damaged)
            assert reply.session["answer"].encode() not in numbers, what
        made.server.close()
    log.write_bytes(damages["zeros"])
    reports = {one.id: one for one in sessions_of(Logs(made.folder, write=False))}
    assert reports["one"].counts.damaged == 1 and reports["two"].counts.damaged == 0
    read = Sessions(chat_of("qwen3"), str(made.folder), write=False)
    assert [head.id for head in read.heads()] == ["one", "two"]
    made.start()
