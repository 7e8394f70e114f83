"""The companies' own clients ask a real model through the gateway: what they rebuild, beside what llama-server's own
chat endpoint says to the same messages."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest
from served import APIS, ask

WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Get the current weather of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
GREEDY = {"temperature": 0, "max_tokens": 100}


def of_llama_server(running: Any, **body: Any) -> dict[str, Any]:
    """The message of llama-server's own chat endpoint."""
    answer = httpx2.post(f"{running.engine}/v1/chat/completions", json={**GREEDY, **body}, timeout=600)
    found: dict[str, Any] = answer.raise_for_status().json()["choices"][0]["message"]
    return found


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", APIS)
def test_an_answer_is_llama_servers_own(api: str, stream: bool, running: Any) -> None:
    question = {"role": "user", "content": "What is the weather in Oslo?"}  # what `ask` asks
    answer = ask(running.gateway, api, stream, **GREEDY)
    assert answer["content"] == of_llama_server(running, messages=[question])["content"]
    assert answer["calls"] == [] and not answer["reasoning"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("api", APIS)
def test_a_forced_call_is_right(api: str, stream: bool, running: Any) -> None:
    answer = ask(running.gateway, api, stream, tools=[WEATHER], tool_choice="required", **GREEDY)
    ((name, arguments),) = answer["calls"]
    found = arguments if isinstance(arguments, dict) else json.loads(arguments)
    assert (name, found["city"].partition(",")[0]) == ("get_weather", "Oslo")
    assert answer["reason"] in ("tool_calls", "completed", "tool_use")
    assert not answer["content"] and not answer["reasoning"]


def test_a_conversation_with_a_result_goes_on_as_in_llama_server(running: Any, openai: Any) -> None:
    called = {
        "id": "c1",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
    }
    messages: list[Any] = [
        {"role": "user", "content": "What is the weather in Oslo?"},
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c1", "content": "-4 °C, snow"},
    ]
    with openai.OpenAI(base_url=f"{running.gateway}/v1", api_key="none", max_retries=0) as client:
        found = client.chat.completions.create(model="x", messages=messages, tools=[WEATHER], **GREEDY)  # type: ignore[list-item]
    own = of_llama_server(running, messages=messages, tools=[WEATHER])
    assert found.choices[0].message.content == own["content"]
    assert not found.choices[0].message.tool_calls


def test_json_follows_its_schema(running: Any, openai: Any) -> None:
    fields = {"name": {"type": "string"}, "age": {"type": "integer"}}
    schema = {
        "type": "object",
        "properties": fields,
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    form: Any = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema, "strict": True}}
    with openai.OpenAI(base_url=f"{running.gateway}/v1", api_key="none", max_retries=0) as client:
        asked: Any = {
            "messages": [{"role": "user", "content": "Anna is 31. As JSON."}],
            "response_format": form,
        }
        found = client.chat.completions.create(model="x", **asked, **GREEDY)
    assert json.loads(found.choices[0].message.content or "") == {"name": "Anna", "age": 31}


def test_tokens_are_counted_as_the_engine_counts(running: Any, anthropic: Any) -> None:
    asked: dict[str, Any] = {
        "messages": [{"role": "user", "content": "Størrelse?\n\n  'Tis 12345,67 € 日本語 😀"}]
    }
    with anthropic.Anthropic(base_url=running.gateway, api_key="none", max_retries=0) as client:
        counted = client.messages.count_tokens(model="x", **asked).input_tokens
    prompt = httpx2.post(f"{running.engine}/apply-template", json=asked, timeout=60).json()["prompt"]
    body = {"content": prompt, "add_special": False, "parse_special": True}
    assert counted == len(httpx2.post(f"{running.engine}/tokenize", json=body, timeout=60).json()["tokens"])
