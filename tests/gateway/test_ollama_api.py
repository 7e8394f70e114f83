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

import chatparsers
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


LIGHT = {  # as Home Assistant's own schemas are written: OpenAPI's, without additionalProperties
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "area": {"type": "string", "nullable": True},
        "brightness": {"type": "integer", "minimum": 0, "maximum": 100},
        "domain": {"type": "array", "items": {"type": "string", "enum": ["light"]}},
    },
    "required": [],
}


@pytest.mark.parametrize("format", ["qwen3", "llama-3-x"])
def test_what_home_assistant_asks(format: str, serve: Callable[..., Any]) -> None:
    """By its integration's code: the lists first, then streams with its options, whatever the model can. Results come
    back without names and ids, and in a task the answer is data by a schema."""
    engine, model = Speaker(), tiny_model(format)
    engine.tokenizer = model.tokenizer
    url = serve(create_app(model.chat, engine, Settings(model="mine"))).url
    tools = [
        {"type": "function", "function": {"name": name, "parameters": LIGHT, "description": "Turns."}}
        for name in ("HassTurnOn", "HassTurnOff")
    ]
    calls = [
        {"name": "HassTurnOn", "arguments": {"name": "lamp", "brightness": 50}},
        {"name": "HassTurnOff", "arguments": {"domain": ["light"]}},
    ]
    written = chatparsers.get_format(format).render({"content": "", "tool_calls": calls}, tools=tools)

    async def talk() -> list[Any]:
        there = ollama.AsyncClient(host=url)
        assert [one.model for one in (await there.list()).models] == ["mine"]
        assert (await there.ps()).models

        async def said(messages: list[Any], **more: Any) -> Any:
            settings = {"options": {"num_ctx": 8192.0}, "keep_alive": -1, "think": False, **more}
            whole = ollama.Message(role="assistant", content="", tool_calls=[])
            async for part in await there.chat("mine", messages, stream=True, **settings):
                whole.content += part.message.content or ""
                whole.tool_calls = [*whole.tool_calls, *(part.message.tool_calls or ())]
            assert part.done
            return whole

        ask = [{"role": "system", "content": "You control a home."}, {"role": "user", "content": "Lights?"}]
        engine.says = written
        first = await said(ask, tools=tools)
        results = [
            {"role": "tool", "content": json.dumps({"data": {"done": word}, "error": None})}
            for word in ("dimmed", "darkened")
        ]
        engine.says = "Both are done."
        last = await said([*ask, first, *results], tools=tools, keep_alive="300s", think=None)
        prompt = engine.prompt
        engine.says = '{"name": "lamp"}'
        task = await said(ask, format=LIGHT)
        await there._client.aclose()
        return [first, last, prompt, task]

    first, last, prompt, task = asyncio.run(talk())
    assert [call.function.model_dump() for call in first.tool_calls] == calls
    assert last.content == "Both are done."
    assert prompt.index('"lamp"') < prompt.index("dimmed") < prompt.index("darkened")
    assert json.loads(task.content) == {"name": "lamp"} and "brightness" in str(engine.job.grammar)  # type: ignore[union-attr]


def test_what_vs_code_asks(client: tuple[Speaker, Any, str]) -> None:
    """By its extension's code: what the server is, then chat completions, in whose history a thought has its names."""
    engine, _, url = client
    with httpx2.Client(base_url=url, timeout=20) as vs_code:
        vs_code.get("/api/version").json()
        named = [one["model"] for one in vs_code.get("/api/tags").json()["models"]]
        shown = [vs_code.post("/api/show", json={"model": name}).json() for name in named]
        infos = [one["model_info"] for one in shown]
        assert [info["general.basename"] for info in infos] == named == ["mine"]
        assert [info[f"{info['general.architecture']}.context_length"] for info in infos] == [40_000]
        read = {
            "name": "read_file",
            "description": "Reads.",
            "parameters": {"type": "object", "properties": {}},
        }
        body: dict[str, Any] = {
            "model": "mine",
            "messages": [{"role": "system", "content": "You are an agent."}, *ASK],
            "tools": [{"type": "function", "function": read}],
            "temperature": 0.1,
            "top_p": 1,
            "n": 1,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        reads = '<tool_call>\n{"name": "read_file", "arguments": {}}\n</tool_call>'
        engine.says = f"<think>\nI read it.\n</think>\n\n{reads}"
        heads = {"authorization": "Bearer", "x-request-id": "1", "openai-intent": "conversation-agent"}
        answer = vs_code.post("/v1/chat/completions", json=body, headers=heads)
        chunks = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
        assert chunks[-1]["usage"]["total_tokens"] > 0
        deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
        thought = "".join(delta.get("reasoning_content", "") for delta in deltas)
        (call,) = (call for delta in deltas for call in delta.get("tool_calls", ()) if "id" in call)
        back = {
            "role": "assistant",
            "content": "",
            "cot_id": "0e9a",
            "cot_summary": thought,
            "tool_calls": [{**call, "function": {"name": "read_file", "arguments": "{}"}}],
        }
        result = {"role": "tool", "tool_call_id": call["id"], "content": [{"type": "text", "text": "hello"}]}
        sent = {**body, "messages": [*body["messages"], back, result]}
        assert vs_code.post("/v1/chat/completions", json=sent).status_code == 200
        assert "I read it." in engine.prompt and "hello" in engine.prompt


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
