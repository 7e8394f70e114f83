"""The real clients of two companies against a gateway on a port: three APIs, streamed and whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from scripted import Llama, Upstream, soon
from servers import tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

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


def test_chat_completions(gateway: Any) -> None:
    with openai(gateway) as client:
        asked: dict[str, Any] = {
            "model": "tiny",
            "messages": [{"role": "user", "content": ASK}],
            "tools": CHAT_TOOLS,
        }
        with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
            streamed = stream.get_final_completion()
        whole = client.chat.completions.create(**asked)
        for found in (streamed, whole):
            said = found.choices[0].message
            assert (said.content, said.reasoning, said.reasoning_content) == (
                "I look.",
                "Two cities.",
                "Two cities.",
            )
            calls = [(call.function.name, call.function.arguments) for call in said.tool_calls]
            assert calls == CALLS and len({call.id for call in said.tool_calls}) == 2
            assert found.choices[0].finish_reason == "tool_calls"
            assert found.usage.completion_tokens == 3
        # The answer and its results go back as history.
        results = [
            {"role": "tool", "tool_call_id": call.id, "content": f"sunny in place {number}"}
            for number, call in enumerate(whole.choices[0].message.tool_calls)
        ]
        history = [*asked["messages"], whole.choices[0].message.model_dump(exclude_none=True), *results]
        client.chat.completions.create(model="tiny", messages=history, tools=CHAT_TOOLS)
    prompt = shown(gateway)
    for text in ("Two cities.", "I look.", "Oslo ☃", "Rome", "sunny in place 0", "sunny in place 1", ASK):
        assert prompt.count(text) == 1


def shown(gateway: Any) -> str:
    """The last prompt that the engine got, as text."""
    prompt = gateway.engine.requests[-1][1]["prompt"]
    return (
        prompt
        if isinstance(prompt, str)
        else gateway.script.tokenizer.decode(prompt, skip_special_tokens=False)
    )


def test_responses(gateway: Any) -> None:
    tools = [{"type": "function", **WEATHER}]
    with openai(gateway) as client:
        asked: dict[str, Any] = {"model": "tiny", "input": ASK, "tools": tools, "instructions": "Be brief."}
        with client.responses.stream(**asked) as stream:
            streamed = stream.get_final_response()
        whole = client.responses.create(**asked)
        for found in (streamed, whole):
            kinds = [item.type for item in found.output]
            assert kinds == ["reasoning", "message", "function_call", "function_call"]
            assert found.output[0].content[0].text == "Two cities." and found.output_text == "I look."
            assert [(item.name, item.arguments) for item in found.output[2:]] == CALLS
            assert found.usage.output_tokens == 3
        outputs = [
            {"type": "function_call_output", "call_id": item.call_id, "output": f"sunny in place {number}"}
            for number, item in enumerate(whole.output[2:])
        ]
        items = [item.model_dump(exclude_none=True) for item in whole.output]
        history = [{"role": "user", "content": ASK}, *items, *outputs]
        client.responses.create(model="tiny", input=history, tools=tools)
    prompt = shown(gateway)
    for text in ("Two cities.", "I look.", "Oslo ☃", "Rome", "sunny in place 0", "sunny in place 1", ASK):
        assert prompt.count(text) == 1


def test_messages(gateway: Any) -> None:
    named = {"name": "get_weather", "description": "The weather.", "input_schema": WEATHER["parameters"]}
    with anthropic(gateway) as client:
        asked: dict[str, Any] = {
            "model": "tiny",
            "max_tokens": 100,
            "messages": [{"role": "user", "content": ASK}],
            "tools": [named],
            "system": "Be brief.",
        }
        with client.messages.stream(**asked) as stream:
            streamed = stream.get_final_message()
        whole = client.messages.create(**asked)
        for found in (streamed, whole):
            assert [block.type for block in found.content] == ["thinking", "text", "tool_use", "tool_use"]
            assert (found.content[0].thinking, found.content[1].text) == ("Two cities.", "I look.")
            uses = [(block.name, block.input) for block in found.content[2:]]
            assert uses == [(name, json.loads(arguments)) for name, arguments in CALLS]
            assert found.stop_reason == "tool_use" and found.usage.output_tokens == 3
        results = [
            {"type": "tool_result", "tool_use_id": block.id, "content": f"sunny in place {number}"}
            for number, block in enumerate(whole.content[2:])
        ]
        blocks = [block.model_dump(exclude_none=True) for block in whole.content]
        history = [
            *asked["messages"],
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": results},
        ]
        client.messages.create(model="tiny", max_tokens=9, messages=history, tools=[named])
        prompt = shown(gateway)
        counted = client.messages.count_tokens(model="tiny", messages=history, tools=[named])
    for text in ("Two cities.", "I look.", "Oslo ☃", "Rome", "sunny in place 0", "sunny in place 1", ASK):
        assert prompt.count(text) == 1
    assert counted.input_tokens == len(gateway.script.tokenizer.encode(prompt, add_special_tokens=False).ids)


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
