"""The dialects of engines: what each is asked, how its answers are read, and the probe for control tokens."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scripted import Llama, Upstream, Wire, forced, soon, sse
from servers import tiny_model
from three_apis import BODIES, tools_of

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

import chatparsers
from chatparsers.gateway import (
    VLLM,
    EngineError,
    LlamaServer,
    Ollama,
    OpenAICompletions,
    Settings,
    SGLang,
    create_app,
)
from chatparsers.gateway.apis import CHAT, MESSAGES, RESPONSES, Api
from chatparsers.gateway.defaults import with_defaults
from chatparsers.grammar import write
from chatparsers.testing.tiny import TinyModel

CALL = '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
ASK: dict[str, Any] = {
    "model": "m",
    "messages": [{"role": "user", "content": "Hi"}],
    "tools": TOOLS,
    "temperature": 0.5,
    "top_k": 3,
    "repetition_penalty": 1.1,
}


class Completions:
    """Does as vLLM and SGLang do with ``/v1/completions``: the reason, then the counts, then the end mark."""

    def __init__(self, pieces: list[str], model: TinyModel, *, gives_ids: bool, drops: bool = False) -> None:
        self.pieces, self.model, self.gives_ids, self.drops = pieces, model, gives_ids, drops

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        if path == "/model_info":  # of SGLang
            await wire.head(404, "application/json")
            await wire.end()
            return
        if path == "/v1/models":
            await wire.head(200, "application/json")
            await wire.send(b'{"object": "list", "data": [{"id": "served", "max_model_len": 5000}]}')
            await wire.end()
            return
        assert body["model"] == "served"
        tokenizer = self.model.tokenizer
        id = forced(body)
        await wire.head()
        if id is not None:
            await self._piece(wire, "" if self.drops else tokenizer.id_to_token(id), [id])
        elif body.get("max_tokens") != 1:
            for piece in self.pieces:
                await self._piece(wire, piece, tokenizer.encode(piece, add_special_tokens=False).ids)
            await self._piece(wire, "", [self.model.eos_ids[0]])
        choice = {"index": 0, "text": "", "finish_reason": "stop"}
        await wire.send(sse({"choices": [choice], "usage": None}))
        usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2}}
        await wire.send(sse({"choices": [], "usage": usage}) + b"data: [DONE]\n\n")
        await wire.end()

    async def _piece(self, wire: Wire, text: str, ids: list[int]) -> None:
        choice = {"index": 0, "text": text, "finish_reason": None}
        await wire.send(sse({"choices": [{**choice, "token_ids": ids} if self.gives_ids else choice]}))


class Ollamas:
    """Does as Ollama does with ``/api/generate``: JSON in lines, text alone.

    ``after``: what it writes after a text that repeats a marker; None: it repeats it, as models do.
    """

    def __init__(self, after: str | None = None, count: int = 8, **fields: Any) -> None:
        self.after, self.count, self.fields = after, count, fields

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        if path == "/api/tags":
            await wire.head(200, "application/json")
            await wire.send(b'{"models": [{"name": "qwen3:8b", "model": "qwen3:8b"}, {"name": "gemma3:1b"}]}')
            await wire.end()
            return
        assert path == "/api/generate" and body["raw"] is True and isinstance(body["prompt"], str)
        pieces, count = [CALL[:20], CALL[20:]], 4
        if body["options"].get("num_predict") in (1, 8):
            marker = body["prompt"][: body["prompt"].find("><") + 1]
            pieces, count = [marker if self.after is None else self.after], self.count
        await wire.head(200, "application/x-ndjson")
        common = {"model": body["model"], "created_at": "2026-07-01T04:19:04.4680973Z"}
        for piece in pieces:
            event = {**common, "response": piece, **self.fields, "done": False}
            await wire.send(json.dumps(event).encode() + b"\n")
        durations = {"total_duration": 5, "load_duration": 1, "prompt_eval_duration": 2, "eval_duration": 2}
        counts = {"prompt_eval_count": 9, "eval_count": count}
        last = {**common, "response": "", "done": True, "done_reason": "stop", **durations, **counts}
        await wire.send(json.dumps(last).encode() + b"\n")
        await wire.end()


def ask(server: Any, **more: Any) -> dict[str, Any]:
    answer = httpx2.post(f"{server.url}/v1/chat/completions", json={**ASK, **more}, timeout=20)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    (call,) = found["choices"][0]["message"]["tool_calls"]
    assert call["function"] == {"name": "f", "arguments": '{"a": 1}'}
    assert (found["usage"]["prompt_tokens"], found["usage"]["completion_tokens"]) == (9, 4)
    return found


@pytest.mark.parametrize("gives_ids", [True, False], ids=["ids", "text"])
@pytest.mark.parametrize("kind", [VLLM, SGLang])
def test_structural_tags_and_ids(
    kind: Any, gives_ids: bool, upstream: Callable[[Any], Upstream], serve: Callable[[Any], Any]
) -> None:
    model = tiny_model("qwen3")
    engine = upstream(Completions([CALL[:15], CALL[15:]], model, gives_ids=gives_ids))
    made = kind(f"{engine.url}/v1/")
    server = serve(create_app(model.chat, made))
    found = ask(server, tool_choice="required", max_tokens=50)
    assert found["usage"]["prompt_tokens_details"] == {"cached_tokens": 2}
    probe, body = next(body for _, body in engine.requests if "prompt" in body), engine.requests[-1][1]
    assert isinstance(probe["prompt"][0], int)  # it is probed as it is asked
    tag = (
        body["structured_outputs"]["structural_tag"] if kind is VLLM else json.dumps(body["response_format"])
    )
    assert json.loads(tag)["type"] == "structural_tag" and ("Token(" in tag) == gives_ids
    assert body["skip_special_tokens"] is False and body["stop_token_ids"] == sorted(model.eos_ids)
    assert isinstance(body["prompt"][0], int) and (body["top_k"], body["temperature"]) == (3, 0.5)
    ask(server, tools=[*TOOLS])
    unlimited = engine.requests[-1][1]
    assert (
        unlimited["max_tokens"] == 5000 - len(unlimited["prompt"]) - 1
    )  # these servers stop after 16 tokens
    assert body["max_tokens"] == 50 and made.ids is gives_ids and (body["stop"] == []) == gives_ids


def test_a_server_of_which_nothing_is_known(
    upstream: Callable[[Any], Upstream], serve: Callable[[Any], Any], capsys: Any
) -> None:
    model = tiny_model("qwen3")
    engine = upstream(Completions([CALL], model, gives_ids=False))
    server = serve(create_app(model.chat, OpenAICompletions(engine.url)))
    # A sampler's field that it does not have is an error, unless its value changes nothing.
    answer = httpx2.post(f"{server.url}/v1/chat/completions", json=ASK, timeout=20)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "top_k")
    ask(server, top_k=-1, repetition_penalty=1.0, max_tokens=32_000)
    body = engine.requests[-1][1]
    assert body["stop"] == ["<|im_end|>", "<|endoftext|>"] and isinstance(body["prompt"], str)
    # Its context counts though it gets a text.
    count = len(model.tokenizer.encode(body["prompt"], add_special_tokens=False).ids)
    assert body["max_tokens"] == 5000 - count - 1
    assert "gives no ids" in capsys.readouterr().err


def test_ollama(upstream: Callable[[Any], Upstream], serve: Callable[[Any], Any], capsys: Any) -> None:
    engine = upstream(Ollamas())
    ask(serve(create_app(tiny_model("qwen3").chat, Ollama(engine.url, model="qwen3:8b"))), max_tokens=7)
    body = engine.requests[-1][1]
    assert body["model"] == "qwen3:8b" and body["prompt"].endswith("<|im_start|>assistant\n")
    wanted = {
        "temperature": 0.5,
        "top_k": 3,
        "repeat_penalty": 1.1,
        "num_predict": 7,
        "stop": ["<|im_end|>", "<|endoftext|>"],
    }
    assert body["options"] == wanted
    assert (body["think"], body["truncate"], body["shift"]) == (False, False, False)
    warned = capsys.readouterr().err
    assert "takes no grammar" in warned and "gives no ids" in warned and "not known" not in warned


async def deaf(path: str, body: dict[str, Any], wire: Wire) -> None:
    await wire.head()
    await wire.send(sse({"choices": [{"index": 0, "text": "Hm", "finish_reason": "length"}]}))
    await wire.end()


def started(engine: Any, model: TinyModel) -> list[str]:
    async def start() -> list[str]:
        try:
            return await engine.start(model.chat)
        finally:
            await engine.close()

    return asyncio.run(start())


def silent(**given: bool) -> Llama:
    return Llama(tokenizer=tiny_model("gpt-oss").tokenizer, gives_ids=False, **given)


def completing(**given: bool) -> Completions:
    return Completions([], tiny_model("gpt-oss"), **given)


def of_many(url: str) -> Ollama:
    return Ollama(url, model="m")


NO_GRAMMAR, NO_IDS = "the engine takes no grammar", "the engine gives no ids"
UNCLEAR = "it is not known whether the engine keeps control tokens such as '<|"
DROPS = r"drops control tokens .* made to write '<\|"
# Else every call of Llama 3.1, gpt-oss or Mistral would be lost, and nobody would know why.
STARTS: dict[str, tuple[Any, Any, list[str] | str]] = {
    "llama-server that drops control tokens": (silent(drops=True), LlamaServer, DROPS),
    "a server that drops them": (completing(gives_ids=False, drops=True), OpenAICompletions, DROPS),
    "vLLM that drops them": (completing(gives_ids=False, drops=True), VLLM, DROPS),
    # With ids it does not matter what is in the text.
    "vLLM that drops them and gives ids": (completing(gives_ids=True, drops=True), VLLM, []),
    # Ollama takes no bias: it goes on with a text of markers.
    "Ollama": (Ollamas(), of_many, [NO_GRAMMAR, NO_IDS]),
    "Ollama that drops them": (
        Ollamas(""),
        of_many,
        r"drops control tokens .* it wrote 8 tokens, and sent nothing",
    ),
    "Ollama that writes another text": (Ollamas("Hm"), of_many, [NO_GRAMMAR, UNCLEAR, NO_IDS]),
    "Ollama that writes nothing": (Ollamas("", count=1), of_many, [NO_GRAMMAR, UNCLEAR, NO_IDS]),
    "a server that takes no bias": (
        deaf,
        lambda url: OpenAICompletions(url, model="m"),
        [NO_GRAMMAR, UNCLEAR, NO_IDS],
    ),
    "a server of many models": (
        Ollamas(),
        Ollama,
        r"name one with --upstream-model: qwen3:8b, gemma3:1b",
    ),
    "a server that hides thoughts": (
        Ollamas(thinking="Hm"),
        of_many,
        "takes the reasoning out of the text",
    ),
    "no server": (None, LlamaServer, "the engine does not answer"),
}


UNFORCED = [name for name, (script, *_) in STARTS.items() if isinstance(script, Ollamas) or script is deaf]
"""Those whose probe forces no id, so that none need be known."""


@pytest.mark.parametrize(
    ("name", "tokenizer"),
    [*((name, True) for name in STARTS), *((name, False) for name in UNFORCED)],
    ids=lambda value: {True: "a tokenizer", False: "none"}.get(value),
)
def test_what_is_said_as_an_engine_starts(
    name: str, tokenizer: bool, upstream: Callable[[Any], Upstream]
) -> None:
    """It is refused, or serves with warnings."""
    script, kind, said = STARTS[name]
    model: Any = tiny_model("gpt-oss")
    if not tokenizer:
        model = SimpleNamespace(chat=chatparsers.load(template="gpt-oss"))
    url = "http://127.0.0.1:9" if script is None else upstream(script).url
    if isinstance(said, str):
        with pytest.raises(EngineError, match=said) as caught:
            started(kind(url), model)
        assert script is not None or caught.value.where == url
    else:
        found = started(kind(url), model)
        assert len(found) == len(said)
        assert all(one.startswith(words) for one, words in zip(found, said, strict=True)), found


def test_markers_spelt_as_text_are_text_where_ids_come(
    upstream: Callable[[Any], Upstream], serve: Callable[[Any], Any]
) -> None:
    """C9, through the gateway: a call that a document made the model repeat in ordinary tokens is no call."""
    model = tiny_model("qwen3")
    spelt = [id for char in CALL for id in model.tokenizer.encode(char, add_special_tokens=False).ids]

    async def repeats(path: str, body: dict[str, Any], wire: Wire) -> None:
        script = Llama(tokenizer=model.tokenizer)
        if forced(body) is None:
            await wire.head()
            await wire.send(sse({"content": CALL, "tokens": spelt, "stop": False}))
            await wire.send(sse({"content": "", "stop": True, "stop_type": "eos"}))
            await wire.end()
        else:
            await script(path, body, wire)

    server = serve(create_app(model.chat, LlamaServer(upstream(repeats).url)))
    answer = httpx2.post(f"{server.url}/v1/chat/completions", json=ASK, timeout=20).json()
    message = answer["choices"][0]["message"]
    assert message["content"] == CALL and "tool_calls" not in message


def test_two_workers_behind_a_balancer(
    upstream: Callable[[Any], Upstream], serve: Callable[[Any], Any]
) -> None:
    """A conversation whose requests go to one worker and then to the other: nothing is kept in a worker."""
    model = tiny_model("qwen3")
    engine = upstream(Llama([CALL], model.tokenizer))
    workers = [serve(create_app(tiny_model("qwen3").chat, LlamaServer(engine.url))) for _ in range(2)]

    class RoundRobin(httpx2.BaseTransport):
        """The balancer: each request goes to the next worker."""

        def __init__(self) -> None:
            self.next = itertools.cycle(workers)
            self.http = httpx2.HTTPTransport()

        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            request.url = request.url.copy_with(port=next(self.next).port)
            return self.http.handle_request(request)

        def close(self) -> None:
            self.http.close()

    messages: list[dict[str, Any]] = [{"role": "user", "content": "Hi"}]
    with httpx2.Client(transport=RoundRobin(), base_url="http://127.0.0.1", timeout=20) as client:
        for number in range(4):
            answer = client.post("/v1/chat/completions", json={**ASK, "messages": messages}).json()
            message = answer["choices"][0]["message"]
            (call,) = message["tool_calls"]
            messages += [message, {"role": "tool", "tool_call_id": call["id"], "content": f"result {number}"}]
    served = [worker.app.state.metrics.value("requests", status="200") for worker in workers]
    assert served == [2, 2]
    prompts = [
        model.tokenizer.decode(body["prompt"], skip_special_tokens=False)
        for _, body in engine.requests
        if forced(body) is None
    ]
    assert [len(re.findall(r"result \d", prompt)) for prompt in prompts] == [0, 1, 2, 3]


def test_metrics_are_what_prometheus_reads(
    upstream: Callable[[Any], Upstream], serve: Callable[[Any], Any]
) -> None:
    model = tiny_model("qwen3")
    engine = upstream(Llama([CALL, CALL.replace('"f"', '"g"')], model.tokenizer))
    server = serve(create_app(model.chat, LlamaServer(engine.url), Settings(keep_alive=60)))
    httpx2.post(f"{server.url}/v1/chat/completions", json=ASK, timeout=20)
    soon(lambda: server.app.state.metrics.active == 0)
    text = httpx2.get(f"{server.url}/metrics").text
    for line in (
        'chatparsers_requests_total{api="chat",status="200"} 1.0',
        'chatparsers_calls_total{complete="true",format="qwen3"} 2.0',
        'chatparsers_diagnostics_total{code="unknown-tool",format="qwen3"} 1.0',
        'chatparsers_tokens_total{kind="completion"} 3.0',
        'chatparsers_first_token_seconds_count{api="chat",model="chatparsers"} 1.0',
        'chatparsers_prompt_tokens_sum{api="chat",model="chatparsers"} 5.0',
        "chatparsers_active_requests 0.0",
    ):
        assert f"{line}\n" in text
    assert text.count("# TYPE") == 19


def test_the_answer_has_what_is_left_of_the_context(
    upstream: Callable[..., Upstream], serve: Callable[[Any], Any]
) -> None:
    """A client may ask for more than there is; a prompt that does not fit is each API's own error."""
    model = tiny_model("qwen3")
    engine = upstream(Llama(["Hello."], model.tokenizer), context=200)
    server = serve(create_app(model.chat, LlamaServer(engine.url)))
    url, asked = f"{server.url}/v1", {"messages": ASK["messages"], "max_tokens": 32_000}
    left = None
    for path, more, name in (
        ("chat/completions", {}, "max_tokens"),
        ("responses", {"input": "Hi", "max_output_tokens": 32_000}, "max_output_tokens"),
        ("messages", {}, "max_tokens"),
    ):
        answer = httpx2.post(f"{url}/{path}", json={**asked, **more}, timeout=20)
        body = engine.requests[-1][1]
        left = body["n_predict"]
        assert left == 200 - len(body["prompt"]) - 1 and answer.json()["usage"][name] == left  # it is said
    assert (
        "max_tokens" not in httpx2.post(f"{url}/messages", json={**asked, "max_tokens": left}).json()["usage"]
    )
    body = engine.requests[-1][1]
    long = "word " * 300
    many = [{"role": "user", "content": long}]
    count = len(model.chat.prepare(many).prompt)
    answer = httpx2.post(f"{url}/chat/completions", json={"messages": many}, timeout=20)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "context_length_exceeded", "messages")
    numbers = [int(number) for number in re.findall(r"\d+", error["message"])]
    assert numbers[0] == 200 and 200 < numbers[1] < count
    error = httpx2.post(f"{url}/responses", json={"input": long}, timeout=20).json()["error"]
    assert (error["code"], error["param"]) == ("context_length_exceeded", "input")
    answer = httpx2.post(f"{url}/messages", json={"messages": many, "max_tokens": 5}, timeout=20)
    said = answer.json()["error"]["message"]
    assert said == f"prompt is too long: {numbers[1]} tokens > 200 maximum"
    assert engine.requests[-1][1] is body


