"""A drill: what clients of a served gateway see while everything around it goes wrong. It prints a table."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from scripted import ENDLESS, WORD, Slow, Upstream, soon
from servers import free_port, nginx, nginx_program, served, tiny_model

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
        more = ["--drain", "10", "--api-key-file", str(self.keys), "--log", str(self.log)]
        self.server = served(self.port, self.engine, model, *more, file=4096)
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


def _answer(port: int, tokens: int, **more: Any) -> dict[str, Any] | None:
    """A response; None if there was no answer."""
    body = {"input": "Hi", "max_output_tokens": tokens, **more}
    try:
        answer = httpx2.post(f"http://127.0.0.1:{port}/v1/responses", json=body, timeout=60)
    except httpx2.HTTPError:
        return None
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _kept(port: int, responses: Sequence[dict[str, Any]]) -> Counter[str]:
    """What a gateway shows of responses that clients have read."""
    found: Counter[str] = Counter()
    for response in responses:
        answer = httpx2.get(f"http://127.0.0.1:{port}/v1/responses/{response['id']}", timeout=60)
        kept = "equal" if answer.status_code == 200 and answer.json() == response else "changed"
        found["missing" if answer.status_code == 404 else kept] += 1
    return found


def _chains(ports: Sequence[int], turns: int) -> list[dict[str, Any]]:
    """What a client reads that goes on from its last answer, through one gateway and the other."""
    read: list[dict[str, Any]] = []
    for turn in range(turns):
        more = {"previous_response_id": read[-1]["id"]} if read else {}
        found = _answer(ports[turn % len(ports)], 3, **more)
        if found is not None:
            assert found["store"] and found["status"] == "completed"
            read.append(found)
    return read


def test_the_drill_of_the_store(
    model: dict[str, str],
    upstream: Callable[..., Upstream],
    tmp_path: Path,
    pytestconfig: pytest.Config,
    capsys: Any,
    place: Callable[[str], str],
) -> None:
    """Two gateways share a store: one is killed, one is ended, and one has a full disk."""
    if not pytestconfig.getoption("--nightly"):
        pytest.skip("the drill is run with --nightly")
    engine = upstream(Slow(tokenizer=tiny_model("qwen3").tokenizer))
    ports = [free_port() for _ in range(4)]
    kept = ["--store", place(str(tmp_path / "kept")), "--drain", "3"]
    in_a_file = "://" not in kept[1]
    rows: list[tuple[str, Counter[str]]] = []
    running = [served(port, engine, model, *kept) for port in ports[:2]]
    try:
        with ThreadPoolExecutor(CLIENTS) as pool:
            asked = [
                pool.submit(_chains, ports[:2] if way % 2 else ports[1::-1], 20) for way in range(CLIENTS)
            ]
            soon(lambda: len(engine.requests) > 5 * CLIENTS, 60)
            running[0].kill()
            read = [response for chain in asked for response in chain.result()]
        rows.append(("a gateway is killed", _kept(ports[1], read)))
        assert set(rows[0][1]) == {"equal"}
        running.append(served(ports[2], engine, model, *kept))
        ids = [_answer(ports[1], most, background=True) for most in [20, ENDLESS] * 10]
        follow = f"http://127.0.0.1:{ports[1]}/v1/responses/{(ids[-1] or {})['id']}?stream=true"
        with ThreadPoolExecutor(1) as pool:
            followed = pool.submit(httpx2.get, follow, timeout=60)
            running[1].send_signal(signal.SIGTERM)
            _, said = running[1].communicate(timeout=60)
            events = followed.result().text
        assert "requests have 3 seconds" in said and "requests were answered, 10 cut off" in said
        assert "event: response.failed" in events and "this server is ending" in events
        found: Counter[str] = Counter()
        for one in ids:
            answer = httpx2.get(f"http://127.0.0.1:{ports[2]}/v1/responses/{(one or {})['id']}").json()
            found[answer["status"]] += 1
            assert (answer["status"] == "failed") == ("server is ending" in str(answer["error"]))
        rows.append(("one ends, with responses in the background", found))
        full = ["--store", str(tmp_path / "full")]
        running.append(served(ports[3], engine, model, *full, file=600_000))
        answers = [one for _ in range(150 * in_a_file) if (one := _answer(ports[3], 3)) is not None]
        stored = [answer for answer in answers if answer["store"]]
        found = _kept(ports[3], stored)
        found["not stored, as it said"] = len(answers) - len(stored)
        rows.append(("the disk gets full", found))
        assert len(answers) == 150 * in_a_file
    finally:
        for process in running:
            process.kill()
            process.communicate()
    with capsys.disabled():
        print()
        for name, seen in rows:
            print(f"| {name} | {', '.join(f'{count} {kind}' for kind, count in seen.items())} |")
    assert rows[1][1] == {"completed": 10, "failed": 10}
    if not in_a_file:
        return
    assert set(rows[2][1]) == {"equal", "not stored, as it said"}
    assert rows[2][1]["equal"] > 60, "what its log held goes into the file, else the log's 600 kB hold a few"


def test_the_drill_behind_nginx(
    model: dict[str, str],
    upstream: Callable[..., Upstream],
    tmp_path: Path,
    pytestconfig: pytest.Config,
    capsys: Any,
    place: Callable[[str], str],
) -> None:
    """Two gateways share a store, and nginx as a page has it spreads requests over them: they answer for each other,
    also when one of them is killed under its clients, who ask again."""
    if not pytestconfig.getoption("--nightly"):
        pytest.skip("the drill is run with --nightly")
    nginx_program()
    page = Path(__file__).parents[2] / "docs" / "operate.md"
    (text,) = re.findall(r"```nginx\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    engine = upstream(Slow(tokenizer=tiny_model("qwen3").tokenizer))
    ports = [free_port(), free_port()]
    running = [served(port, engine, model, "--store", place(str(tmp_path / "kept"))) for port in ports]
    broken = 0
    try:
        with nginx(text, ports, tmp_path) as url, httpx2.Client(base_url=url, timeout=60) as client:

            def asked(**more: Any) -> dict[str, Any]:
                nonlocal broken
                while True:
                    body = {"input": "Hi", "max_output_tokens": 3, **more}
                    answer = client.post("/v1/responses", json=body)
                    if answer.status_code == 200:
                        return dict(answer.json())
                    assert answer.status_code in (502, 504), answer.text  # nginx's own
                    broken += 1

            def talks(way: int) -> tuple[str, list[dict[str, Any]]]:
                """By the response before, or in a conversation."""
                if way % 2:
                    read = [asked()]
                    for _ in range(19):
                        read.append(asked(previous_response_id=read[-1]["id"]))
                    return "", read
                id = client.post("/v1/conversations", json={}).json()["id"]
                return id, [asked(conversation=id) for _ in range(20)]

            ids = [asked(background=True, max_output_tokens=n)["id"] for n in (20, ENDLESS, 20, ENDLESS)]
            for id in ids[1::2]:
                for _ in ports:  # one of them does not run it
                    assert client.post(f"/v1/responses/{id}/cancel", json={}).status_code == 200
            with ThreadPoolExecutor(CLIENTS) as pool:
                found = [pool.submit(talks, way) for way in range(CLIENTS)]
                soon(lambda: len(engine.requests) > 8 * CLIENTS, 60)
                running[0].kill()
                talked = [one.result() for one in found]
            seen: Counter[str] = Counter()
            for id, read in talked:
                for response in read:
                    kept = client.get(f"/v1/responses/{response['id']}")
                    seen["equal" if kept.json() == response else f"{kept.status_code}"] += 1
                if id:
                    listed = client.get(f"/v1/conversations/{id}/items", params={"limit": 100}).json()["data"]
                    assert {item["id"] for one in read for item in one["output"]} <= {
                        item["id"] for item in listed
                    }

            def statuses() -> list[str]:
                return [client.get(f"/v1/responses/{id}").json()["status"] for id in ids]

            soon(lambda: "in_progress" not in statuses() and "queued" not in statuses(), 30)
            states = statuses()
    finally:
        for process in running:
            process.kill()
            process.communicate()
    with capsys.disabled():
        print(f"\n{dict(seen)}; {broken} asked again; in the background: {states}")
    assert seen == {"equal": 20 * CLIENTS} and broken
    assert states[1::2] == ["cancelled"] * 2 and set(states[::2]) <= {"completed", "failed"}
