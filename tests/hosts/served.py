"""Runs through a gateway: the real clients of three APIs ask it, and what they rebuild is compared with the ids."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from typing import Any

import httpx2
import pytest
from servers import Server
from tinies import MESSAGES, RUNS, TOOLS, Table

import chatparsers
from chatparsers.gateway import Batch, Job, Settings, create_app
from chatparsers.gateway.http_engine import HttpEngine
from chatparsers.tokens import Vocabulary

APIS = ("chat", "responses", "messages")
_ASK = MESSAGES[0]["content"]


class Gateway:
    """A gateway on a port before ``engine``, which is at a port too. ``ids`` has what the last answer was made of."""

    def __init__(self, chat: chatparsers.Chat, engine: HttpEngine, **settings: Any) -> None:
        self.chat, self.engine = chat, engine
        self.ids: list[int] = []
        self.turn: Any = None
        generate = engine.generate

        async def recorded(job: Job) -> AsyncGenerator[Batch, None]:
            self.turn, self.ids = job.turn, []
            async for batch in generate(job):
                self.ids += batch.ids or ()
                yield batch

        engine.generate = recorded  # type: ignore[method-assign]
        self.server = Server(create_app(chat, engine, Settings(model="tiny", **settings)))
        self.url = self.server.url

    @property
    def whole(self) -> chatparsers.Message:
        """The parse of all ids of the last answer at once."""
        found: chatparsers.Message = self.turn.parse(self.ids)
        return found

    def close(self) -> None:
        self.server.close()


def ask(url: str, api: str, stream: bool, **more: Any) -> dict[str, Any]:
    """One request by the client of an API. ``more``: fields of a chat-completions request, put into that API's form."""
    return {"chat": _chat, "responses": _responses, "messages": _messages}[api](url, stream, dict(more))


def plain(message: chatparsers.Message) -> dict[str, Any]:
    calls = [(call.name, call.arguments) for call in message.tool_calls]
    return {"reasoning": message.reasoning, "content": message.content, "calls": calls}


def check_runs(label: str, gateway: Gateway, choice: str, runs: int = RUNS, **more: Any) -> None:
    """Runs over the three APIs, streamed and whole: each is complete, valid and equal to the parse of all its ids."""
    table = Table()
    for seed in range(runs):
        api, stream = APIS[seed % 3], seed % 2 == 0
        answer = ask(
            gateway.url, api, stream, tools=TOOLS, tool_choice=choice, max_tokens=2500, seed=seed, **more
        )
        whole = gateway.whole
        wanted = plain(whole)
        if api == "messages":  # its clients read the arguments
            wanted["calls"] = [(name, json.loads(arguments)) for name, arguments in wanted["calls"]]
        seen = {name: answer[name] for name in wanted}
        table.add(whole, whole, choice == "required")
        table["equal"] -= seen != wanted
        if seen != wanted:
            table.failures.append(f"{api}, {stream=}, {seed=}: the client has {seen}, the ids are {wanted}")
    table.check(label, runs)


def check_recorded(gateway: Gateway, told: Callable[[int], Any]) -> None:
    """The rows of what was asked last have the engine's ids, and of each what the engine said. ``told``: of an id."""
    ask(gateway.url, "chat", True, tools=TOOLS, tool_choice="required", max_tokens=700, seed=5)
    sessions = httpx2.get(f"{gateway.url}/sessions", timeout=60).json()["data"]
    query = f"{gateway.url}/sessions/{sessions[0]['id']}/samples?twins=keep"
    rows = [json.loads(line) for line in httpx2.get(query, timeout=60).text.splitlines()]
    counted = [at for at, mask in enumerate(rows[-1]["loss_mask"]) if mask]
    ids = [rows[-1]["input_ids"][at] for at in counted]
    assert ids == gateway.ids
    assert [rows[-1]["logprobs"][at] for at in counted] == pytest.approx([told(id)[id].logprob for id in ids])


