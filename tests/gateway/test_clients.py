"""The real clients of two companies against a gateway on a port: three APIs, streamed and whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from scripted import Llama, Upstream, soon
from servers import tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from three_apis import BODIES, COUNT, PATHS, post, told, tools_of

from chatparsers.gateway import LlamaServer, Settings, create_app

WEATHER = {
    "name": "get_weather",
    "description": "The weather.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CHAT_TOOLS = [{"type": "function", "function": WEATHER}]
ASK = "How is the weather in both cities?"
WIRE = [
    "<think>\nTwo ",
    "cities.\n</think>\n\nI look",
    ".\n<tool_call>\n",
    '{"name": "get_weather", "arguments": {"city": "Os',
    'lo ☃"}}\n</tool_call>\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}',
    "\n</tool_call>",
]
CALLS = [("get_weather", '{"city": "Oslo ☃"}'), ("get_weather", '{"city": "Rome"}')]


@pytest.fixture(params=["ids", "text"])
def gateway(request: Any, upstream: Callable[[Any], Upstream], serve: Callable[[Any], Any]) -> Any:
    """A gateway over a scripted engine, which gives ids or only text. It has ``engine``, the scripted one."""
    model = tiny_model("qwen3")
    script = Llama(WIRE, model.tokenizer, gives_ids=request.param == "ids")
    script.stop_id = model.eos_ids[0]
    engine = upstream(script)
    server = serve(create_app(model.chat, LlamaServer(engine.url), Settings(model="tiny")))
    server.engine, server.script = engine, script
    return server


def openai(gateway: Any) -> Any:
    sdk = pytest.importorskip("openai", reason="the package openai is not installed")
    return sdk.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0)


def anthropic(gateway: Any) -> Any:
    sdk = pytest.importorskip("anthropic", reason="the package anthropic is not installed")
    return sdk.Anthropic(base_url=gateway.url, api_key="none", max_retries=0)


def shown(gateway: Any) -> str:
    """The last prompt that the engine got, as text."""
    prompt = gateway.engine.requests[-1][1]["prompt"]
    decode = gateway.script.tokenizer.decode
    return prompt if isinstance(prompt, str) else decode(prompt, skip_special_tokens=False)


def history(api: str, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer and the results of its calls, as a client sends them back."""
    user = {"role": "user", "content": ASK}
    if api == "chat":
        message = answer["choices"][0]["message"]
        ids = [call["id"] for call in message["tool_calls"]]
        results: list[Any] = [
            {"role": "tool", "tool_call_id": id, "content": said} for id, said in zip(ids, SUNNY, strict=True)
        ]
        return {"messages": [user, message, *results]}
    if api == "responses":
        ids = [item["call_id"] for item in answer["output"] if item["type"] == "function_call"]
        results = [
            {"type": "function_call_output", "call_id": id, "output": said}
            for id, said in zip(ids, SUNNY, strict=True)
        ]
        return {"input": [user, *answer["output"], *results]}
    ids = [block["id"] for block in answer["content"] if block["type"] == "tool_use"]
    results = [
        {"type": "tool_result", "tool_use_id": id, "content": said}
        for id, said in zip(ids, SUNNY, strict=True)
    ]
    said = {"role": "assistant", "content": answer["content"]}
    return {"messages": [user, said, {"role": "user", "content": results}]}


