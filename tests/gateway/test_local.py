"""A tiny random model in the process: the real clients get calls that are valid under the tool's schema, whatever the
model would rather write."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the package starlette is not installed")
pytest.importorskip("llama_cpp", reason="the package llama-cpp-python is not installed")
pytest.importorskip("gguf", reason="the package gguf is not installed")

import anyio
import httpx2
import llama_cpp
import numpy as np
from servers import Server, tiny_model

import chatparsers
from chatparsers.gateway import Batch, Job, Settings, create_app
from chatparsers.gateway.local import Local
from chatparsers.gateway.same_ids import same_ids

F: dict[str, Any] = {
    "name": "get_weather",
    "parameters": {
        "type": "object",
        "properties": {
            "city": {"enum": ["Oslo", "Rome"]},
            "days": {"type": "integer", "maximum": 9, "minimum": 1},
        },
        "required": ["city", "days"],
        "additionalProperties": False,
    },
}


SEED = {"seed": 1}
"""With it the model is done after about 60 tokens. It may write reasoning without end otherwise."""


def valid(arguments: str) -> bool:
    found = json.loads(arguments)
    return set(found) == {"city", "days"} and found["city"] in ("Oslo", "Rome") and 1 <= found["days"] <= 9


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path: Path = tiny_model("qwen3").write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf")
    made = Server(
        create_app(chatparsers.load(path, format="qwen3"), Local(path, context=2048), Settings(model="tiny"))
    )
    yield made
    made.close()


def test_three_apis_streamed_and_whole(server: Any, openai: Any, anthropic: Any) -> None:
    message = {"role": "user", "content": "How is the weather?"}
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as client:
        asked: dict[str, Any] = {
            "model": "tiny",
            "messages": [message],
            "tools": [{"type": "function", "function": F}],
            "tool_choice": "required",
            "parallel_tool_calls": False,
            "max_tokens": 1500,
            "extra_body": SEED,
        }
        with client.chat.completions.stream(**asked) as stream:
            streamed = stream.get_final_completion()
        for found in (streamed, client.chat.completions.create(**asked)):
            assert found.choices[0].finish_reason == "tool_calls"
            assert all(valid(call.function.arguments) for call in found.choices[0].message.tool_calls)
        items: dict[str, Any] = {
            "model": "tiny",
            "input": "How is the weather?",
            "tools": [{"type": "function", **F}],
            "tool_choice": {"type": "function", "name": "get_weather"},
            "parallel_tool_calls": False,
            "max_output_tokens": 1500,
            "extra_body": SEED,
        }
        with client.responses.stream(**items) as stream:
            response = stream.get_final_response()
        for answer in (response, client.responses.create(**items)):
            calls = [item for item in answer.output if item.type == "function_call"]
            assert calls and all(valid(item.arguments) for item in calls)
            assert answer.usage.input_tokens > 100 and answer.usage.output_tokens > 10
    named = {"name": "get_weather", "input_schema": F["parameters"]}
    with anthropic.Anthropic(base_url=server.url, api_key="none", max_retries=0) as client:
        body: dict[str, Any] = {
            "model": "tiny",
            "messages": [message],
            "tools": [named],
            "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
            "max_tokens": 1500,
            "extra_body": SEED,
        }
        with client.messages.stream(**body) as stream:
            final = stream.get_final_message()
        for said in (final, client.messages.create(**body)):
            uses = [block for block in said.content if block.type == "tool_use"]
            assert uses and all(valid(json.dumps(block.input)) for block in uses)
            assert said.stop_reason == "tool_use"


def ask(server: Any, **more: Any) -> httpx2.Response:
    body = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 20, **more}
    return httpx2.post(f"{server.url}/v1/chat/completions", json=body, timeout=60)


@pytest.mark.parametrize("budget", [0, 1, 5])
def test_a_budget_for_thoughts(budget: int, server: Any) -> None:
    """The thought of a random model, which ends it whenever it likes: the call after it is whole."""
    tools = [{"type": "function", "function": F}]
    limits = {"thinking_budget_tokens": budget, "max_tokens": 1500, "return_token_ids": True}
    asked = {"tools": tools, "tool_choice": "required", "parallel_tool_calls": False, **SEED, **limits}
    last = {"role": "assistant", "content": None, "reasoning_content": "Hm"}
    opened = {"messages": [{"role": "user", "content": "Hi"}, last], "continue_final_message": True}
    found = ask(server, **asked, **opened).json()
    choice, usage = found["choices"][0], found["usage"]
    closer = tiny_model("qwen3").tokenizer.token_to_id("</think>")
    ids = choice["token_ids"]
    assert ids.count(closer) == 1 and ids.index(closer) <= budget + 2  # the end of a character
    assert usage["completion_tokens_details"]["reasoning_tokens"] <= budget + 2
    (call,) = choice["message"]["tool_calls"]
    assert valid(call["function"]["arguments"]) and usage["completion_tokens"] == len(ids)


def test_requests_wait_for_one_another(server: Any) -> None:
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda seed: ask(server, seed=seed % 2, temperature=0.9), range(6)))
    assert [answer.status_code for answer in answers] == [200] * 6
    said = [answer.json()["choices"][0]["message"] for answer in answers]
    assert said[0] == said[2] == said[4] and said[1] == said[3] == said[5]  # the seed is the request's own


def test_an_answer_that_is_left_frees_the_model(tmp_path: Path) -> None:
    """As when a client leaves: the next request does not wait for the rest."""
    path = tiny_model("qwen3").write_gguf(tmp_path / "tiny.gguf")
    turn = chatparsers.load(path, format="qwen3").bind()
    job = Job(turn, turn.tokenizer.encode("Hi", add_special_tokens=False).ids, max_tokens=5)

    async def leave() -> Batch:
        engine = Local(path, context=512)
        left = engine.generate(job)
        await anext(left)
        with pytest.raises(TimeoutError), anyio.fail_after(0):
            await anext(engine.generate(job))  # it waits while the first runs
        await left.aclose()
        with anyio.fail_after(60):
            batches = [batch async for batch in engine.generate(job)]
        await engine.close()
        return batches[-1]

    assert asyncio.run(leave()).end is not None


def test_llama_cpp_encodes_a_text_as_the_gateway_does(tmp_path: Path) -> None:
    """So a prompt may be text, where the file has a pre-tokenizer that is not known here."""
    path = tiny_model("qwen3").write_gguf(tmp_path / "tiny.gguf")
    chat = chatparsers.load(path, format="qwen3")
    turn = chat.bind()

    async def compare() -> tuple[list[str], list[Any]]:
        engine = Local(path, context=512)
        said = await same_ids(chat, engine)
        written = []
        for prompt in ("Hi", turn.tokenizer.encode("Hi", add_special_tokens=False).ids):
            job = Job(turn, prompt, max_tokens=5, sampling={"temperature": 0})
            written.append([batch.ids async for batch in engine.generate(job)])
        await engine.close()
        return said, written

    said, (by_text, by_ids) = asyncio.run(compare())
    assert said == [] and by_text == by_ids


def test_a_prompt_that_does_not_fit(server: Any) -> None:
    answer = ask(server, messages=[{"role": "user", "content": "word " * 5000}])
    assert answer.status_code == 400 and "context length is 2048 tokens" in answer.json()["error"]["message"]


@pytest.mark.parametrize("goes_back", [True, False], ids=["any model", "a recurrent one"])
def test_what_is_cached_is_what_was_not_read(
    goes_back: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each prompt, llama.cpp itself counts the tokens that it decodes. A recurrent model cannot go back to where two
    prompts part, so it reads the next one from its first token."""
    path = tiny_model("qwen3").write_gguf(tmp_path / "tiny.gguf")
    turn = chatparsers.load(path, format="qwen3").bind()
    engine = Local(path, context=512)
    if not goes_back:
        remove = engine._llama._ctx.kv_cache_seq_rm
        monkeypatch.setattr(
            engine._llama._ctx, "kv_cache_seq_rm", lambda id, at, end: at == 0 and remove(id, at, end)
        )
    decoded: list[int] = []
    decode = engine._llama._ctx.decode

    def counted(batch: Any) -> None:
        decoded.append(batch.batch.n_tokens)
        decode(batch)

    monkeypatch.setattr(engine._llama._ctx, "decode", counted)

    async def cached(prompt: list[int], most: int = 3) -> int:
        decoded.clear()
        job = Job(turn, prompt, max_tokens=most, sampling={"temperature": 0})
        ends = [batch.end async for batch in engine.generate(job) if batch.end is not None]
        assert {end.cached for end in ends} == {ends[0].cached}
        assert ends[0].cached == len(prompt) - sum(decoded) + (len(decoded) - 1)
        return int(ends[0].cached)

    async def talk() -> list[int]:
        one = [*range(3, 40)]
        found = [
            await cached(one),
            await cached([*one, 50, 51]),
            await cached([*one[:20], 60]),
            await cached(one, 1),
        ]
        await engine.close()
        return found

    assert asyncio.run(talk()) == ([0, 37, 20, 20] if goes_back else [0, 0, 0, 0])


