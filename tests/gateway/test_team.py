"""Several models behind one gateway, and keys with names: who may ask what, how much, and how it is counted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scripted import Llama, Upstream, Wire, soon
from servers import tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

from chatparsers.gateway import LlamaServer, Settings
from chatparsers.gateway.app import create_team_app
from chatparsers.gateway.keys import Caller, Key, Taken, digest_of
from chatparsers.gateway.models import Model
from chatparsers.serving import ApiError

URL = "/v1/chat/completions"


class Alive(Llama):
    """An engine that answers ``/health`` too."""

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        if path != "/health":
            await super().__call__(path, body, wire)
            return
        await wire.head(200, "application/json")
        await wire.send(b"{}")
        await wire.end()


ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Hello?"}]}


def key(name: str, **limits: Any) -> Key:
    return Key(name, frozenset([digest_of(f"sk-{name}")]), **limits)


@pytest.fixture
def team(upstream: Callable[..., Upstream], serve: Callable[..., Any], tmp_path: Path) -> Callable[..., Any]:
    """A server of the models ``one`` (also called ``gpt``) and ``two``; ``models()`` makes them anew."""

    def make(*keys: Key, **settings: Any) -> Any:
        engines = {
            name: upstream(Alive([f"I am {name}."], tiny_model("qwen3").tokenizer), context=500)
            for name in ("one", "two")
        }

        def models(**named: str) -> list[Model]:
            return [
                Model(tiny_model("qwen3").chat, LlamaServer(engines[engine].url), Settings(name), aliases)
                for name, engine, aliases in (
                    ("one", named.get("one", "one"), ("gpt",)),
                    ("two", named.get("two", "two"), ()),
                )
            ]

        log = str(tmp_path / "log")
        server = serve(create_team_app(models(), Settings(log=log, **settings), keys))
        server.engines, server.models, server.log = engines, models, tmp_path / "log"
        return server

    return make


def ask(server: Any, model: str | None, key: str, status: int = 200, path: str = URL) -> Any:
    body = ASK if model is None else {**ASK, "model": model}
    found = httpx2.post(server.url + path, json=body, headers={"x-api-key": f"sk-{key}"}, timeout=20)
    assert found.status_code == status, found.text
    return found


def said(answer: Any) -> str:
    return str(answer.json()["choices"][0]["message"]["content"])


def lines(server: Any, count: int) -> list[Any]:
    soon(lambda: server.log.read_text().count("\n") >= count)
    return [json.loads(line) for line in server.log.read_text().splitlines()]


def test_each_model_answers_to_its_names(team: Callable[..., Any]) -> None:
    server = team(key("a"), key("b", models=frozenset(["two"])))
    assert said(ask(server, "one", "a")) == said(ask(server, "gpt", "a")) == "I am one."
    assert said(ask(server, "two", "a")) == said(ask(server, "two", "b")) == "I am two."
    refused = ask(server, "gpt", "b", 403).json()["error"]
    assert refused["code"] == "model_not_allowed" and refused["message"].endswith("it may ask two")
    assert "has one, gpt, two" in ask(server, "three", "a", 404).json()["error"]["message"]
    assert "which model? it has two" in ask(server, None, "b", 400).json()["error"]["message"]
    lists = {
        who: [
            one["id"]
            for one in httpx2.get(f"{server.url}/v1/models", headers={"x-api-key": f"sk-{who}"}).json()[
                "data"
            ]
        ]
        for who in "ab"
    }
    assert lists == {"a": ["one", "gpt", "two"], "b": ["two"]}
    found = httpx2.get(f"{server.url}/v1/models/one", headers={"x-api-key": "sk-b"})
    assert found.status_code == 403
    told = [(line.get("key"), line.get("model"), line["status"]) for line in lines(server, 7)]
    assert told[:5] == [*[("a", "one", 200)] * 2, ("a", "two", 200), ("b", "two", 200), ("b", None, 403)]
    first = lines(server, 7)[0]
    assert first["engine"] == server.engines["one"].url and len(first["session"]) == 16
    counted = httpx2.get(f"{server.url}/metrics").text
    assert 'chatparsers_key_requests_total{key="a",model="one",status="200"} 2.0\n' in counted
    tokens = 'chatparsers_key_tokens_total{key="b",kind="completion",model="two"} '
    assert f"{tokens}{first['completion_tokens']:.1f}\n" in counted
    assert 'chatparsers_duration_seconds_count{api="chat",model="two"} 2.0\n' in counted


def test_a_key_has_its_limits(team: Callable[..., Any]) -> None:
    server = team(key("rate", requests_per_minute=2), key("day", tokens_per_day=3))
    for _ in range(2):
        ask(server, "one", "rate")
    late = ask(server, "one", "rate", 429)
    assert late.json()["error"]["code"] == "requests_per_minute_reached"
    assert 28 <= int(late.headers["retry-after"]) <= 30
    ask(server, "one", "day")
    spent = ask(server, "two", "day", 429)
    assert spent.json()["error"]["code"] == "tokens_per_day_reached"
    assert 0 < int(spent.headers["retry-after"]) <= 86_400
    assert [line["status"] for line in lines(server, 5)] == [200, 200, 429, 200, 429]


def test_a_rate_comes_back_with_time(monkeypatch: Any) -> None:
    now = [0.0]
    monkeypatch.setattr("chatparsers.gateway.keys.time.monotonic", lambda: now[0])
    caller = Caller("", Key("k", requests_per_minute=6, concurrency=2), Taken())

    def begun() -> int:
        count = 0
        while True:
            try:
                caller.admit()
            except ApiError:
                return count
            count += 1

    counts = [begun()]
    for later in (5.0, 5.0, 25.0, 600.0):
        now[0] += later
        counts.append(begun())
    assert counts == [6, 0, 1, 2, 6]
    caller.take(2)
    with pytest.raises(ApiError, match="2 requests of the key k are running"):
        caller.take(1)
    caller.take(-1)
    caller.take(1)


def test_a_key_is_known_by_its_digest(team: Callable[..., Any], tmp_path: Path) -> None:
    """A digest stands for its key, in a file too, and is no key itself."""
    digest = f"sha256:{hashlib.sha256(b'sk-d').hexdigest()}"
    (tmp_path / "keys").write_text(f"# one\n{digest}\n")
    assert digest_of(digest) == digest_of("sk-d")
    server = team(Key("d", file=str(tmp_path / "keys")))
    ask(server, "one", "d")
    found = httpx2.post(server.url + URL, json={**ASK, "model": "one"}, headers={"x-api-key": digest})
    assert found.status_code == 401


def test_models_and_keys_change_while_answers_run(team: Callable[..., Any]) -> None:
    """What is taken away is gone for the next request, what a key has taken stays its own, and what runs goes on."""
    import asyncio

    server = team(key("a", requests_per_minute=3), key("b"))

    def change(models: list[Model], *keys: Key) -> None:
        asyncio.run_coroutine_threadsafe(server.app.state.change(models, keys), server.loop).result(20)

    ask(server, "one", "a")
    ask(server, "one", "b")
    change(server.models(one="two"), key("a", requests_per_minute=3), key("c"))
    assert said(ask(server, "gpt", "a")) == "I am two."
    ask(server, "one", "b", 401)
    ask(server, "one", "c")
    ask(server, "one", "a")
    ask(server, "one", "a", 429)
    change(server.models()[:1], key("a"))
    assert said(ask(server, "any", "a")) == "I am one."


def test_the_key_of_a_session_is_bound_as_the_one_that_began_it(
    upstream: Callable[..., Upstream], serve: Callable[..., Any], tmp_path: Path
) -> None:
    """And is none any more once that one is gone."""
    import asyncio

    engine = upstream(Alive(["Hello."], tiny_model("qwen3").tokenizer), context=500)
    model = Model(tiny_model("qwen3").chat, LlamaServer(engine.url), Settings("m"))
    settings = Settings("m", rollouts=str(tmp_path / "runs"))
    server = serve(create_team_app([model], settings, [key("a", requests_per_minute=2), key("b")]))
    lent = httpx2.post(f"{server.url}/sessions", json={}, headers={"x-api-key": "sk-a"}).json()["api_key"]

    def refused(by: str) -> int | None:
        """The status by which a key is turned away. (The engine that is played here cannot be recorded.)"""
        found = httpx2.post(server.url + URL, json=ASK, headers={"x-api-key": by}, timeout=20)
        return found.status_code if found.status_code in (401, 429) else None

    assert [*map(refused, (lent, "sk-a", lent, "sk-b"))] == [None, None, 429, None]
    change = server.app.state.change([model], [key("b")])
    asyncio.run_coroutine_threadsafe(change, server.loop).result(20)
    assert [*map(refused, (lent, "sk-a", "sk-b"))] == [401, 401, None]


def test_ready_says_which_engines_answer(team: Callable[..., Any], monkeypatch: Any) -> None:
    """One of two is enough; and of one that is away, its model alone is."""
    monkeypatch.setattr("chatparsers.gateway.app._SEEN", 0.0)
    server = team()
    server.engines["one"].close()
    found = httpx2.get(f"{server.url}/ready", timeout=20)
    assert found.status_code == 200 and found.json()["models"] == {"one": False, "two": True}
    ask(server, "one", "", 502)
    assert said(ask(server, "two", "")) == "I am two."
    server.app.state.end()
    assert httpx2.get(f"{server.url}/ready", timeout=20).json() == {"status": "the server ends"}
    assert httpx2.get(f"{server.url}/health").status_code == 200
