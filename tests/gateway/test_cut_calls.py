"""A call that was cut off is finished by the next request, in all three APIs, wherever it was cut."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from random import Random
from typing import Any

import pytest
from servers import Server, tiny_model
from tool_schemas import WRITE_FILE

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2

from chatparsers import get_format, list_formats
from chatparsers.chat.chat import Chat
from chatparsers.gateway import Batch, End, Engine, Job, Settings, create_app

FORMATS = [
    one.name for one in list_formats() if one.origin == "chatparsers" and get_format(one.name).features.tools
]
TOOLS = [{"type": "function", "function": WRITE_FILE}]
ARGUMENTS = [
    {"path": "a.py"},
    {"path": "b.py", "lines": 12, "text": 'def f():\n    return "é 😀"\n', "tags": ["x y", "z"]},
]
ASK = [{"role": "user", "content": "Write both."}]


class Writer(Engine):
    """Writes one answer, and goes on with it where a prompt ends in its beginning. ``jobs``: what it was asked."""

    dialect = "lark"
    ids = True

    def __init__(self, format: str, number: int) -> None:
        self.model = tiny_model(format)
        calls = [
            {
                "type": "function",
                "id": f"abcdefgh{index}",
                "function": {**named, "arguments": json.dumps(one)},
            }
            for index, one in enumerate(ARGUMENTS[-number:])
            for named in [{"name": "write_file"}]
        ]
        turn = self.model.chat.prepare(ASK, tools=TOOLS)
        said: dict[str, Any] = {"role": "assistant", "tool_calls": calls}
        if turn.stream().region == "reasoning":
            text = turn.format.render({**said, "reasoning_content": "Hm."}, TOOLS)
            self.text = text[text.index("Hm.") :]
        else:
            self.text = turn.format.render(said, TOOLS).removeprefix(turn.prefix)
        self.jobs: list[Job] = []

    def encoded(self, text: str) -> list[int]:
        return list(self.model.tokenizer.encode(text, add_special_tokens=False).ids)

    async def start(self, chat: Chat) -> list[str]:
        return []

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        self.jobs.append(job)
        prompt = job.prompt
        if not isinstance(prompt, str):
            prompt = self.model.tokenizer.decode(prompt, skip_special_tokens=False)
        prompt, text = _without_ids(prompt), _without_ids(self.text)
        written = next(size for size in range(len(text), -1, -1) if prompt.endswith(text[:size]))
        ids = self.encoded(self.text[written:])
        cut = job.max_tokens is not None and job.max_tokens < len(ids)
        yield Batch(ids=ids[: job.max_tokens])
        yield Batch(end=End("length" if cut else "stop", len(job.prompt), None))


def _without_ids(text: str) -> str:
    """The same, for the client has an id before the model writes it."""
    return re.sub(r'(?<="id": ")\w{1,9}', lambda found: "#" * len(found[0]), text)


Served = Callable[[str, int], tuple[Writer, str]]


@pytest.fixture
def served() -> Iterator[Served]:
    """``served(format, number)``: an engine that writes so many calls, and the gateway before it."""
    made: list[Server] = []

    def make(format: str, number: int) -> tuple[Writer, str]:
        engine = Writer(format, number)
        made.append(Server(create_app(engine.model.chat, engine, Settings(store="memory"))))
        return engine, made[-1].url

    yield make
    for server in made:
        server.close()


Call = tuple[str, str]
"""The id and the arguments of a call."""
Answer = tuple[Any, list[Call], bool]
"""What a client sends back of an answer, its calls, and whether it was cut off."""


def chat(url: str, begun: Any, most: int | None, stream: bool) -> Answer:
    body: dict[str, Any] = {"messages": ASK, "tools": TOOLS, "max_tokens": most, "stream": stream}
    if begun:
        flags = {"continue_final_message": True, "add_generation_prompt": False}
        body |= {"messages": [*ASK, begun], **flags}
    answer = httpx2.post(f"{url}/v1/chat/completions", json=body, timeout=20)
    assert answer.status_code == 200, answer.text
    if stream:
        choices = [one["choices"][0] for one in events(answer)]
        message: dict[str, Any] = {"role": "assistant", "content": "", "reasoning": "", "tool_calls": []}
        for delta in [one["delta"] for one in choices]:
            for name in ("content", "reasoning"):
                message[name] += delta.get(name) or ""
            for call in delta.get("tool_calls") or []:
                if "id" in call:
                    message["tool_calls"].append(call)
                else:
                    message["tool_calls"][-1]["function"]["arguments"] += call["function"]["arguments"]
        reason = choices[-1]["finish_reason"]
    else:
        choice = answer.json()["choices"][0]
        message, reason = choice["message"], choice["finish_reason"]
    calls = [(one["id"], one["function"]["arguments"]) for one in message.get("tool_calls") or []]
    # Text between calls has no place in this API: what was cut off in it cannot go on.
    return {} if calls and message["content"] else message, calls, reason == "length"


def events(answer: httpx2.Response) -> list[dict[str, Any]]:
    lines = [line[6:] for line in answer.text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


ITEMS = {"tools": [{"type": "function", **WRITE_FILE}]}


def responses(url: str, begun: Any, most: int | None, stream: bool) -> Answer:
    """The whole input is sent again. An item that was cut off says so."""
    found = respond(url, most, stream, input=[*ASK, *(begun or ())])
    return found["output"], calls_of(found), found["status"] == "incomplete"


def kept_responses(url: str, begun: Any, most: int | None, stream: bool) -> Answer:
    """The server has the answer, and its ids."""
    more = {"previous_response_id": begun} if begun else {"input": ASK}
    found = respond(url, most, stream, **more)
    return found["id"], calls_of(found), found["status"] == "incomplete"


def respond(url: str, most: int | None, stream: bool, **more: Any) -> dict[str, Any]:
    body = {**ITEMS, "max_output_tokens": most, "stream": stream, **more}
    answer = httpx2.post(f"{url}/v1/responses", json=body, timeout=20)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = events(answer)[-1]["response"] if stream else answer.json()
    return found


def calls_of(response: dict[str, Any]) -> list[Call]:
    items = [one for one in response["output"] if one["type"] == "function_call"]
    if response["status"] == "incomplete" and items and items[-1].get("status") != "incomplete":
        return []  # nothing is open, or text between calls
    return [(one["call_id"], one["arguments"]) for one in items]


def messages(url: str, begun: Any, most: int | None, stream: bool) -> Answer:
    """Arguments that come as they are written, whole or not; sent back as the API's pages say."""
    tool = {
        "name": WRITE_FILE["name"],
        "input_schema": WRITE_FILE["parameters"],
        "eager_input_streaming": True,
    }
    body = {"messages": [*ASK, *(begun or ())], "tools": [tool], "max_tokens": most or 999, "stream": True}
    answer = httpx2.post(f"{url}/v1/messages", json=body, timeout=20)
    assert answer.status_code == 200, answer.text
    blocks: list[Any] = []
    reason = None
    for event in events(answer):
        if event["type"] == "content_block_start":
            blocks.append({**event["content_block"], "json": ""})
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            for name, kind in (("json", "partial_json"), ("text", "text"), ("thinking", "thinking")):
                if kind in delta:
                    blocks[-1][name] += delta[kind]
        elif event["type"] == "message_delta":
            reason = event["delta"]["stop_reason"]
    calls = [(one["id"], one["json"]) for one in blocks if one["type"] == "tool_use"]
    for block in blocks:
        text = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(text) if is_json(text) else {"INVALID_JSON": text}
    mixed = calls and any(one["type"] == "text" for one in blocks)
    mixed = mixed or (calls and is_json(calls[-1][1]))  # it says that nothing is open
    return [] if mixed else [{"role": "assistant", "content": blocks}], calls, reason == "max_tokens"


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def joined(before: list[Call], after: list[Call]) -> list[Call]:
    """The calls of both answers: the one that was cut off comes again, whole."""
    known = {id for id, _ in after}
    return [call for call in before if call[0] not in known] + after


@pytest.mark.one_in(32)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("ask", [chat, responses, kept_responses, messages])
@pytest.mark.parametrize("format", FORMATS)
def test_the_next_request_finishes_the_call(
    format: str, ask: Callable[..., Answer], number: int, served: Served, amount: Callable[..., int]
) -> None:
    if number > 1 and not get_format(format).features.parallel:
        pytest.skip("the format has one call")
    engine, url = served(format, number)
    size = len(engine.encoded(engine.text))
    for most in sorted(Random(format).sample(range(1, size), amount(2, 4, 30))):
        stream = bool(most % 2)
        sent, before, cut = ask(url, None, most, stream)
        assert cut
        if not before or not sent:
            continue
        _, after, cut = ask(url, sent, None, stream)
        assert not cut
        calls = joined(before, after)
        assert [json.loads(one) for _, one in calls] == ARGUMENTS[-number:], (most, sent)
        assert len({id for id, _ in calls}) == number
        assert engine.jobs[-1].grammar is not None
