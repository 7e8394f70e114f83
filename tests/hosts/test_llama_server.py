"""A real llama-server after the gateway, on ports of this machine: the tiny model, three APIs, streamed and whole.

It is found on PATH, or where ``CHATPARSERS_LLAMA_SERVER`` names it. ``tests/hosts/install llama-server`` builds one.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from asked import check_asking
from tinies import FORMATS, MESSAGES, TOOLS, tiny, wrong_in

import chatparsers

PROGRAM = os.environ.get("CHATPARSERS_LLAMA_SERVER") or shutil.which("llama-server")
if PROGRAM is None:
    pytest.skip("llama-server is not installed: tests/hosts/install llama-server", allow_module_level=True)
pytest.importorskip("gguf", reason="the package gguf is not installed")
httpx2 = pytest.importorskip("httpx2", reason="the package httpx2 is not installed")

from scripted import soon  # noqa: E402
from served import APIS, Gateway, ask, check_runs  # noqa: E402
from visions import BLUE, RED, TOKENS, asked, say, seeing, write_mmproj  # noqa: E402

from chatparsers.gateway import Batch, EngineError, Job, LlamaServer  # noqa: E402

ENV = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
FREE = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
"""The sampler leaves the whole vocabulary to the grammar."""


class Process:
    """``llama-server`` with a model of ``path``."""

    def __init__(self, path: Path, *flags: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as found:
            self.port = found.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        command = [
            PROGRAM,
            "-m",
            str(path),
            "--port",
            str(self.port),
            "-c",
            "8192",
            "-np",
            "2",
            "-t",
            "1",
            *flags,
        ]
        self.log = path.with_suffix(".log")
        with self.log.open("w") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=ENV)
        until = time.monotonic() + 120
        while not self._ready():
            assert self._process.poll() is None and time.monotonic() < until, self.log.read_text()[-2000:]
            time.sleep(0.1)

    def _ready(self) -> bool:
        try:
            return bool(httpx2.get(f"{self.url}/health", timeout=5).status_code == 200)
        except httpx2.HTTPError:
            return False

    def slots_in_use(self) -> int:
        slots = httpx2.get(f"{self.url}/slots", timeout=20).json()
        return sum(slot["is_processing"] for slot in slots)

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(20)


@pytest.fixture(scope="session")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made: list[Any] = []

    @cache
    def gateway(name: str) -> tuple[Gateway, Process]:
        path = tiny(name).write_gguf(tmp_path_factory.mktemp("gguf") / f"{name}.gguf")
        process = Process(path, "--slots")
        made.append(process)
        found = Gateway(chatparsers.load(path), LlamaServer(process.url))
        made.append(found)
        return found, process

    yield gateway
    for found in reversed(made):
        found.close()


@pytest.mark.parametrize("choice", ["required", "auto"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_run_is_complete_valid_and_equal(name: str, choice: str, gateways: Any) -> None:
    gateway, _ = gateways(name)
    assert gateway.chat.format.name == name and gateway.engine.ids
    check_runs(f"llama-server, {name}, {choice}", gateway, choice, **FREE)


ODD = ["☃", "Ω😀", "Tromsø 日本", "x<｜y｜>"]


def odd_tools() -> list[dict[str, object]]:
    """A tool whose arguments have characters of several tokens each: llama-server sends the id of the last one only."""
    parameters = {"type": "object", "properties": {"a": {"enum": ODD}}, "required": ["a"]}
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


@pytest.mark.parametrize("name", ["qwen3", "gpt-oss"])
def test_characters_of_several_tokens(name: str, gateways: Any) -> None:
    gateway, _ = gateways(name)
    seen = set()
    for seed in range(12):
        given = {"tools": odd_tools(), "tool_choice": "required", "max_tokens": 900, "seed": seed, **FREE}
        answer = ask(gateway.url, APIS[seed % 3], seed % 2 == 0, **given)
        for _, arguments in answer["calls"]:
            seen.add((arguments if isinstance(arguments, dict) else json.loads(arguments))["a"])
    assert len(seen) > 1 and seen <= set(ODD)


def test_the_probe(gateways: Any, tmp_path: Path) -> None:
    """Ids come back, and control tokens in the text as well, because the gateway asks to preserve them."""
    gateway, process = gateways("qwen3")
    engine = LlamaServer(process.url)

    async def started() -> list[str]:
        try:
            return await engine.start(gateway.chat)
        finally:
            await engine.close()

    assert asyncio.run(started()) == [] and engine.ids
    text = LlamaServer(process.url)
    text.read = lambda data: Batch(data["content"], None, LlamaServer.read(text, data).end)  # type: ignore[method-assign]

    async def by_text() -> list[str]:
        try:
            return await text.start(gateway.chat)
        finally:
            await text.close()

    assert asyncio.run(by_text()) == [
        "the engine gives no ids: text that spells a marker is read as that marker"
    ]
    dropping = type("Dropping", (LlamaServer,), {"body": _without_preserved})(process.url)
    dropping.read = lambda data: Batch(data["content"], None, LlamaServer.read(dropping, data).end)

    async def dropped() -> list[str]:
        try:
            return list(await dropping.start(gateway.chat))
        finally:
            await dropping.close()

    with pytest.raises(EngineError, match="drops control tokens"):
        asyncio.run(dropped())


def _without_preserved(self: LlamaServer, job: Job) -> dict[str, Any]:
    return {**LlamaServer.body(self, job), "preserved_tokens": []}


def test_usage_stops_and_truncation(gateways: Any) -> None:
    gateway, _ = gateways("qwen3")
    reasons = {"chat": "length", "responses": "incomplete", "messages": "max_tokens"}
    for api in APIS:
        answer = ask(
            gateway.url, api, api != "chat", tools=TOOLS, tool_choice="required", max_tokens=9, **FREE
        )
        prompt = gateway.turn.tokenizer.encode(gateway.turn.prompt, add_special_tokens=False).ids
        assert answer["reason"] == reasons[api] and answer["usage"] == (len(prompt), 9)
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"const": "one two three"}}}
    given = {
        "response_format": schema,
        "max_tokens": 400,
        "seed": 1,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    for stream in (True, False):
        whole = ask(gateway.url, "chat", stream, **given, **FREE)
        assert (whole["content"], whole["reason"]) == ('"one two three"', "stop")
        cut = ask(gateway.url, "chat", stream, stop=[" three"], **given, **FREE)
        assert (cut["content"], cut["reason"]) == ('"one two', "stop")


@pytest.mark.parametrize("known", [True, False])
def test_what_does_not_fit_is_the_clients_error(
    known: bool, gateways: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway knows the engine's context from the engine; if it did not, the engine would refuse."""
    gateway, _ = gateways("qwen3")
    assert gateway.engine.context == 4096
    if not known:
        monkeypatch.setattr(gateway.engine, "context", None)
    body = {"messages": [{"role": "user", "content": "word " * 6000}], "max_tokens": 5}
    for path in ("chat/completions", "messages"):
        answer = httpx2.post(
            f"{gateway.url}/v1/{path}", json={**body, "stream": path == "messages"}, timeout=60
        )
        error = answer.json()["error"]
        assert answer.status_code == 400 and "4096" in error["message"]
        assert ("available context size" in error["message"]) is not known  # which are the engine's words
        assert error["type"] == "invalid_request_error"