SUNNY = ["sunny in place 0", "sunny in place 1"]
SYSTEM = {
    "chat": {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": ASK}]},
    "responses": {"instructions": "Be brief.", "input": ASK},
    "messages": {"system": "Be brief.", "messages": [{"role": "user", "content": ASK}]},
}


@pytest.mark.parametrize("api", PATHS)
def test_an_answer_and_its_results_are_the_next_prompt(api: str, gateway: Any) -> None:
    """Streamed and whole it tells the same, and sent back each part is in the prompt once. `test_sdks` has the
    companies' clients, and tests/serving has what these rebuild."""
    tools = tools_of(api, WEATHER)
    for stream in (True, False):
        answer = post(gateway.url, api, **SYSTEM[api], tools=tools, stream=stream)
        found = told(api, answer)
        assert found.parts == ("Two cities.", "I look.", [json.loads(text) for _, text in CALLS])
        assert [name for name, _ in found.calls] == [name for name, _ in CALLS]
        assert "Be brief." in shown(gateway)
    whole = answer.json()
    usage = whole["usage"]
    assert usage.get("completion_tokens", usage.get("output_tokens")) == 3
    again = history(api, whole)
    post(gateway.url, api, **again, tools=tools)
    prompt = shown(gateway)
    for text in ("Two cities.", "I look.", "Oslo ☃", "Rome", *SUNNY, ASK):
        assert prompt.count(text) == 1
    if api == "messages":
        asked = {**BODIES[api], **again, "tools": tools}
        counted = httpx2.post(gateway.url + COUNT, json=asked, timeout=20).json()["input_tokens"]
        assert counted == len(gateway.script.tokenizer.encode(prompt, add_special_tokens=False).ids)


def test_the_engine_gets_grammar_triggers_stops_and_limits(gateway: Any) -> None:
    with openai(gateway) as client:
        client.chat.completions.create(
            model="tiny",
            messages=[{"role": "user", "content": ASK}],
            tools=CHAT_TOOLS,
            tool_choice="required",
            max_tokens=77,
            temperature=0.5,
            stop=["never mind"],
            extra_body={"top_k": 4},
        )
    body = gateway.engine.requests[-1][1]
    assert "get_weather" in body["grammar"] and "grammar_lazy" not in body
    assert (body["n_predict"], body["temperature"], body["top_k"]) == (77, 0.5, 4)
    assert "<tool_call>" in body["preserved_tokens"]
    assert "never mind" not in body["stop"]  # it could cut an argument
    assert ("<[" in body["grammar"]) == gateway.script.gives_ids  # a marker by id, if the stream is fed ids
    assert ("<|im_end|>" in body["stop"]) != gateway.script.gives_ids
    with openai(gateway) as client:
        asked: Any = [{"role": "user", "content": ASK}]
        client.chat.completions.create(model="tiny", messages=asked, tools=CHAT_TOOLS)
    body = gateway.engine.requests[-1][1]
    (trigger,) = body["grammar_triggers"]
    assert body["grammar_lazy"] is True and trigger["value"] == "<tool_call>"
    id = gateway.script.tokenizer.token_to_id("<tool_call>")
    wanted = {"type": 0, "token": id} if gateway.script.gives_ids else {"type": 1}
    assert trigger.items() >= wanted.items()


def test_a_stop_of_the_client_cuts_the_content_alone(gateway: Any) -> None:
    """It stands in the reasoning and in an argument too, and does not cut them."""
    gateway.script.pieces = [
        "<think>\nSTOP?\n</think>\n\nOne. ST",
        '\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "STOP"}}\n</tool_call>\n',
        "Two. ST",
        "OP Three. " * 50,
    ]
    with openai(gateway) as client:
        asked: dict[str, Any] = {
            "model": "tiny",
            "messages": [{"role": "user", "content": ASK}],
            "tools": CHAT_TOOLS,
            "stop": "STOP",
        }
        with client.chat.completions.stream(**asked) as stream:
            streamed = stream.get_final_completion()
        for found in (streamed, client.chat.completions.create(**asked)):
            said = found.choices[0].message
            assert said.content.endswith("Two. ") and said.content.startswith("One. ST")
            assert said.reasoning == "STOP?" and said.tool_calls[0].function.arguments == '{"city": "STOP"}'
    with anthropic(gateway) as client:
        message = client.messages.create(
            model="tiny",
            max_tokens=99,
            messages=[{"role": "user", "content": ASK}],
            stop_sequences=["Two", "never"],
        )
        assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", "Two")


def test_truncation_is_passed_on(gateway: Any) -> None:
    gateway.script.pieces = WIRE[:4]
    gateway.script.kind = "limit"
    gateway.script.stop_id = None
    with openai(gateway) as client:
        found = client.chat.completions.create(
            model="tiny", messages=[{"role": "user", "content": ASK}], tools=CHAT_TOOLS
        )
        assert found.choices[0].finish_reason == "length"
        assert found.choices[0].message.tool_calls[0].function.arguments == '{"city": "Os'
        answer = client.responses.create(model="tiny", input=ASK, tools=[{"type": "function", **WEATHER}])
        assert (answer.status, answer.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    metrics = gateway.app.state.metrics
    assert metrics.value("calls", format="qwen3", complete="false") == 2
    assert metrics.value("diagnostics", format="qwen3", code="truncated") == 2
    soon(lambda: metrics.value("requests", status="200") == 2 and metrics.active == 0)


def test_an_answer_that_looks_like_a_call_is_counted(gateway: Any) -> None:
    """By the format that runs: it is likely the wrong one. The client's answer is as it was."""
    wire = '[TOOL_CALLS][{"name": "get_weather", "arguments": {"city": "Oslo"}}]'
    gateway.script.pieces = [wire]
    with openai(gateway) as client:
        for stream in (False, True):
            asked = {"messages": [{"role": "user", "content": ASK}], "tools": CHAT_TOOLS, "stream": stream}
            found = client.chat.completions.create(model="tiny", **asked)
            if not stream:
                said = found.choices[0]
                assert (said.message.content, said.finish_reason) == (wire, "stop")
            else:
                assert "".join(chunk.choices[0].delta.content or "" for chunk in found) == wire
    metrics = gateway.app.state.metrics
    assert metrics.value("diagnostics", format="qwen3", code="looks-like-a-call") == 2


def test_the_clients_raise_their_own_errors(gateway: Any) -> None:
    sdk = pytest.importorskip("openai", reason="the package openai is not installed")
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}
    with openai(gateway) as client:
        with pytest.raises(sdk.BadRequestError) as caught:
            client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": [image]}])
        assert caught.value.param == "messages[0].content[0]" and "text alone" in str(caught.value)
        assert caught.value.code == "image_not_supported"
        with pytest.raises(sdk.BadRequestError, match="at most 64 answers"):
            client.chat.completions.create(model="tiny", n=65, messages=[{"role": "user", "content": "Hi"}])
        assert [model.id for model in client.models.list()] == ["tiny"]
        for name in ("tiny", "huge"):  # a request may name any
            assert client.models.retrieve(name).id == name
        with pytest.raises(sdk.NotFoundError):
            client.files.list()
    other = pytest.importorskip("anthropic", reason="the package anthropic is not installed")
    with anthropic(gateway) as client:
        other.types.ModelInfo.model_validate(client.models.retrieve("tiny").to_dict())  # it has every field
        assert [model.id for model in client.models.list()] == ["tiny"]
    with anthropic(gateway) as client, pytest.raises(other.BadRequestError, match="text alone"):
        source = {"type": "base64", "media_type": "image/png", "data": "AA"}
        block = {"type": "image", "source": source}
        client.messages.create(model="tiny", max_tokens=9, messages=[{"role": "user", "content": [block]}])
    assert not [body for _, body in gateway.engine.requests if "n_predict" in body and body["n_predict"] != 1]
