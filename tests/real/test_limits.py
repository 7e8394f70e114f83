"""A real llama-server behind the gateway: budgets for thoughts, the number of calls, and calls that were cut off.

No small model here thinks. So the requests begin its thought, and it goes on with it under the format of Qwen3.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

pytest.importorskip("starlette", reason="the package starlette is not installed")

from processes import running

BEGUN = "Let me think about what the user wants, step by step, before I call a tool. First,"
WEATHER = {
    "name": "get_weather",
    "description": "Get the current weather of a city",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 20}},
        "required": ["city"],
    },
}
WRITE = {
    "name": "write_file",
    "description": "Write a file",
    "parameters": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "maxLength": 20},
            "text": {"type": "string", "minLength": 80, "maxLength": 160},
        },
        "required": ["path", "text"],
    },
}
CITIES = "What is the weather in Oslo, and what in Lima? Ask for both."
FILE = "Write a file haiku.txt with a poem of four lines about the sea."


@pytest.fixture(scope="module")
def gateway(real: Path, gguf: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a gateway that reads the model's answers as Qwen3's, and keeps responses."""
    flags = ["--format", "qwen3", "--store", "memory"]
    with running(real, gguf, tmp_path_factory.mktemp("logs"), [flags]) as (urls, _):
        yield urls[1]


def post(url: str, path: str, **body: Any) -> Any:
    answer = httpx2.post(f"{url}/v1/{path}", json={"temperature": 0, **body}, timeout=600)
    assert answer.status_code == 200, answer.text
    return answer.json()


def functions(*tools: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": tool} for tool in tools]


@pytest.mark.parametrize("budget", [0, 1, 12, 40])
@pytest.mark.parametrize("field", ["thinking_budget_tokens", "thinking_token_budget"])
def test_a_thought_keeps_its_budget(gateway: str, field: str, budget: int) -> None:
    begun = {"role": "assistant", "content": "", "reasoning_content": BEGUN}
    found = post(
        gateway,
        "chat/completions",
        messages=[{"role": "user", "content": CITIES}, begun],
        continue_final_message=True,
        tools=functions(WEATHER),
        tool_choice="required",
        parallel_tool_calls=False,
        return_token_ids=True,
        max_tokens=budget + 80,
        **{field: budget},
    )
    choice, usage = found["choices"][0], found["usage"]
    (call,) = choice["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"])["city"]
    thought = usage["completion_tokens_details"]["reasoning_tokens"]
    # The model may end its thought itself, in tokens of its own, and a character has up to four.
    assert thought <= budget + 3 and usage["completion_tokens"] == len(choice["token_ids"])
    print(f"{field}={budget}: {thought} tokens of thought, {usage['completion_tokens']} of the answer")


@pytest.mark.parametrize("budget", [1, 12])
def test_a_budget_of_the_messages_api(gateway: str, budget: int) -> None:
    thought = {"type": "thinking", "thinking": BEGUN, "signature": ""}
    found = post(
        gateway,
        "messages",
        messages=[{"role": "user", "content": CITIES}, {"role": "assistant", "content": [thought]}],
        tools=[{**WEATHER, "input_schema": WEATHER["parameters"]}],
        tool_choice={"type": "any", "disable_parallel_tool_use": True},
        max_tokens=budget + 80,
        thinking={"type": "enabled", "budget_tokens": budget},
    )
    *_, use = found["content"]
    assert use["type"] == "tool_use" and use["input"]["city"] and found["stop_reason"] == "tool_use"
    print(f"budget_tokens={budget}: {found['usage']['output_tokens']} tokens of the answer")


@pytest.mark.parametrize("most", [1, 2])
def test_the_number_of_calls(gateway: str, most: int) -> None:
    found = post(
        gateway,
        "responses",
        input=CITIES,
        tools=[{"type": "function", **WEATHER}],
        tool_choice="required",
        max_tool_calls=most,
        max_output_tokens=120,
    )
    calls = [item for item in found["output"] if item["type"] == "function_call"]
    assert 1 <= len(calls) <= most and found["status"] == "completed"
    print(f"max_tool_calls={most}: {len(calls)} calls")


Answer = tuple[Any, list[tuple[str, str]], bool]
"""What the next request goes on from, the calls with their ids, and whether the answer was cut off."""


def chat(url: str, begun: Any, most: int) -> Answer:
    more = {"continue_final_message": True, "add_generation_prompt": False} if begun else {}
    found = post(
        url,
        "chat/completions",
        messages=[{"role": "user", "content": FILE}, *([begun] if begun else [])],
        tools=functions(WRITE),
        tool_choice="required",
        parallel_tool_calls=False,
        max_tokens=most,
        **more,
    )["choices"][0]
    calls = [(one["id"], one["function"]["arguments"]) for one in found["message"].get("tool_calls") or []]
    return found["message"], calls, found["finish_reason"] == "length"


def responses(url: str, begun: Any, most: int) -> Answer:
    found = post(
        url,
        "responses",
        **({"previous_response_id": begun} if begun else {"input": FILE}),
        tools=[{"type": "function", **WRITE}],
        tool_choice="required",
        parallel_tool_calls=False,
        max_output_tokens=most,
    )
    items = [item for item in found["output"] if item["type"] == "function_call"]
    return found["id"], [(one["call_id"], one["arguments"]) for one in items], found["status"] == "incomplete"


@pytest.mark.parametrize("most", [16, 24])
@pytest.mark.parametrize("ask", [chat, responses])
def test_a_file_that_is_longer_than_the_limit_comes_whole(
    gateway: str, ask: Callable[..., Answer], most: int
) -> None:
    begun, ((id, text),), cut = ask(gateway, None, most)
    requests = 1
    while cut:
        begun, calls, cut = ask(gateway, begun, most)
        requests += 1
        assert requests < 12 and len(calls) <= 1
        for again, longer in calls:  # none, if only the end of a whole call was left
            # Half a character at the end of what came is written anew.
            assert again == id and longer.startswith(text.rstrip("\ufffd"))
            text = longer
    found = json.loads(text)
    assert 80 <= len(found["text"]) <= 160 and requests > 2
    print(f"{ask.__name__}, {most}: {requests} requests for {len(text)} characters")
