"""What whoever runs a gateway relies on: readiness, the log, ids, keys that change, paths that are passed on."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from scripted import ENDLESS, WORD, Llama, Slow, Upstream, Wire, forced, soon
from servers import flags, free_port, listens, tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

from chatparsers.gateway import LlamaServer, Settings, create_app
from chatparsers.gateway.keys import KeyFile

URL = "/v1/chat/completions"
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "A secret question"}]}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Engine(Llama):
    """An engine that answers ``/health`` and ``/v1/embeddings`` too."""

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        if path in ("/health", "/v1/embeddings"):
            await wire.head(200, "application/json")
            await wire.send(json.dumps({"path": path, "body": body}).encode())
            await wire.end()
            return
        await super().__call__(path, body, wire)


@pytest.fixture
def gateway(upstream: Callable[..., Upstream], serve: Callable[..., Any]) -> Callable[..., Any]:
    def make(script: Any = None, **settings: Any) -> Any:
        engine = upstream(script or Engine(["A secret answer."], tiny_model("qwen3").tokenizer), context=500)
        server = serve(create_app(tiny_model("qwen3").chat, LlamaServer(engine.url), Settings(**settings)))
        server.engine = engine
        return server

    return make


def test_ready(gateway: Callable[..., Any], monkeypatch: Any) -> None:
    monkeypatch.setattr("chatparsers.gateway.app._SEEN", 0.0)
    server = gateway()
    assert httpx2.get(f"{server.url}/ready").status_code == 200
    server.engine.close()
    assert httpx2.get(f"{server.url}/ready", timeout=20).status_code == 503
    assert httpx2.get(f"{server.url}/health").status_code == 200


def test_the_log_has_no_texts(gateway: Callable[..., Any], tmp_path: Path) -> None:
    server = gateway(log=str(tmp_path / "log"), api_key="k")
    key = {"authorization": "Bearer k"}
    first = httpx2.post(
        server.url + URL, json={**ASK, "max_tokens": 9000}, headers={**key, "x-request-id": "mine-1"}
    )
    assert first.headers["x-request-id"] == "mine-1"
    second = httpx2.post(
        server.url + URL,
        json={**ASK, "stream": True},
        headers={**key, "x-request-id": "bad id", "traceparent": TRACE},
    )
    assert httpx2.post(server.url + URL, json=ASK).status_code == 401
    server.engine.close()
    assert httpx2.post(server.url + URL, json=ASK, headers=key, timeout=20).status_code == 502
    soon(lambda: (tmp_path / "log").read_text().count("\n") == 4)
    raw = (tmp_path / "log").read_text()
    assert "secret" not in raw
    lines = [json.loads(line) for line in raw.splitlines()]
    assert [line["status"] for line in lines] == [200, 200, 401, 502]
    assert lines[0]["id"] == "mine-1" and lines[1]["id"] == second.headers["x-request-id"] != "bad id"
    assert lines[1]["trace"] == TRACE and "trace" not in lines[0] and lines[1]["stream"] is True
    prompt = lines[0]["prompt_tokens"]
    assert prompt == 5 and 0 < lines[0]["max_tokens"] < 500 and lines[0]["completion_tokens"] == 3
    assert lines[0]["max_tokens_asked"] == 9000 and "max_tokens_asked" not in lines[1]
    assert (lines[2]["error"], lines[3]["error"]) == ("invalid_api_key", "engine_error")


def test_what_does_not_fit_in_the_messages_is_logged_once(
    gateway: Callable[..., Any], tmp_path: Path
) -> None:
    server = gateway(log=str(tmp_path / "log"))
    call = {"id": "secret", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    result = {"role": "tool", "content": "R"}
    odd: dict[str, Any] = {
        **ASK,
        "n": 2,
        "messages": [
            {"role": "user", "content": "Q"},
            {"role": "assistant", "tool_calls": [call]},
            {**result, "tool_call_id": "secret"},
            {**result, "tool_call_id": "secret"},
        ],
    }
    for body in (odd, ASK):
        assert httpx2.post(server.url + URL, json=body).status_code == 200
    soon(lambda: (tmp_path / "log").read_text().count("\n") == 2)
    lines = list(map(json.loads, (tmp_path / "log").read_text().splitlines()))
    wrong = "messages[3].tool_call_id: the call has a result before this one"
    assert [line.get("warnings") for line in lines] == [[wrong], None]


def test_unknown_fields_are_named_once(gateway: Callable[..., Any], tmp_path: Path, capsys: Any) -> None:
    server = gateway(log=str(tmp_path / "log"))
    odd = {**ASK, "models": ["a"], "response_format ": {"type": "json_object"}}
    for _ in range(2):
        assert httpx2.post(server.url + URL, json=odd).status_code == 200
    warned = capsys.readouterr().err
    assert warned.count("the field 'models'") == warned.count("the field 'response_format '") == 1
    metrics = server.app.state.metrics
    assert [metrics.value("ignored", field=name) for name in ("models", "other")] == [2, 2]
    soon(lambda: (tmp_path / "log").read_text().count("\n") == 2)
    assert json.loads((tmp_path / "log").read_text().split("\n")[0])["ignored"] == ["models", "other"]
    refused = httpx2.post(gateway(strict_fields=True).url + URL, json=odd)
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (400, "unknown_parameter", "models")


def test_the_models_are_those_that_a_request_may_name(gateway: Callable[..., Any]) -> None:
    url = gateway(model="mine").url
    for name in ("mine", "gpt-5", "org/model:tag"):
        assert httpx2.post(url + URL, json={**ASK, "model": name}).json()["model"] == name
        shown = httpx2.get(f"{url}/v1/models/{name}").json()
        assert shown["id"] == name
    assert httpx2.get(f"{url}/v1/models/{'x' * 2000}").status_code == 404
    listed = httpx2.get(f"{url}/v1/models").json()["data"]
    assert [model["id"] for model in listed] == ["mine"]
    made = datetime.fromisoformat(listed[0]["created_at"].replace("Z", "+00:00")).timestamp()
    assert made == listed[0]["created"] and abs(time.time() - made) < 600


def test_ids_are_passed_on(gateway: Callable[..., Any]) -> None:
    server = gateway()
    heads: list[str] = server.engine.heads
    httpx2.post(server.url + URL, json=ASK, headers={"x-request-id": "mine-2", "traceparent": TRACE})
    assert "x-request-id: mine-2" in heads[-1] and f"traceparent: {TRACE}" in heads[-1]
    httpx2.post(server.url + URL, json=ASK, headers={"traceparent": "x"})
    assert "traceparent" not in heads[-1]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_full_disk_stops_no_request(gateway: Callable[..., Any], capsys: Any) -> None:
    server = gateway(log="/dev/full")
    for _ in range(3):
        assert httpx2.post(server.url + URL, json=ASK).status_code == 200
    soon(lambda: server.app.state.metrics.value("log_failures") == 3)
    assert capsys.readouterr().err.count("the request log cannot be written") == 1


def test_keys_change_without_a_stop(gateway: Callable[..., Any], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("chatparsers.gateway.keys._LOOK", 0.0)
    keys = tmp_path / "keys"
    keys.write_text("# users\nfirst\n\nsecond\n")
    server = gateway(key_file=str(keys), api_key="own")

    def let_in(*names: str) -> list[bool]:
        heads = [{"authorization": f"Bearer {name}"} for name in names]
        return [httpx2.post(server.url + URL, json=ASK, headers=head).status_code == 200 for head in heads]

    assert let_in("first", "second", "own", "third", "# users", "x") == [
        True,
        True,
        True,
        False,
        False,
        False,
    ]
    fresh = tmp_path / "new"
    fresh.write_text("third\n")
    os.replace(fresh, keys)
    assert let_in("first", "second", "own", "third") == [False, False, True, True]
    keys.write_text("third\n", encoding="utf-8-sig")
    assert let_in("third") == [True]
    keys.write_bytes(b"third\n\0")  # no text
    assert let_in("third") == [False]
    keys.unlink()
    assert let_in("third", "own") == [False, True] and not KeyFile(str(keys)).digests()


def test_paths_that_are_passed_on(gateway: Callable[..., Any]) -> None:
    server = gateway(passed=("/v1/embeddings",), api_key="k")
    body = {"input": "text"}
    answer = httpx2.post(f"{server.url}/v1/embeddings", json=body, headers={"x-api-key": "k"})
    assert answer.json() == {"path": "/v1/embeddings", "body": body}
    assert httpx2.post(f"{server.url}/v1/embeddings", json=body).status_code == 401
    assert httpx2.post(f"{server.url}/tokenize", json=body, headers={"x-api-key": "k"}).status_code == 404
    assert 'requests_total{api="other",status="404"} 1.0\n' in httpx2.get(f"{server.url}/metrics").text
    httpx2.post(f"{server.url}/v1/embeddings?x=1", json=body, headers={"x-api-key": "k"})
    assert server.engine.heads[-1].startswith("post /v1/embeddings?x=1 ")
    assert "/v1/embeddings" in httpx2.get(server.url).json()["paths"]
    server.engine.close()
    answer = httpx2.post(f"{server.url}/v1/embeddings", json=body, headers={"x-api-key": "k"})
    assert answer.status_code == 502 and str(server.engine.port) not in answer.text


def test_what_is_passed_on_has_places_too(gateway: Callable[..., Any]) -> None:
    """It counts among the requests that run, and a client that leaves before the response stops the engine."""

    class Silent(Engine):
        async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
            if path == "/v1/completions":
                await asyncio.sleep(20)
            await super().__call__(path, body, wire)

    server = gateway(
        Silent(["Hello."], tiny_model("qwen3").tokenizer), passed=("/v1/completions",), concurrency=1
    )

    def asked() -> list[str]:
        return [path for path, _ in server.engine.requests if path == "/v1/completions"]

    with ThreadPoolExecutor() as pool:
        left = pool.submit(httpx2.post, f"{server.url}/v1/completions", json={}, timeout=1)
        soon(lambda: server.app.state.metrics.active == 1)
        assert httpx2.post(server.url + URL, json=ASK).status_code == 429
        assert isinstance(left.exception(), httpx2.ReadTimeout)
        soon(lambda: server.app.state.metrics.active == 0)
        ended = pool.submit(httpx2.post, f"{server.url}/v1/completions", json={}, timeout=20)
        soon(lambda: server.engine.left == 1 and len(asked()) == 2)  # the engine has it too
        server.loop.call_soon_threadsafe(server.app.state.stop)  # as SIGTERM does at last
        assert ended.result().status_code == 503
    soon(lambda: server.engine.left == 2)
    soon(lambda: server.app.state.metrics.value("requests", api="passed", status="499") == 1)
    assert httpx2.post(server.url + URL, json=ASK).status_code == 200


def test_a_closed_connection_is_opened_again(gateway: Callable[..., Any]) -> None:
    """The engine closed the kept connection meanwhile: the request is sent once more, not twice."""
    dead = 0

    class Closes(Engine):
        async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
            nonlocal dead
            if dead and forced(body) is None and "prompt" in body:
                dead -= 1
                wire.die()
                return
            await super().__call__(path, body, wire)

    server = gateway(Closes(["Hello."], tiny_model("qwen3").tokenizer))
    dead = 1
    assert httpx2.post(server.url + URL, json=ASK).status_code == 200
    dead = 2
    assert httpx2.post(server.url + URL, json=ASK).status_code == 502


@pytest.mark.nightly
def test_the_drill(model: dict[str, str], upstream: Callable[..., Upstream], tmp_path: Path) -> None:
    """A gateway that is started before its engine, and ended under load: open streams end, none in silence."""
    port, later = free_port(), free_port()
    command = [
        *(sys.executable, "-m", "chatparsers", "serve", "--port", str(port), "--wait", "30", "--drain", "4"),
        *("--upstream", f"http://127.0.0.1:{later}", "--upstream-kind", "llama-server", *flags(model)),
    ]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(1.5)

    engine = upstream(Slow(tokenizer=tiny_model("qwen3").tokenizer), port=later)
    try:
        soon(lambda: listens(port), 30)
        from concurrent.futures import ThreadPoolExecutor

        def ask(tokens: int, path: str = URL) -> str:
            most = (
                {"max_output_tokens": tokens, "input": "Hi"}
                if "responses" in path
                else {"max_tokens": tokens}
            )
            body = {**ASK, "stream": True, **most}
            try:
                return str(httpx2.post(f"http://127.0.0.1:{port}{path}", json=body, timeout=30).text)
            except httpx2.HTTPError as error:
                return type(error).__name__

        with ThreadPoolExecutor(12) as pool:
            short = [pool.submit(ask, 20) for _ in range(6)]
            ways = (URL, "/v1/responses", "/v1/messages") * 2
            long = [pool.submit(ask, ENDLESS, path) for path in ways]
            soon(lambda: sum(one.get("n_predict", 1) > 1 for _, one in engine.requests) == 12, 30)
            server.send_signal(signal.SIGTERM)
            assert all(found.result().endswith("data: [DONE]\n\n") for found in short)
            for path, found in zip(ways, long, strict=True):  # each API's own error, after what was written
                text = found.result()
                assert WORD in text and "this server is ending: ask again" in text
                last = text.rstrip().split("\n\n")[-1]
                assert last == "data: [DONE]" if path == URL else last.startswith("event: error\n")
                assert ("event: response.failed" in text) == (path == "/v1/responses")
        _, errors = server.communicate(timeout=20)
        assert (
            "ending: 12 requests have 4 seconds" in errors and "6 requests were answered, 6 cut off" in errors
        )
    finally:
        server.kill()
        server.wait()