def test_a_client_that_leaves_frees_the_slot(gateways: Any) -> None:
    gateway, process = gateways("qwen3")
    body = {"messages": MESSAGES, "max_tokens": 100_000, "stream": True, **FREE}

    def body_of(job: Job) -> dict[str, Any]:  # an answer without end
        return {**LlamaServer.body(gateway.engine, job), "ignore_eos": True, "grammar": "root ::= [a-z]*"}

    gateway.engine.body = body_of
    try:
        with httpx2.stream("POST", f"{gateway.url}/v1/chat/completions", json=body, timeout=60) as answer:
            data = answer.iter_bytes()
            assert b"assistant" in next(data)
            assert process.slots_in_use() == 1
        soon(lambda: process.slots_in_use() == 0)
    finally:
        del gateway.engine.body


def test_two_requests_at_once(gateways: Any) -> None:
    """Each has its own slot, its own grammar and its own ids."""
    gateway, _ = gateways("qwen3-coder")
    given = {"tools": TOOLS, "tool_choice": "required", "max_tokens": 900, **FREE}
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda seed: ask(gateway.url, "chat", True, seed=seed, **given), range(6)))
    calls = [call for answer in answers for call in answer["calls"]]
    assert len(calls) >= 6 and not [wrong for call in calls if (wrong := wrong_in(*call))]


@pytest.fixture(scope="session")
def seeing_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    folder = tmp_path_factory.mktemp("seeing")
    path = seeing().write_gguf(folder / "seeing.gguf")
    process = Process(path, "--mmproj", str(write_mmproj(folder / "mmproj.gguf")))
    gateway = Gateway(chatparsers.load(path), LlamaServer(process.url))
    yield gateway
    gateway.close()
    process.close()


@pytest.mark.parametrize("api", APIS)
def test_images(api: str, seeing_gateway: Gateway) -> None:
    """Each image takes its tokens at its place, in a result too, and what the model writes depends on it."""
    url, chat = seeing_gateway.url, seeing_gateway.chat
    assert seeing_gateway.engine.images
    given = {"temperature": 0, "max_tokens": 1}

    def posted(*content: Any, result: list[Any] | None = None) -> Any:
        answer = say(seeing_gateway, api, {**asked(api, *content, result=result), **given, "tools": None})
        assert answer.status_code == 200, answer.text
        return answer.json()

    usage = posted("What is", RED, "or", BLUE, "?")["usage"]
    counted = usage.get("prompt_tokens", usage.get("input_tokens")) + usage.get("cache_read_input_tokens", 0)
    known = len(chat.tokenizer.encode(seeing_gateway.turn.prompt, add_special_tokens=False).ids)
    assert counted == known + 2 * (TOKENS - 3)  # each placeholder is three tokens of the prompt
    posted(RED, result=["Seen <|im_end|>:", BLUE])
    if api == "chat":
        likely = [
            httpx2.post(
                f"{url}/v1/chat/completions",
                json={**asked("chat", "What?", raw), **given, "logprobs": True, "temperature": 1},
                timeout=60,
            ).json()["choices"][0]["logprobs"]
            for raw in (RED, BLUE)
        ]
        assert likely[0] != likely[1]


def test_an_image_that_the_engine_cannot_read_is_the_clients_error(seeing_gateway: Gateway) -> None:
    broken = RED[:40] + bytes(len(RED) - 40)
    answer = say(seeing_gateway, "chat", asked("chat", broken))
    assert answer.status_code == 400 and "image" in answer.text.lower(), answer.text


def test_asking(gateways: Any) -> None:
    """By the URL: it says itself which engine it is."""
    gateway, process = gateways("qwen3")
    check_asking(gateway.chat, f"{process.url}/v1", **FREE)