@pytest.mark.nightly
def test_metrics_of_several_processes(tmp_path: Path) -> None:
    """What any of them shows is of all, and is so now."""
    code = """
import os
from chatparsers.gateway.metrics import Metrics
metrics = Metrics("m")
metrics.active = 2
if (child := os.fork()) == 0:
    other = Metrics("m")
    other.active = 5
    other.active -= 2
    other.count("tokens", 7, kind="prompt")
    os._exit(0)
os.waitpid(child, 0)
metrics.count("tokens", 1, kind="prompt")
print(metrics.text())
"""
    given = {**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, timeout=60)
    assert "\nchatparsers_active_requests 5.0\n" in done.stdout, done.stderr
    assert '\nchatparsers_tokens_total{kind="prompt"} 8.0\n' in done.stdout


@pytest.mark.parametrize("stream", [True, False])
def test_a_call_that_nobody_wants_is_said(
    stream: bool, upstream: Callable[[Any], Upstream], serve: Callable[[Any], Any]
) -> None:
    """``tool_choice="none"``, and the model calls: the answer has no call, and a field says so."""
    model = tiny_model("qwen3")
    server = serve(create_app(model.chat, LlamaServer(upstream(Llama([CALL], model.tokenizer)).url)))
    for path, body in (
        ("chat/completions", {"messages": ASK["messages"], "tools": TOOLS, "tool_choice": "none"}),
        ("responses", {"input": "Hi", "tools": [{"type": "function", "name": "f"}], "tool_choice": "none"}),
        (
            "messages",
            {
                "messages": ASK["messages"],
                "max_tokens": 50,
                "tools": [{"name": "f", "input_schema": {}}],
                "tool_choice": {"type": "none"},
            },
        ),
    ):
        answer = httpx2.post(f"{server.url}/v1/{path}", json={**body, "stream": stream}, timeout=20).text
        assert answer.count('"unwanted_calls":') == 1 and '"arguments":' not in answer.replace(" ", "")


@pytest.mark.parametrize("api", [CHAT, RESPONSES, MESSAGES], ids=lambda api: api.name)
def test_strict_tools_are_guided_by_their_schema_whatever_they_say(api: Api) -> None:
    chat = tiny_model("qwen3").chat
    schema = {"type": "object", "properties": {"city": {"enum": ["Oslo"]}}, "required": ["city"]}

    def guided(strict: dict[str, Any], settings: Settings) -> str:
        tools = tools_of(api.name, {"name": "f", "parameters": schema, **strict})
        request = with_defaults(api.read({**BODIES[api.name], "tools": tools}), settings)
        grammar = write(chat.prepare(**request.prepare), "gbnf")
        assert grammar is not None
        return grammar.text

    loose = {"strict": False}
    assert "Oslo" not in guided(loose, Settings())
    assert guided(loose, Settings(strict_tools=True)) == guided({}, Settings())
    assert "Oslo" in guided({}, Settings())
