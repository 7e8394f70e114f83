"""Budgets for thoughts and limits of calls: the gateway keeps to them before engines that know neither."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from itertools import chain, repeat
from typing import Any

import pytest
from scripted import WORD, Upstream, Wire, forced, llama_end, llama_piece, soon, sse
from servers import Server, tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

from chatparsers import get_format, list_formats
from chatparsers.chat.chat import Chat
from chatparsers.gateway import (
    VLLM,
    Batch,
    End,
    Engine,
    Job,
    LlamaServer,
    Settings,
    SGLang,
    create_app,
)
from chatparsers.gateway.budget import within_budget
from chatparsers.guide.closing import closers

FEATURES = {one.name: get_format(one.name).features for one in list_formats() if one.origin == "chatparsers"}
THINKING = [name for name, features in FEATURES.items() if features.reasoning and features.tools]
TOOL: dict[str, Any] = {
    "name": "f",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
}
TOOLS = [{"type": "function", "function": TOOL}]
ASK: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "tools": TOOLS}
ENDLESS = 400
"""A thought of so many words ends at no budget of these tests."""
FORMATS = {
    # How a thought is opened, its closer, and a call after it.
    "qwen3": ("<think>", "</think>", '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'),
    "gpt-oss": (
        "<|channel|>analysis<|message|>",
        "<|end|>",
        '<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": 1}<|call|>',
    ),
    "seed-oss": (
        "<seed:think>",
        "</seed:think>",
        "<seed:tool_call><function=f><parameter=a>1</parameter></function></seed:tool_call>",
    ),
    # Its prompt opens the thought.
    "minimax-m2": (
        "",
        "</think>",
        '<minimax:tool_call>\n<invoke name="f">\n<parameter name="a">1</parameter>\n</invoke>\n</minimax:tool_call>',
    ),
}


class Thinker(Engine):
    """Opens a thought and thinks without end. After the closer it writes ``after``, in pieces of three ids.

    ``jobs``: what it was asked. ``closed``: how many generators were closed before their end."""

    dialect = "structural_tag"
    ids = True

    def __init__(
        self,
        format: str,
        thought: str = WORD * ENDLESS,
        after: str | None = None,
        markers: tuple[str, str] | None = None,
    ) -> None:
        self.model = tiny_model(format)
        self.opener, self.closer, call = FORMATS.get(format, SECTIONS) if markers is None else (*markers, "")
        self.thought, self.after = (
            self._ids(self.opener + thought),
            self._ids(call if after is None else after),
        )
        self.close_id = self._ids(self.closer)[0]
        self.jobs: list[Job] = []
        self.closed = 0

    def _ids(self, text: str) -> list[int]:
        return list(self.model.tokenizer.encode(text, add_special_tokens=False).ids)

    async def start(self, chat: Chat) -> list[str]:
        return []

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        self.jobs.append(job)
        prompt, decode = job.prompt, self.model.tokenizer.decode
        text = prompt if isinstance(prompt, str) else decode(prompt[-16:], skip_special_tokens=False)
        closed = text.endswith(self.closer)
        wished = self.after if closed else self.thought
        ids = wished[: job.max_tokens]
        reason: Any = "length" if len(ids) < len(wished) else "stop"
        try:
            for begin in range(0, len(ids), 3):
                yield Batch(ids=ids[begin : begin + 3])
            yield Batch(end=End(reason, len(job.prompt), len(ids), 1))
        except GeneratorExit:
            self.closed += 1
            raise


def chunks(answer: httpx2.Response) -> list[dict[str, Any]]:
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


Found = tuple[str, list[str], int, int | None]
"""The thought, the arguments of the calls, the tokens of the answer and of its thoughts."""


def chat_answer(url: str, budget: int, stream: bool, **more: Any) -> Found:
    body = {**ASK, "thinking_budget_tokens": budget, "stream": stream, **more}
    body |= {"stream_options": {"include_usage": True}} if stream else {}
    answer = httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=20)
    assert answer.status_code == 200, answer.text
    if stream:
        found = chunks(answer)
        usage = found[-1]["usage"]
        parts = [one["choices"][0]["delta"] for one in found if one["choices"]]
        calls = [call["function"] for part in parts for call in part.get("tool_calls") or []]
        arguments = "".join(call.get("arguments", "") for call in calls)
        thought = "".join(part.get("reasoning_content") or "" for part in parts)
        listed = [arguments] if calls else []
    else:
        usage, message = answer.json()["usage"], answer.json()["choices"][0]["message"]
        thought = message.get("reasoning_content") or ""
        listed = [call["function"]["arguments"] for call in message.get("tool_calls") or []]
    details = usage["completion_tokens_details"]
    return thought, listed, usage["completion_tokens"], details["reasoning_tokens"]


def messages_answer(url: str, budget: int, stream: bool) -> Found:
    body = {
        **{"messages": ASK["messages"], "max_tokens": 300, "stream": stream},
        "tools": [{"name": "f", "input_schema": TOOL["parameters"]}],
        "thinking": {"type": "enabled", "budget_tokens": budget},
    }
    answer = httpx2.post(f"{url}/v1/messages", json=body, timeout=20)
    assert answer.status_code == 200, answer.text
    if stream:
        deltas = [one["delta"] for one in chunks(answer) if one["type"] == "content_block_delta"]
        thought = "".join(one.get("thinking", "") for one in deltas)
        arguments = "".join(one.get("partial_json", "") for one in deltas)
        usage = next(one["usage"] for one in chunks(answer) if one["type"] == "message_delta")
        return thought, [arguments], usage["output_tokens"], None
    found = answer.json()
    thought = "".join(block.get("thinking", "") for block in found["content"])
    calls = [json.dumps(block["input"]) for block in found["content"] if block["type"] == "tool_use"]
    return thought, calls, found["usage"]["output_tokens"], None


SECTIONS = "<|think|>", "<|act|>", '\n{"id":"a1b2c3d4e","type":"tool","name":"f","arguments":{"a": 1}}'
"""Of `smi`, whose thoughts have no closer: the next section ends them."""


@pytest.fixture(scope="module", params=FORMATS)
def thinker(request: Any) -> Iterator[tuple[Thinker, str]]:
    engine = Thinker(request.param)
    server = Server(create_app(engine.model.chat, engine))
    yield engine, server.url
    server.close()


@pytest.mark.parametrize("budget", [0, 1, 2, 3, 7])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("ask", [chat_answer, messages_answer])
def test_a_thought_takes_its_budget_and_no_more(
    ask: Callable[[str, int, bool], Found], stream: bool, budget: int, thinker: tuple[Thinker, str]
) -> None:
    engine, url = thinker
    engine.jobs, engine.closed = [], 0
    thought, calls, completion, reasoning = ask(url, budget, stream)
    assert thought == WORD * budget and reasoning in (None, budget)
    assert [json.loads(call) for call in calls] == [{"a": 1}]
    # The engine was stopped, and goes on after one closer. What the prompt opened is closed before it is asked.
    *before, last = engine.jobs
    assert len(before) == engine.closed == (1 if engine.opener or budget else 0)
    prompt = before[0].prompt if before else last.prompt[:-1]
    assert last.prompt[: len(prompt)] == prompt
    written = last.prompt[len(prompt) :]
    assert written == engine._ids(engine.opener + WORD * budget + engine.closer)
    assert completion == len(written) + len(engine.after)
    assert last.max_tokens is None or last.max_tokens == 300 - len(written)
    assert last.grammar is not None and all(
        last.grammar.text != job.grammar.text for job in before if job.grammar
    )


def served(serve: Callable[..., Any], engine: Thinker, settings: Settings | None = None) -> str:
    url: str = serve(create_app(engine.model.chat, engine, settings)).url
    return url


@pytest.mark.parametrize("budget", [0, 1, 5])
def test_a_section_ends_a_thought_that_has_no_closer(budget: int, serve: Callable[..., Any]) -> None:
    """It is over at the section's token, though only the call's name shows that it was one."""
    engine = Thinker("smi")
    url = served(serve, engine)
    thought, calls, completion, reasoning = chat_answer(url, budget, True, tool_choice="required")
    assert (thought, reasoning, [json.loads(call) for call in calls]) == (WORD * budget, budget, [{"a": 1}])
    assert len(engine.jobs) == 2 and completion == 1 + budget + 1 + len(engine.after)


def test_a_thought_within_its_budget_is_left_alone(serve: Callable[..., Any]) -> None:
    engine = Thinker("qwen3", thought=WORD * 5 + FORMATS["qwen3"][1] + FORMATS["qwen3"][2])
    url = served(serve, engine)
    for budget in (6, 5, 100):  # the closer counts: it is sampled
        engine.jobs, engine.closed = [], 0
        thought, calls, _, reasoning = chat_answer(url, budget, False)
        assert (thought, reasoning, len(calls)) == (WORD * 5, 5, 1)
        assert len(engine.jobs) == 1 + (budget == 5) and engine.closed == (budget == 5)


def test_all_thoughts_of_an_answer_share_the_budget(serve: Callable[..., Any]) -> None:
    """Where no grammar holds and the model begins another thought, it is closed as soon as it is opened."""
    again = "<think>" + WORD * 9 + "</think>"
    engine = Thinker("qwen3", thought=WORD * 2 + "</think>" + again, after=again + "Hi")
    thought, _, _, reasoning = chat_answer(served(serve, engine), 5, False, tools=[], max_tokens=40)
    # Two words and the closer that the model wrote, then two words.
    assert (thought.count(WORD), reasoning) == (4, 4)
    assert all(engine.close_id in job.prompt[-1:] for job in engine.jobs[1:])


def test_a_model_that_opens_thoughts_without_end_is_stopped(serve: Callable[..., Any]) -> None:
    """Each one that is closed costs a request to the engine."""
    engine = Thinker("qwen3", after="<think>" + WORD)
    body = {"messages": ASK["messages"], "thinking_budget_tokens": 0}
    found = httpx2.post(f"{served(serve, engine)}/v1/chat/completions", json=body, timeout=20).json()
    assert found["choices"][0]["finish_reason"] == "length" and len(engine.jobs) == 32
    assert found["usage"]["completion_tokens"] == 2 * 32


def test_a_prompt_of_text_goes_on_as_text(serve: Callable[..., Any]) -> None:
    """For an engine whose ids of a prompt may be others than ours."""
    engine = Thinker("gpt-oss")
    engine.takes_ids = False  # type: ignore[misc]
    thought, calls, _, reasoning = chat_answer(served(serve, engine), 3, True)
    first, second = (str(job.prompt) for job in engine.jobs)
    assert (thought, reasoning, [json.loads(call) for call in calls]) == (WORD * 3, 3, [{"a": 1}])
    assert second == first + engine.opener + WORD * 3 + engine.closer


def test_a_budget_waits_for_the_end_of_a_character(serve: Callable[..., Any]) -> None:
    engine = Thinker("qwen3", thought="😀" * 9, after="Hi")
    size = len(engine._ids("😀"))
    url = served(serve, engine)
    for budget in range(1, 2 * size + 1):
        thought, _, _, reasoning = chat_answer(url, budget, True)
        assert thought == "😀" * -(-budget // size) and reasoning == size * -(-budget // size)


def test_the_limit_of_the_answer_counts_all_its_tokens(serve: Callable[..., Any]) -> None:
    engine = Thinker("qwen3", after="Hi")
    url = served(serve, engine)
    for most in range(1, 9):
        engine.jobs = []
        body = {**ASK, "thinking_token_budget": 3, "max_tokens": most, "return_token_ids": True}
        choice = httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=20).json()["choices"][0]
        assert len(choice["token_ids"]) == min(most, 1 + 3 + 1 + len(engine.after))
        assert choice["finish_reason"] == ("length" if most < 5 + len(engine.after) else "stop")
        assert sum(job.max_tokens == 0 for job in engine.jobs) == 0


class Wired:
    """A server over HTTP that thinks without end, and after the closer says ``Hi``."""

    def __init__(self, kind: type[Engine]) -> None:
        self.kind, self.model = kind, tiny_model("qwen3")
        self.close_id = self.model.tokenizer.token_to_id("</think>")

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        if path in ("/v1/models", "/model_info"):
            await wire.head(200, "application/json")
            await wire.send(b'{"data": [{"id": "m", "max_model_len": 900}]}')
            await wire.end()
            return
        texts: Iterable[str]
        id, thinks = forced(body), False
        tokenizer, llama = self.model.tokenizer, self.kind is LlamaServer
        if id is not None or 1 in (body.get("n_predict"), body.get("max_tokens")):
            texts = ["a" if id is None else str(tokenizer.id_to_token(id))]
        elif body["prompt"][-1] == self.close_id:
            texts = ["Hi"]
        else:
            texts, thinks = chain(["<think>"], repeat(WORD)), True  # until it is stopped
        await wire.head()
        for text in texts:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            choice = {"index": 0, "text": text, "token_ids": ids, "finish_reason": None}
            await wire.send(llama_piece(text, ids) if llama else sse({"choices": [choice]}))
            await asyncio.sleep(0.001 if thinks else 0)
        usage = {"prompt_tokens": len(body["prompt"]), "completion_tokens": 2}
        ended = {"choices": [{"index": 0, "text": "", "finish_reason": "stop"}], "usage": usage}
        await wire.send(llama_end(prompt=len(body["prompt"]), completion=2) if llama else sse(ended))
        await wire.end()


@pytest.mark.parametrize("kind", [LlamaServer, VLLM, SGLang])
def test_servers_are_stopped_and_asked_to_go_on(
    kind: Any, upstream: Callable[..., Upstream], serve: Callable[..., Any]
) -> None:
    script = Wired(kind)
    engine = upstream(script, context=900)
    url = serve(create_app(script.model.chat, kind(engine.url))).url
    engine.requests.clear()
    body = {**ASK, "thinking_budget_tokens": 5, "max_tokens": 100}
    found = httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=20).json()
    message, usage = found["choices"][0]["message"], found["usage"]
    assert (message["reasoning_content"], message["content"]) == (WORD * 5, "Hi")
    (_, first), (_, second) = engine.requests
    soon(lambda: engine.left == 1)
    written = second["prompt"][len(first["prompt"]) :]
    assert usage["prompt_tokens"] == len(first["prompt"]) and usage["completion_tokens"] == 2 + len(written)
    most = "n_predict" if kind is LlamaServer else "max_tokens"
    assert (first[most], second[most]) == (100, 100 - len(written))


def post(url: str, path: str, **body: Any) -> tuple[int, Any]:
    answer = httpx2.post(f"{url}/v1/{path}", json=body, timeout=20)
    return answer.status_code, (answer.json().get("error") or {}).get("param")


def test_what_cannot_be_kept_to_is_refused(serve: Callable[..., Any]) -> None:
    """An engine that gives no ids, and one that takes no grammar."""
    engine = Thinker("qwen3", thought="</think>Hi")
    engine.ids, engine.dialect = False, None  # type: ignore[misc, assignment]
    engine.generate = spoken  # type: ignore[method-assign]
    chat = {"messages": ASK["messages"]}
    url, drops = served(serve, engine), served(serve, engine, Settings(drop_unsupported=True))
    for field in ("thinking_budget_tokens", "thinking_token_budget"):
        for value, status in ((5, 400), (0, 400), (-1, 200), (None, 200)):
            wanted = (status, field if status == 400 else None)
            assert post(url, "chat/completions", **chat, **{field: value}) == wanted
        assert post(drops, "chat/completions", **chat, **{field: 5}) == (200, None)
    assert post(url, "responses", input="Hi", max_tool_calls=2) == (400, "max_tool_calls")
    assert post(drops, "responses", input="Hi", max_tool_calls=2) == (200, None)
    # A hint, which clients send to every model.
    thinking = {"type": "enabled", "budget_tokens": 5}
    assert post(url, "messages", **chat, max_tokens=9, thinking=thinking) == (200, None)


async def spoken(job: Job) -> AsyncGenerator[Batch, None]:
    yield Batch("Hi", end=End())


def test_a_budget_that_is_none(serve: Callable[..., Any]) -> None:
    url = served(serve, Thinker("qwen3"))
    chat = {"messages": ASK["messages"]}
    two = {"thinking_budget_tokens": 5, "thinking_token_budget": 6}
    assert post(url, "chat/completions", **chat, **two) == (400, "thinking_token_budget")
    assert post(url, "chat/completions", **chat, thinking_token_budget="x") == (400, "thinking_token_budget")
    thinking = {"type": "enabled", "budget_tokens": -1}
    answer = httpx2.post(f"{url}/v1/messages", json={**chat, "max_tokens": 9, "thinking": thinking})
    assert (
        answer.status_code == 400 and "thinking.budget_tokens: expected" in answer.json()["error"]["message"]
    )
    asked = {**chat, "thinking_budget_tokens": 5, "logprobs": True}
    assert post(url, "chat/completions", **asked)[0] == 400


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_max_tool_calls_is_in_the_grammar(choice: str, serve: Callable[..., Any]) -> None:
    engine = Thinker("qwen3", thought="</think>" + FORMATS["qwen3"][2])
    url = served(serve, engine)
    asked = {"input": "Hi", "tools": [{"type": "function", **TOOL}], "tool_choice": choice}
    assert post(url, "responses", **asked, max_tool_calls=2) == (200, None)
    turn = engine.model.chat.prepare(
        [{"role": "user", "content": "Hi"}], tools=TOOLS, tool_choice=choice, max_calls=2
    )
    (job,) = engine.jobs
    assert job.grammar is not None and job.grammar.text == str(turn.grammar("structural_tag"))
    assert job.grammar.text != str(turn.grammar("structural_tag", max_calls=3))
    assert post(url, "responses", **asked, max_tool_calls=0) == (400, "max_tool_calls")


@pytest.mark.parametrize("name", THINKING)
@pytest.mark.parametrize("dialect", ["gbnf", "structural_tag"])
def test_the_thoughts_of_every_format(name: str, dialect: Any) -> None:
    """Each is ended once, where its budget ends, and the call after it is whole."""
    format, call = get_format(name), {"name": "f", "arguments": '{"a": 1}'}
    tools = [{**TOOL, "parameters": {**TOOL["parameters"], "required": ["a"]}}]
    asked = {
        "reasoning_content": WORD,
        "content": None,
        "tool_calls": [{"type": "function", "function": call}],
    }
    opener, rest = format.render(asked, tools).split(WORD)
    turn = format.bind(
        tools=tools, tokenizer=tiny_model(name).tokenizer, tool_choice="required", prefix=opener
    )
    closer = max((one for one in closers(turn, "reasoning") if rest.strip().startswith(one)), key=len)
    for budget in (0, 1, 7):
        engine = Thinker(name, after=rest.strip().removeprefix(closer), markers=("", closer))
        engine.dialect = dialect  # type: ignore[misc]
        job = Job(turn, [], engine.grammar(turn), thinking_tokens=budget)
        ids = asyncio.run(all_ids(within_budget(engine, job)))
        found = turn.parse(ids)
        assert found.reasoning == WORD * budget and len(engine.jobs) == 1 + (budget > 0)
        assert [one.parsed_arguments for one in found.tool_calls] == [{"a": 1}] and not found.diagnostics


async def all_ids(batches: AsyncGenerator[Batch, None]) -> list[int]:
    return [id async for batch in batches for id in batch.ids or ()]
