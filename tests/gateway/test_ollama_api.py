"""Ollama's API, judged by its own client: what VS Code and Home Assistant ask, and what cannot be had."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the package starlette is not installed")
ollama = pytest.importorskip("ollama", reason="the package ollama is not installed")

import httpx2
from servers import tiny_model

from chatparsers.chat.chat import Chat
from chatparsers.gateway import Batch, End, Engine, EngineError, Job, Settings, create_app

ASK = [{"role": "user", "content": "Oslo and Rome?"}]
CALLS = "\n".join(
    f'<tool_call>\n{{"name": "get_weather", "arguments": {{"city": "{city}"}}}}\n</tool_call>'
    for city in ("Oslo", "Rome")
)
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Speaker(Engine):
    """Writes ``says`` by single ids. ``job``: what it was asked last. ``fails``: it breaks after its text."""

    ids = True
    dialect = "gbnf"
    context = 40_000

    def __init__(self) -> None:
        self.says = ""
        self.end: Any = "stop"
        self.fails = False
        self.tokenizer = tiny_model("qwen3").tokenizer
        self.job: Job | None = None

    async def start(self, chat: Chat) -> list[str]:
        return []

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        self.job = job
        ids = self.tokenizer.encode(self.says).ids
        for id in ids:
            yield Batch(ids=[id])
            await asyncio.sleep(0)
        if self.fails:
            raise EngineError("the engine broke")
        yield Batch(end=End(self.end, len(job.prompt), len(ids)))

    @property
    def prompt(self) -> str:
        assert self.job is not None and isinstance(self.job.prompt, list)
        return str(self.tokenizer.decode(self.job.prompt, skip_special_tokens=False))


@pytest.fixture(scope="module")
def asked() -> Iterator[tuple[Speaker, Any, str]]:
    from servers import Server

    engine = Speaker()
    server = Server(create_app(tiny_model("qwen3").chat, engine, Settings(model="mine")))
    client = ollama.Client(host=server.url)
    yield engine, client, server.url
    client._client.close()
    server.close()


@pytest.fixture
def client(asked: tuple[Speaker, Any, str]) -> tuple[Speaker, Any, str]:
    engine, *rest = asked
    engine.says, engine.end, engine.fails = "<think>\nI think.\n</think>\n\nHello, Ann.", "stop", False
    return (engine, *rest)  # type: ignore[return-value]


def get_weather(city: str) -> str:
    """Tells the weather.

    Args:
      city: the city
    """
    return city


def test_what_a_client_asks_before_it_chats(client: tuple[Speaker, Any, str]) -> None:
    _, asks, url = client
    assert asks.list().models[0].model == asks.ps().models[0].model == "mine"
    shown = asks.show("mine")
    assert shown.capabilities == ["completion", "tools", "thinking"]
    assert shown.modelinfo["qwen3.context_length"] == asks.ps().models[0].context_length == 40_000
    version = httpx2.get(f"{url}/api/version").json()["version"]
    assert tuple(map(int, version.split("."))) >= (0, 6, 4), "VS Code refuses less"
    assert asks.chat("mine", []).done_reason == "load"
    assert asks.generate("mine", keep_alive=0).done_reason == "unload"


@pytest.mark.parametrize("stream", [False, True])
def test_a_chat(client: tuple[Speaker, Any, str], stream: bool) -> None:
    """With a thought, then with calls whose results go back, by name and without ids."""
    engine, asks, _ = client

    def said(messages: Any, **more: Any) -> Any:
        found = asks.chat("mine", messages, stream=stream, **more)
        if not stream:
            return found
        parts = [*found]
        assert not any(part.done for part in parts[:-1])
        last = parts[-1]
        last.message.content = "".join(part.message.content or "" for part in parts)
        last.message.thinking = "".join(part.message.thinking or "" for part in parts) or None
        last.message.tool_calls = [call for part in parts for call in part.message.tool_calls or ()] or None
        return last

    found = said(ASK, think=True)
    assert (found.message.thinking, found.message.content) == ("I think.", "Hello, Ann.")
    assert found.done and found.done_reason == "stop" and found.model == "mine"
    assert found.eval_count == len(
        engine.tokenizer.encode(engine.says).ids
    ) and found.prompt_eval_count == len(engine.job.prompt)  # type: ignore[union-attr]
    assert found.total_duration >= found.eval_duration >= 0

    engine.says = "<think>\nHm.\n</think>\n\n" + CALLS
    found = said(ASK, tools=[get_weather])
    assert [call.function.arguments for call in found.message.tool_calls] == [
        {"city": "Oslo"},
        {"city": "Rome"},
    ]
    results = [
        {"role": "tool", "content": f"{name}: 5", "tool_name": "get_weather"} for name in ("Oslo", "Rome")
    ]
    engine.says = "<think>\n\n</think>\n\nFive."
    assert said([*ASK, found.message, *results], tools=[get_weather]).message.content == "Five."
    for part in ('"city": "Oslo"', '"city": "Rome"', "Oslo: 5", "Rome: 5"):
        assert part in engine.prompt
    assert (
        engine.prompt.index('"city": "Rome"')
        < engine.prompt.index("Oslo: 5")
        < engine.prompt.index("Rome: 5")
    )

    engine.says = (
        "<think>\n\n</think>\n\n"
        + '<tool_call>\n{"name": "get_weather", "arguments": {"city": oops}}\n</tool_call>'
    )
    found = said(ASK, tools=[get_weather])
    assert not found.message.tool_calls and "oops" in found.message.content, "a broken call is text"

    engine.says, engine.end = CALLS[: len(CALLS) // 3], "length"
    found = said(ASK, tools=[get_weather])
    assert found.done_reason == "length" and not found.message.tool_calls


def test_what_is_asked_reaches_the_engine(client: tuple[Speaker, Any, str]) -> None:
    engine, asks, _ = client
    engine.says = '<think>\n\n</think>\n\n{"city": "Oslo"}'
    assert json.loads(asks.chat("mine", ASK, format=SCHEMA).message.content) == {"city": "Oslo"}
    assert engine.job is not None and engine.job.grammar is not None and "city" in str(engine.job.grammar)
    assert asks.chat("mine", ASK, format="json").message.content and engine.job.grammar is not None
    asks.chat(
        "mine",
        ASK,
        options={
            "temperature": 0,
            "num_predict": 400,
            "num_ctx": 8192,
            "stop": ["END"],
            "repeat_penalty": 1.1,
        },
    )
    assert engine.job.max_tokens == 400 and engine.job.sampling == {
        "temperature": 0,
        "repetition_penalty": 1.1,
    }
    asks.chat("mine", ASK, options={"num_predict": -1})
    assert engine.job.max_tokens != -1
    asks.chat("mine", ASK, think=False)
    assert engine.prompt.rstrip().endswith("</think>")
    made = asks.generate("mine", "Say it.", system="Be short.", think=True)
    assert made.response == '{"city": "Oslo"}' and "Be short." in engine.prompt and "Say it." in engine.prompt
    parts = [*asks.generate("mine", "Say it.", stream=True)]
    assert "".join(part.response for part in parts) == '{"city": "Oslo"}' and parts[-1].done

    async def later() -> list[Any]:  # as Home Assistant asks
        there = ollama.AsyncClient(host=str(asks._client.base_url))
        found = [part async for part in await there.chat("mine", ASK, stream=True, keep_alive=-1)]
        await there._client.aclose()
        return found

    assert asyncio.run(later())[-1].done


REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("chat", {"messages": ASK, "options": {"mirostat": 2}}, 400, "options.mirostat"),
    ("chat", {"messages": [{"role": "user", "content": "Hi", "images": ["aGk="]}]}, 400, "image"),
    ("chat", {"messages": ASK, "format": "xml"}, 400, "format"),
    ("chat", {"messages": ASK, "logprobs": True}, 400, "logprobs"),
    ("chat", {"messages": "Hi"}, 400, "messages"),
    ("chat", {"messages": [{"role": "assistant", "tool_calls": [{}]}]}, 400, "tool_calls[0].function"),
    ("generate", {"prompt": "Hi", "raw": True}, 400, "raw"),
    ("generate", {"prompt": "Hi", "suffix": "there"}, 400, "suffix"),
    ("pull", {"model": "other"}, 501, "/api/pull"),
    ("embed", {"input": "Hi"}, 501, "/api/embed"),
]


def test_what_cannot_be_had_is_an_error(client: tuple[Speaker, Any, str], serve: Callable[..., Any]) -> None:
    engine, asks, url = client
    for path, body, status, word in REFUSED:
        answer = httpx2.post(f"{url}/api/{path}", json={"model": "mine", **body}, timeout=20)
        assert answer.status_code == status and word in answer.json()["error"], (path, body, answer.text)
    engine.fails = True
    with pytest.raises(ollama.ResponseError, match="broke") as failed:
        asks.chat("mine", ASK)
    assert failed.value.status_code >= 500
    with pytest.raises(ollama.ResponseError, match="broke"):
        [*asks.chat("mine", ASK, stream=True)]
    keyed = serve(create_app(tiny_model("qwen3").chat, engine, Settings(api_key="k"))).url
    for path in ("tags", "ps", "chat"):
        method = "POST" if path == "chat" else "GET"
        answer = httpx2.request(
            method, f"{keyed}/api/{path}", json={"messages": ASK} if path == "chat" else None
        )
        assert answer.status_code == 401 and "key" in answer.json()["error"]
    known = ollama.Client(host=keyed, headers={"authorization": "Bearer k"})
    assert known.list().models
    known._client.close()