def check_told(gateway: Gateway, told: Callable[[int], Any]) -> None:
    """A client that asks for log probabilities has the engine's, with the texts of its tokens."""
    asked = {"tools": TOOLS, "tool_choice": "required", "max_tokens": 9}
    body = {"messages": MESSAGES, "logprobs": True, "top_logprobs": 2, "seed": 3, **asked}
    answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=60)
    assert answer.status_code == 200, answer.text
    said = answer.json()["choices"][0]["logprobs"]
    found = [one for kind in ("content", "reasoning", "tool_calls", "markup") for one in said.get(kind) or ()]
    assert len(found) == len(gateway.ids) == 9, (said, gateway.ids)
    pieces = Vocabulary.of(gateway.chat.tokenizer).pieces
    for id in gateway.ids:
        (own, *_), raw = [one.logprob for one in told(id).values()], pieces[id]
        raw = raw if isinstance(raw, bytes) else raw.encode()
        assert any(one["bytes"] == list(raw) and one["logprob"] == pytest.approx(own) for one in found)
    assert all(-0.5 in [top["logprob"] for top in one["top_logprobs"]] for one in found)


def _chat(url: str, stream: bool, asked: dict[str, Any]) -> dict[str, Any]:
    sdk = pytest.importorskip("openai", reason="the package openai is not installed")
    own = (
        "tools",
        "tool_choice",
        "parallel_tool_calls",
        "max_tokens",
        "temperature",
        "stop",
        "response_format",
    )
    body = {name: asked.pop(name) for name in own if name in asked}
    with sdk.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        given = {"model": "tiny", "messages": MESSAGES, **body, "extra_body": asked}
        if stream:
            with client.chat.completions.stream(**given, stream_options={"include_usage": True}) as events:
                try:
                    found = events.get_final_completion()
                except sdk.LengthFinishReasonError as cut:  # so this client says that an answer is cut off
                    found = cut.completion
        else:
            found = client.chat.completions.create(**given)
    said, choice = found.choices[0].message, found.choices[0]
    return {
        "reasoning": getattr(said, "reasoning", None) or "",
        "content": said.content or "",
        "calls": [(call.function.name, call.function.arguments) for call in said.tool_calls or ()],
        "reason": choice.finish_reason,
        "usage": (found.usage.prompt_tokens, found.usage.completion_tokens),
    }


def _responses(url: str, stream: bool, asked: dict[str, Any]) -> dict[str, Any]:
    sdk = pytest.importorskip("openai", reason="the package openai is not installed")
    body: dict[str, Any] = {"model": "tiny", "input": _ASK}
    if "tools" in asked:
        body["tools"] = [{"type": "function", **tool["function"]} for tool in asked.pop("tools")]
    for name, theirs in (("max_tokens", "max_output_tokens"), ("tool_choice", "tool_choice")):
        if name in asked:
            body[theirs] = asked.pop(name)
    with sdk.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
        given = {**body, "extra_body": asked}
        if stream:
            with client.responses.stream(
                **given
            ) as events:  # its final answer is only one that was not cut off
                last = [event for event in events][-1]
            assert last.type in ("response.completed", "response.incomplete"), last
            found = last.response
        else:
            found = client.responses.create(**given)
    items = {
        kind: [item for item in found.output if item.type == kind] for kind in ("reasoning", "function_call")
    }
    return {
        "reasoning": "".join(part.text for item in items["reasoning"] for part in item.content),
        "content": found.output_text,
        "calls": [(item.name, item.arguments) for item in items["function_call"]],
        "reason": found.status,
        "usage": (found.usage.input_tokens, found.usage.output_tokens),
    }


def _messages(url: str, stream: bool, asked: dict[str, Any]) -> dict[str, Any]:
    sdk = pytest.importorskip("anthropic", reason="the package anthropic is not installed")
    body: dict[str, Any] = {"model": "tiny", "messages": MESSAGES, "max_tokens": asked.pop("max_tokens", 500)}
    if "tools" in asked:
        body["tools"] = [
            {"name": tool["function"]["name"], "input_schema": tool["function"]["parameters"]}
            for tool in asked.pop("tools")
        ]
    if "tool_choice" in asked:
        body["tool_choice"] = {
            "type": {"required": "any"}.get(asked["tool_choice"], asked.pop("tool_choice"))
        }
        asked.pop("tool_choice", None)
    with sdk.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
        given = {**body, "extra_body": asked}
        if stream:
            with client.messages.stream(**given) as events:
                found = events.get_final_message()
        else:
            found = client.messages.create(**given)
    cached = found.usage.cache_read_input_tokens or 0  # this API counts these apart
    return {
        "reasoning": "".join(block.thinking for block in found.content if block.type == "thinking"),
        "content": "".join(block.text for block in found.content if block.type == "text"),
        "calls": [(block.name, block.input) for block in found.content if block.type == "tool_use"],
        "reason": found.stop_reason,
        "usage": (found.usage.input_tokens + cached, found.usage.output_tokens),
    }
