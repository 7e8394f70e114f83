"""Budgets for thoughts and limits of calls: the gateway keeps to them before engines that know neither."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from itertools import chain, repeat
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from scripted import WORD, Upstream, Wire, forced, llama_end, llama_piece, soon, sse
from servers import Server, tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from three_apis import WAYS, post, told, tools_of

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


Found = tuple[str, list[str], int, int | None, str]
"""The thought, the arguments of the calls, the tokens of the answer and of its thoughts, and why it ended."""


def chat_answer(url: str, budget: int, stream: bool, **more: Any) -> Found:
    body = {**ASK, "thinking_budget_tokens": budget, "stream": stream, **more}
    body |= {"stream_options": {"include_usage": True}} if stream else {}
    answer = httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=20)
    assert answer.status_code == 200, answer.text
    if stream:
        found = chunks(answer)
        usage, reason = found[-1]["usage"], found[-2]["choices"][0]["finish_reason"]
        parts = [one["choices"][0]["delta"] for one in found if one["choices"]]
        calls = [call["function"] for part in parts for call in part.get("tool_calls") or []]
        arguments = "".join(call.get("arguments", "") for call in calls)
        thought = "".join(part.get("reasoning_content") or "" for part in parts)
        listed = [arguments] if calls else []
    else:
        usage, choice = answer.json()["usage"], answer.json()["choices"][0]
        message, reason = choice["message"], choice["finish_reason"]
        thought = message.get("reasoning_content") or ""
        listed = [call["function"]["arguments"] for call in message.get("tool_calls") or []]
    details = usage["completion_tokens_details"]
    return thought, listed, usage["completion_tokens"], details["reasoning_tokens"], reason


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
        last = next(one for one in chunks(answer) if one["type"] == "message_delta")
        return thought, [arguments], last["usage"]["output_tokens"], None, last["delta"]["stop_reason"]
    found = answer.json()
    thought = "".join(block.get("thinking", "") for block in found["content"])
    calls = [json.dumps(block["input"]) for block in found["content"] if block["type"] == "tool_use"]
    return thought, calls, found["usage"]["output_tokens"], None, found["stop_reason"]


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
    thought, calls, completion, reasoning, reason = ask(url, budget, stream)
    assert reason in ("tool_calls", "tool_use")
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


OPEN, CLOSER, CALL = FORMATS["qwen3"]
AGAIN = f"{OPEN}{WORD * 9}{CLOSER}"
FACE = "😀"
FACES = len(tiny_model("qwen3").tokenizer.encode(FACE, add_special_tokens=False).ids)


class Case(NamedTuple):
    """An engine's answer, and what a client reads of it.

    ``format``, ``thought``, ``after``: see `Thinker`. ``more``: of the request. ``ids``: whether a prompt may be ids.
    ``read``: the thought, how many tokens it counts, and how many calls there are. ``jobs``: how often the engine is
    asked; ``completion``: how many tokens the answer has; None: any.
    ``reason``: why it ends, if that is neither a call nor the end of a text."""

    budget: int
    read: tuple[str, int, int]
    jobs: int
    format: str = "qwen3"
    thought: str = WORD * ENDLESS
    after: str | None = None
    more: Mapping[str, Any] = MappingProxyType({})
    ids: bool = True
    completion: int | None = None
    reason: str = ""


CASES = {
    # It is over at the section's token, though only the call's name shows that it was one.
    **{
        f"a section ends a thought of {budget} that has no closer": Case(
            budget, (WORD * budget, budget, 1), 2, "smi", more={"tool_choice": "required"}
        )
        for budget in (0, 1, 5)
    },
    # The closer counts: it is sampled.
    **{
        f"a thought within its budget of {budget}": Case(
            budget, (WORD * 5, 5, 1), 1 + (budget == 5), thought=WORD * 5 + CLOSER + CALL
        )
        for budget in (5, 6, 100)
    },
    # Where no grammar holds and the model begins another thought, it is closed as soon as it is opened: two words and
    # the closer that the model wrote, then two words.
    "all thoughts of an answer share the budget": Case(
        5,
        (WORD * 4, 4, 0),
        17,
        thought=WORD * 2 + CLOSER + AGAIN,
        after=f"{AGAIN}Hi",
        more={"tools": [], "max_tokens": 40},
        reason="length",
    ),
    # Each one that is closed costs a request to the engine.
    "thoughts without end": Case(
        0, ("", 0, 0), 32, after=OPEN + WORD, more={"tools": []}, completion=2 * 32, reason="length"
    ),
    # For an engine whose ids of a prompt may be others than ours.
    "a prompt of text goes on as text": Case(3, (WORD * 3, 3, 1), 2, "gpt-oss", ids=False),
    **{
        f"a budget of {budget} waits for the end of a character": Case(
            budget,
            (FACE * -(-budget // FACES), FACES * -(-budget // FACES), 0),
            2,
            thought=FACE * 9,
            after="Hi",
        )
        for budget in range(1, 2 * FACES + 1)
    },
}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", CASES)
def test_where_thoughts_end(name: str, stream: bool, serve: Callable[..., Any]) -> None:
    case = CASES[name]
    engine = Thinker(case.format, case.thought, case.after)
    engine.takes_ids = case.ids  # type: ignore[misc]
    thought, calls, completion, reasoning, reason = chat_answer(
        served(serve, engine), case.budget, stream, **case.more
    )
    assert (thought.replace("\n", ""), reasoning, len(calls)) == case.read
    assert [json.loads(call) for call in calls] == [{"a": 1}] * len(calls)
    assert len(engine.jobs) == case.jobs and completion == (case.completion or completion)
    assert reason == (case.reason or ("tool_calls" if calls else "stop"))
    assert engine.closed == case.jobs - (reason != "length"), "each job but the last was stopped"
    first, *later = [job.prompt for job in engine.jobs]
    for prompt in later:
        assert isinstance(prompt, str) is not case.ids and prompt[: len(first)] == first
        closed = engine.closer if isinstance(prompt, str) else [engine.close_id]
        assert prompt[-len(closed) :] == closed, "it goes on after one closer"


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


async def spoken(job: Job) -> AsyncGenerator[Batch, None]:
    yield Batch("Hi", end=End())


HINT = {"thinking": {"type": "enabled", "budget_tokens": 5}}
REFUSED: list[tuple[bool, str, dict[str, Any], str | None]] = [
    # An engine that gives no ids and takes no grammar, what is asked of which API, and the field that is refused.
    *((False, "chat", {name: 5}, name) for name in ("thinking_budget_tokens", "thinking_token_budget")),
    *((False, "chat", {name: 0}, name) for name in ("thinking_budget_tokens", "thinking_token_budget")),
    *((False, "chat", {name: -1}, None) for name in ("thinking_budget_tokens", "thinking_token_budget")),
    *((False, "chat", {name: None}, None) for name in ("thinking_budget_tokens", "thinking_token_budget")),
    (False, "responses", {"max_tool_calls": 2}, "max_tool_calls"),
    (False, "messages", HINT, None),  # clients send it to every model
    # An engine that has both.
    (True, "chat", {"thinking_budget_tokens": 5, "thinking_token_budget": 6}, "thinking_token_budget"),
    (True, "chat", {"thinking_token_budget": "x"}, "thinking_token_budget"),
    (True, "chat", {"thinking_budget_tokens": 5, "logprobs": True}, "logprobs"),
    (True, "messages", {"thinking": {"type": "enabled", "budget_tokens": -1}}, "thinking.budget_tokens"),
    (True, "responses", {"max_tool_calls": 0}, "max_tool_calls"),
]


def test_what_cannot_be_kept_to_is_refused(serve: Callable[..., Any]) -> None:
    """Or left out, where the server was told so."""
    urls = {}
    for able in (True, False):
        engine = Thinker("qwen3", thought="</think>Hi")
        if not able:
            engine.ids, engine.dialect, engine.generate = False, None, spoken  # type: ignore[misc, assignment, method-assign]
        urls[able] = [served(serve, engine, Settings(drop_unsupported=drops)) for drops in (False, True)]
    for able, api, body, field in REFUSED:
        answer = post(urls[able][0], api, **body)
        error, where = told(api, answer).error, f"{api} {body}: {answer.text}"
        assert answer.status_code == (200 if field is None else 400), where
        if error is not None:
            assert field in (error.get("param"), error["message"].partition(": ")[0]), where
        if not able:
            assert post(urls[able][1], api, **body).status_code == 200, where


@pytest.mark.parametrize("more", [{}, {"tools": TOOLS}, {"tools": TOOLS, "tool_choice": "required"}])
def test_an_engine_that_gives_no_ids_counts_by_its_grammar(
    more: dict[str, Any], serve: Callable[..., Any]
) -> None:
    engine = Thinker("qwen3", thought="</think>Hi")
    engine.ids, jobs = False, []

    async def heard(job: Job) -> AsyncGenerator[Batch, None]:
        jobs.append(job)
        yield Batch("<think>a</think>Hi", end=End())

    engine.generate = heard  # type: ignore[method-assign]
    answer = post(served(serve, engine), "chat", thinking_token_budget=5, **more)
    assert answer.status_code == 200, answer.text
    (job,) = jobs
    turn = engine.model.chat.prepare([{"role": "user", "content": "Hi"}], **more)
    wanted = turn.grammar("structural_tag", thinking_tokens=5, token_references=False)
    assert (
        job.thinking_tokens is None and job.grammar.text == str(wanted) and "max_tokens=5" in job.grammar.text
    )
    refused = post(served(serve, engine, Settings(grammar=False)), "chat", thinking_token_budget=5, **more)
    assert told("chat", refused).error["param"] == "thinking_token_budget"


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_max_tool_calls_is_in_the_grammar(choice: str, serve: Callable[..., Any]) -> None:
    engine = Thinker("qwen3", thought="</think>" + FORMATS["qwen3"][2])
    url = served(serve, engine)
    asked = {"input": "Hi", "tools": [{"type": "function", **TOOL}], "tool_choice": choice}
    assert post(url, "responses", **asked, max_tool_calls=2).status_code == 200
    turn = engine.model.chat.prepare(
        [{"role": "user", "content": "Hi"}], tools=TOOLS, tool_choice=choice, max_calls=2
    )
    (job,) = engine.jobs
    assert job.grammar is not None and job.grammar.text == str(turn.grammar("structural_tag"))
    assert job.grammar.text != str(turn.grammar("structural_tag", max_calls=3))


@pytest.mark.one_in(8)
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


def looped(url: str, api: str, stream: bool, **more: Any) -> tuple[Any, str | None, str]:
    """What an answer tells, the header of what stopped it, and why it ended."""
    answer = post(url, api, stream=stream, **more)
    reason = re.search(r'"(?:finish_reason|stop_reason|reason)": ?"(\w+)"', answer.text)
    return told(api, answer), answer.headers.get("x-chatparsers-loop"), reason[1] if reason else ""


LIMIT = {"chat": "length", "responses": "max_output_tokens", "messages": "max_tokens"}


@pytest.mark.parametrize(("api", "stream"), WAYS)
def test_a_thought_that_repeats(api: str, stream: bool, serve: Callable[..., Any], tmp_path: Path) -> None:
    """It is told, or closed, or ends the answer."""
    engine, log = Thinker("qwen3", after="Hi"), tmp_path / "log"
    for mode in ("off", "tell", "close", "stop"):
        engine.jobs, engine.closed = [], 0
        url = served(serve, engine, Settings(loops=mode, log=str(log)))  # type: ignore[arg-type]
        found, header, reason = looped(url, api, stream, **({"max_tokens": 900} if api == "messages" else {}))
        line = json.loads(log.read_text().splitlines()[-1])
        assert line.get("diagnostics", {}).get("repeated-text", 0) == (mode != "off")
        thought = WORD * ENDLESS
        assert thought.startswith(found.reasoning) and (found.reasoning == thought) == (
            mode in ("off", "tell")
        )
        assert found.content == ("Hi" if mode == "close" else "") and len(engine.jobs) == 1 + (
            mode == "close"
        )
        assert (reason == LIMIT[api]) == (mode == "stop") and line.get("loop") == (
            "repeated-text" if mode == "stop" else None
        )
        assert stream or header == line.get("loop")


@pytest.mark.parametrize(("api", "stream"), WAYS)
def test_a_turn_that_repeats(api: str, stream: bool, serve: Callable[..., Any], tmp_path: Path) -> None:
    """The same call with the same result is told from three times on. Who stops at five need not ask the engine."""
    engine, log = Thinker("qwen3", thought="</think>Hi"), tmp_path / "log"
    url = served(serve, engine, Settings(loops="stop", log=str(log)))

    def seen(times: int, *after: str) -> tuple[int, str | None, str]:
        engine.jobs = []
        more = conversation(api, times, *after)
        found, header, reason = looped(url, api, stream, **more)
        assert (found.content == "Hi") == bool(engine.jobs), found
        line = json.loads(log.read_text().splitlines()[-1])
        return line.get("diagnostics", {}).get("repeated-turn", 0), header, reason if header else ""

    assert [seen(times) for times in (1, 2, 3, 4)] == [(0, None, "")] * 2 + [(1, None, "")] * 2
    assert seen(5) == seen(6) == (1, "repeated-turn", LIMIT[api])
    assert seen(5, "Go on.") == (0, None, "")


def conversation(api: str, times: int, *after: str) -> dict[str, Any]:
    """So many rounds of the same call with the same result, and words of the user after it."""
    said = [{"role": "user", "content": text} for text in ("Hi", *after)]
    rounds: list[Any] = []
    for one in map(str, range(times)):
        function = {"name": "f", "arguments": '{"a": 1}'}
        rounds += {
            "chat": [
                {
                    "role": "assistant",
                    "content": one,
                    "tool_calls": [{"id": one, "type": "function", "function": function}],
                },
                {"role": "tool", "tool_call_id": one, "content": "no"},
            ],
            "responses": [
                {"type": "function_call", "call_id": one, **function},
                {"type": "function_call_output", "call_id": one, "output": "no"},
            ],
            "messages": [
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": one, "name": "f", "input": {"a": 1}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": one, "content": "no"}]},
            ],
        }[api]
    return {
        "input" if api == "responses" else "messages": [said[0], *rounds, *said[1:]],
        "tools": tools_of(api, TOOL),
    }