@pytest.mark.parametrize("given", [None, 1])
def test_some_processors_are_left_to_others(given: int | None, tmp_path: Path) -> None:
    """For prompts too, which llama-cpp-python reads with all processors unless told otherwise."""
    path = tiny_model("qwen3").write_gguf(tmp_path / "tiny.gguf")
    engine = Local(path, context=512, threads=given)
    most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wanted = given or max(most // 2, 1)
    assert (engine._llama.n_threads, engine._llama.n_threads_batch) == (wanted, wanted)
    asyncio.run(engine.close())


def test_a_session_has_the_models_own_log_probabilities(tmp_path: Path) -> None:
    """llama.cpp itself, asked again over each exported row, says of each id that counts what it said at sampling."""
    path = tiny_model("qwen3").write_gguf(tmp_path / "tiny.gguf")
    settings = Settings(rollouts=str(tmp_path / "rollouts"))
    server = Server(create_app(chatparsers.load(path, format="qwen3"), Local(path, context=2048), settings))
    tools = [{"type": "function", "function": F}]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "How is the weather?"}]
    try:
        for number in range(3):
            asked = {
                "tools": tools,
                "tool_choice": "required",
                "parallel_tool_calls": False,
                "max_tokens": 600,
            }
            found = ask(server, messages=messages, **asked, seed=number, temperature=0.9)
            assert found.status_code == 200, found.text
            assert number == 0 or found.headers["x-session-reason"] in ("exact", "thought")
            message = found.json()["choices"][0]["message"]
            results = [
                {"role": "tool", "tool_call_id": call["id"], "content": "cold"}
                for call in message["tool_calls"]
            ]
            messages += [message, *results]
        told = ask(server, logprobs=True, top_logprobs=3).json()["choices"][0]["logprobs"]
        for one in (one for found in told.values() for one in found or ()):
            tops = [top["logprob"] for top in one["top_logprobs"]]
            assert len(tops) == 3 and tops == sorted(tops, reverse=True) and one["logprob"] <= tops[0]
        samples = httpx2.get(f"{server.url}/sessions/shared/samples?twins=keep", timeout=60)
    finally:
        server.close()
    rows = [json.loads(line) for line in samples.text.splitlines()]
    llama = llama_cpp.Llama(str(path), n_ctx=2048, logits_all=True, verbose=False)
    counted = 0
    for row in rows:
        llama.reset()
        llama.eval(row["input_ids"])
        scores = llama.scores[: row["length"]].astype(np.float64)
        for at in (at for at, mask in enumerate(row["loss_mask"]) if mask):
            now = scores[at - 1] - scores[at - 1].max()
            now = now[row["input_ids"][at]] - np.log(np.exp(now).sum())
            assert row["logprobs"][at] == pytest.approx(now, abs=1e-3), at
            counted += 1
    assert (
        counted == json.loads(samples.headers["x-counted"]) == json.loads(samples.headers["x-sampled"]) > 60
    )
