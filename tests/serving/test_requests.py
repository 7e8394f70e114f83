"""Requests of three APIs: what they become, and what is wrong with them, by its path."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any
from urllib.parse import quote

import pytest

from chatparsers import get_format
from chatparsers.errors import LoadError, RequestError
from chatparsers.serving import (
    AnthropicMessages,
    ApiError,
    OpenAIChat,
    OpenAIResponses,
    Request,
    read_chat,
    read_messages,
    read_responses,
)
from chatparsers.testing import TOOLS
from chatparsers.testing.tiny import tiny_model

USER = {"role": "user", "content": "Hi"}
F = {"name": "f", "description": "Does f.", "parameters": {"type": "object"}}
TOOL = {"type": "function", "function": F}
TOOL_CALL = {"type": "function", "function": {"name": "f", "arguments": "{}"}}


def chat(**body: Any) -> Request:
    return read_chat({"model": "m", "messages": [USER], **body})


def responses(**body: Any) -> Request:
    return read_responses({"model": "m", "input": "Hi", **body})


def messages(**body: Any) -> Request:
    return read_messages({"model": "m", "max_tokens": 9, "messages": [USER], **body})


READERS: dict[str, Callable[..., Request]] = {"chat": chat, "responses": responses, "messages": messages}


def test_a_plain_request_is_the_same_in_all_apis() -> None:
    for read in READERS.values():
        found = read(temperature=0.5, top_p=1, stream=True)
        assert found.messages == [USER] and found.model == "m" and found.stream
        assert found.sampling == {"temperature": 0.5, "top_p": 1}
        assert found.tools is None and found.tool_choice == "auto" and found.parallel_tool_calls


def test_the_same_request_of_all_apis_is_the_same() -> None:
    schema = {"type": "object"}
    asked = [
        chat(
            tools=[TOOL],
            tool_choice={"type": "function", "function": {"name": "f"}},
            parallel_tool_calls=False,
            response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}},
            reasoning_effort="none",
            max_completion_tokens=9,
        ),
        responses(
            tools=[{"type": "function", **F}],
            tool_choice={"type": "function", "name": "f"},
            parallel_tool_calls=False,
            text={"format": {"type": "json_schema", "name": "answer", "schema": schema}},
            reasoning={"effort": "none"},
            max_output_tokens=9,
        ),
        messages(
            tools=[{"name": "f", "description": "Does f.", "input_schema": {"type": "object"}}],
            tool_choice={"type": "tool", "name": "f", "disable_parallel_tool_use": True},
            output_config={"format": {"type": "json_schema", "schema": schema}},
            thinking={"type": "disabled"},
        ),
    ]
    assert asked[0].prepare == asked[1].prepare == asked[2].prepare
    null = dict.fromkeys(("strict", "defer_loading"))  # as clients write what they leave out
    nulls = [
        chat(tools=[{**TOOL, **null, "function": {**F, **null}}]),
        responses(tools=[{"type": "function", **F, **null}]),
        messages(tools=[{"name": "f", "description": "Does f.", "input_schema": {"type": "object"}, **null}]),
    ]
    assert [request.tools for request in nulls] == [asked[0].tools] * 3
    assert asked[0].thinking is False and asked[0].tools == [TOOL]
    assert [request.max_tokens for request in asked] == [9, 9, 9]


@pytest.mark.parametrize("name", ["qwen3", "mistral-nemo", "kimi-k2"])
def test_an_answer_comes_back_as_history(name: str) -> None:
    """Each API's answer, sent back as its client sends it, is the message that was read, ids and results included."""
    format = get_format(name)
    call = '{"name": "get_weather", "arguments": {"city": "Oslo"}}'
    text = {
        "qwen3": f"<think>\nHm.\n</think>\n\nI look.\n<tool_call>\n{call}\n</tool_call>",
        "mistral-nemo": "[TOOL_CALLS][" + call[:-1] + ', "id": "abcdefghi"}]',
        "kimi-k2": "I look.<|tool_calls_section_begin|><|tool_call_begin|>functions.get_weather:0"
        '<|tool_call_argument_begin|>{"city": "Oslo"}<|tool_call_end|><|tool_calls_section_end|>',
    }[name]
    message = format.bind(tools=TOOLS).parse(text)
    assert len(message.tool_calls) == 1
    said = OpenAIChat("m").whole(message)["choices"][0]["message"]
    id = said["tool_calls"][0]["id"]
    result = {"role": "tool", "tool_call_id": id, "content": "sunny"}
    wanted: dict[str, Any] = {"role": "assistant", "content": message.content}
    if message.reasoning:
        wanted["reasoning_content"] = message.reasoning
    function = {"name": "get_weather", "arguments": message.tool_calls[0].arguments}
    wanted["tool_calls"] = [{"id": id, "type": "function", "function": function}]
    assert chat(messages=[USER, said, result]).messages == [USER, wanted, result]
    without = {key: value for key, value in said.items() if key != "reasoning_content"}
    assert chat(messages=[USER, without, result]).messages == [USER, wanted, result]
    asked = {"include": ["reasoning.encrypted_content"]}
    sealed = OpenAIResponses("m", request=asked).whole(message)["output"]
    for item in sealed:  # as Codex does
        if item["type"] == "reasoning":
            del item["content"]
    output = {"type": "function_call_output", "call_id": id, "output": "sunny"}
    id_of_sealed = next(item["call_id"] for item in sealed if item["type"] == "function_call")
    carried = responses(input=[USER, *sealed, {**output, "call_id": id_of_sealed}]).messages
    assert carried[1].get("reasoning_content", "") == message.reasoning
    items = OpenAIResponses("m").whole(message)["output"]
    output = {"type": "function_call_output", "call_id": id, "output": "sunny"}
    assert responses(input=[USER, *items, output]).messages == [USER, wanted, result]
    blocks = AnthropicMessages("m").whole(message)["content"]
    answered = {"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": "sunny"}]}
    history = [USER, {"role": "assistant", "content": blocks}, {"role": "user", "content": [answered]}]
    parts = {**result, "content": [{"type": "text", "text": "sunny"}]}
    assert messages(messages=history).messages == [USER, wanted, parts]


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ('{"city": "Oslo"}', None),
        (' {"city": "Oslo", "at": [1.50, "\\u00f8"]}\n', None),
        ("", None),
        ('{"city": "Oslo", "days": [1, 2', '{"city": "Oslo", "days": [1]}'),
        ('{"city": "Oslo"} and more', '{"city": "Oslo"}'),
        ('{"city": "Oslo",}', '{"city": "Oslo"}'),
        ('["Oslo"]', "{}"),
        ("Oslo", "{}"),
    ],
)
def test_a_broken_call_of_the_history_ends_no_conversation(arguments: str, kept: str | None) -> None:
    """A model wrote it, and the API gave it to the client, who sends it with every later request."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": arguments}}
    item = {"type": "function_call", "call_id": "a", "name": "f", "arguments": arguments}
    said = chat(messages=[USER, {"role": "assistant", "tool_calls": [call]}])
    for request in (said, responses(input=[USER, item])):
        (found,) = request.messages[1]["tool_calls"]
        assert found["function"]["arguments"] == (arguments if kept is None else kept)
        assert request.dropped == (() if kept is None else ("broken end of a call's arguments",))
        assert tiny_model("qwen3").chat.prepare(**request.prepare).prompt


def test_the_last_message_of_the_assistant_is_continued_as_the_api_says() -> None:
    given = [USER, {"role": "assistant", "content": "The answer is"}]
    assert messages(messages=given).continue_final_message
    assert not chat(messages=given).continue_final_message
    assert chat(messages=given, continue_final_message=True).continue_final_message


def test_results_come_before_the_text_beside_them() -> None:
    block = {"type": "tool_result", "tool_use_id": "a", "content": "one"}
    content = [{"type": "text", "text": "And?"}, block, {**block, "tool_use_id": "b", "content": "two"}]
    roles = [
        message["role"] for message in messages(messages=[{"role": "user", "content": content}]).messages
    ]
    assert roles == ["tool", "tool", "user"]


def test_thinking_and_what_other_servers_know() -> None:
    found = chat(chat_template_kwargs={"enable_thinking": False}, top_k=3, min_p=0.1, repetition_penalty=1.1)
    assert found.template_kwargs == {"enable_thinking": False}
    assert found.sampling == {"top_k": 3, "min_p": 0.1, "repetition_penalty": 1.1}
    assert chat(reasoning_effort="high").template_kwargs == {"reasoning_effort": "high"}
    assert chat(enable_thinking=True).thinking is True
    assert responses(reasoning={"effort": "low"}).template_kwargs == {"reasoning_effort": "low"}
    assert messages(thinking={"type": "enabled", "budget_tokens": 1024}).thinking is True
    assert messages(thinking={"type": "adaptive"}, output_config={"effort": "none"}).thinking is False
    assert chat(stop="x").stops == ("x",) and messages(stop_sequences=["x", "y"]).stops == ("x", "y")
    assert chat(stream_options={"include_usage": True}).include_usage and not chat().include_usage


@pytest.mark.parametrize(
    ("kind", "text"),
    [("text/plain", "Grüße ☃"), ("text/markdown", "# A\n"), ("application/json", '{"a": 1}')],
)
def test_a_document_that_is_text_is_the_same_in_all_apis(kind: str, text: str) -> None:
    data = base64.b64encode(text.encode()).decode()
    url, quoted = f"data:{kind};base64,{data}", f"data:{kind},{quote(text)}"
    source = {"type": "base64", "media_type": kind, "data": data}
    document = {"type": "document", "title": "a.md", "source": source}
    result = {"type": "tool_result", "tool_use_id": "a", "content": [document]}
    found = [
        chat(
            messages=[
                {
                    "role": "user",
                    "content": [{"type": "file", "file": {"filename": "a.md", "file_data": one}}],
                }
            ]
        )
        for one in (url, quoted)
    ]
    item = {"type": "input_file", "filename": "a.md", "file_data": url}
    untold = {**item, "file_data": data}
    found += [responses(input=[{"role": "user", "content": [one]}]) for one in (item, untold)]
    plain = {**document, "source": {"type": "text", "media_type": kind, "data": text}}
    blocks = {**document, "source": {"type": "content", "content": [{"type": "text", "text": text}]}}
    found += [
        messages(messages=[{"role": "user", "content": [one]}]) for one in (document, plain, blocks, result)
    ]
    for request in found:
        assert request.messages[-1]["content"] == [{"type": "text", "text": f"a.md:\n{text}"}]
        assert request.dropped == ()


def test_engines_own_fields() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    wanted = chat(
        response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    )
    for form in (
        {"guided_json": schema},
        {"guided_json": json.dumps(schema)},
        {"json_schema": schema},
        {"structured_outputs": {"json": schema, "regex": None}},
    ):
        found = chat(**form)
        assert found.response_format == wanted.response_format and found.ignored == ()
        with pytest.raises(ApiError, match="send one of them"):
            chat(**form, response_format={"type": "json_object"})
    assert chat(structured_outputs={"json_object": True}).response_format == {"type": "json_object"}
    given = {"min_tokens": 2, "ignore_eos": True, "stop_token_ids": [7], "logit_bias": {"5": -1.5}}
    assert chat(**given).engine_fields == given
    assert chat(min_tokens=0, ignore_eos=False, stop_token_ids=[], logit_bias={}).engine_fields == {}
    pytest.importorskip("starlette", reason="the package starlette is not installed")
    from chatparsers.gateway import VLLM, LlamaServer
    from chatparsers.gateway.engine import Job

    job = Job(get_format("qwen3").bind(), "Hi", sampling=given)
    body = VLLM("http://engine").body(job)
    assert body == {**body, **given}
    assert LlamaServer("http://engine").body(job)["logit_bias"] == [[5, -1.5]]


def test_fields_that_no_api_has_are_named() -> None:
    for read in READERS.values():
        found = read(metadata={}, seed=1, models=["a"], temprature=0, provider=None)
        assert found.ignored == ("models", "temprature")
    other = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAABo"}
    assert responses(input=[USER, other]).dropped == ("encrypted thought of another server",)


IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
WRONG: list[tuple[str, dict[str, Any], str, str]] = [
    ("chat", {"messages": []}, "messages", "at least one message"),
    ("chat", {"messages": "Hi"}, "messages", "expected a list, found a string"),
    ("chat", {"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role", "found 'robot'"),
    ("chat", {"messages": [USER, {"role": "user"}]}, "messages[1].content", "found nothing"),
    (
        "chat",
        {"messages": [{"role": "user", "content": 5}]},
        "messages[0].content",
        "expected a string or a list",
    ),
    ("chat", {"messages": [{"role": "user", "content": [IMAGE]}]}, "messages[0].content[0]", "text alone"),
    (
        "chat",
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        "messages[0].content[0].text",
        "nothing",
    ),
    (
        "chat",
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]}]},
        "messages[0].tool_calls[0].function.arguments",
        "expected a string, found an object",
    ),
    ("chat", {"tools": [{"type": "web_search"}]}, "tools[0].type", "'web_search'"),
    ("chat", {"tools": [{"type": "function"}]}, "tools[0].function", "expected an object"),
    ("chat", {"tool_choice": "required"}, "tool_choice", "needs tools"),
    ("chat", {"tool_choice": "any"}, "tool_choice", "found 'any'"),
    (
        "chat",
        {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "g"}}},
        "tool_choice.function.name",
        "'g'",
    ),
    ("chat", {"n": 0}, "n", "at least 1, found 0"),
    ("chat", {"top_logprobs": 2}, "top_logprobs", "needs logprobs"),
    ("chat", {"logprobs": True, "top_logprobs": 21}, "top_logprobs", "at most 20, found 21"),
    ("chat", {"return_token_ids": 1}, "return_token_ids", "true or false"),
    ("responses", {"n": 2}, "n", "no such field"),
    ("responses", {"logprobs": True}, "logprobs", "message.output_text.logprobs"),
    ("responses", {"include": ["x"]}, "include[0]", "'message.output_text.logprobs', found 'x'"),
    ("messages", {"logprobs": True}, "logprobs", "no such field"),
    ("messages", {"return_token_ids": True}, "return_token_ids", "no such field"),
    ("chat", {"functions": [F]}, "functions", "send tools"),
    ("chat", {"max_tokens": 0}, "max_tokens", "at least 1, found 0"),
    ("chat", {"max_tokens": True}, "max_tokens", "found a boolean"),
    ("chat", {"temperature": "hot"}, "temperature", "expected a number, found a string"),
    ("chat", {"temperature": -1}, "temperature", "at least 0"),
    ("chat", {"temperature": float("nan")}, "temperature", "expected a number"),
    ("chat", {"seed": 1.5}, "seed", "whole number"),
    ("chat", {"guided_json": "{"}, "guided_json", "JSON Schema"),
    ("chat", {"structured_outputs": {"regex": "a"}}, "structured_outputs", "found regex"),
    ("chat", {"logit_bias": {"a": 1}}, "logit_bias", "id of a token"),
    ("chat", {"logit_bias": {"1": 101}}, "logit_bias.1", "-100 to 100"),
    ("chat", {"stop_token_ids": [1.5]}, "stop_token_ids[0]", "id of a token"),
    ("chat", {"stop_token_ids": [1] * 2000}, "stop_token_ids", "at most 1024"),
    ("chat", {"stream": "yes"}, "stream", "true or false"),
    ("chat", {"stop": [""]}, "stop[0]", "empty"),
    ("chat", {"stop": ["x"] * 65}, "stop", "at most 64"),
    ("chat", {"response_format": {"type": "xml"}}, "response_format.type", "'xml'"),
    ("chat", {"response_format": {"type": "json_schema"}}, "response_format.schema", "JSON Schema"),
    ("responses", {"input": None}, "input", "expected a string or a list of items, found nothing"),
    ("responses", {"input": []}, "input", "at least one"),
    ("responses", {"previous_response_id": "resp_1"}, "previous_response_id", "keeps no conversations"),
    ("responses", {"input": [{"type": "item_reference", "id": "x"}]}, "input[0]", "keeps no conversations"),
    ("responses", {"input": [{"type": "computer_call"}]}, "input[0].type", "'computer_call'"),
    ("responses", {"input": [{"type": "function_call", "name": "f"}]}, "input[0].call_id", "nothing"),
    (
        "responses",
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        "input[0].content[0]",
        "text",
    ),
    ("responses", {"tools": [{"type": "file_search"}]}, "tools[0].type", "'file_search'"),
    (
        "chat",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "file", "file": {"file_data": "data:text/plain;base64,/w=="}}],
                }
            ]
        },
        "messages[0].content[0].file.file_data",
        "UTF-8",
    ),
    (
        "responses",
        {
            "input": [
                {"role": "user", "content": [{"type": "input_file", "file_data": "data:text/plain;base64,?"}]}
            ]
        },
        "input[0].content[0].file_data",
        "base64",
    ),
    (
        "messages",
        {
            "messages": [
                {"role": "user", "content": [{"type": "document", "source": {"type": "url", "url": "x"}}]}
            ]
        },
        "messages[0].content[0]",
        "text alone",
    ),
    ("messages", {"max_tokens": None}, "max_tokens", "found nothing"),
    ("messages", {"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", "'tool'"),
    (
        "messages",
        {"messages": [{"role": "user", "content": [{"type": "image"}]}]},
        "messages[0].content[0]",
        "text",
    ),
    ("messages", {"tools": [{"type": "bash_20250124", "name": "bash"}]}, "tools[0].type", "'bash_20250124'"),
    ("messages", {"tools": [{"name": "f"}]}, "tools[0].input_schema", "expected an object"),
    ("messages", {"tool_choice": {"type": "any"}}, "tool_choice", "needs tools"),
    ("messages", {"thinking": {"type": "sometimes"}}, "thinking.type", "'sometimes'"),
    # No field is ignored in silence.
    ("chat", {"modalities": ["text", "audio"]}, "modalities", "text"),
    ("chat", {"prediction": {"type": "content", "content": "x"}}, "prediction", ""),
    ("chat", {"web_search_options": {}}, "web_search_options", ""),
    ("chat", {"verbosity": "low"}, "verbosity", ""),
    ("responses", {"text": {"verbosity": "high"}}, "text.verbosity", ""),
    (
        "chat",
        {"messages": [USER, {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}]},
        "messages[1].function_call",
        "",
    ),
    ("messages", {"mcp_servers": [{"url": "x"}]}, "mcp_servers", ""),
    ("messages", {"container": "x"}, "container", ""),
]


@pytest.mark.parametrize(("api", "body", "param", "said"), WRONG)
def test_what_is_wrong_and_where(api: str, body: dict[str, Any], param: str, said: str) -> None:
    with pytest.raises(ApiError) as caught:
        READERS[api](**body)
    error = caught.value
    assert (error.status, error.param) == (400, param) and said in error.message
    assert str(error) == f"{param}: {error.message}" and error.openai()["error"]["param"] == param
    assert error.openai()["error"]["type"] == "invalid_request_error"
    inner = error.anthropic()["error"]
    assert inner["type"] == "invalid_request_error" and inner["message"].startswith(f"{param}: ")


BODIES: dict[str, dict[str, Any]] = {
    "chat": {
        "model": "m",
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
            USER,
            {
                "role": "assistant",
                "content": None,
                "reasoning": "Hm.",
                "tool_calls": [{"id": "a", **TOOL_CALL}],
            },
            {"role": "tool", "tool_call_id": "a", "content": "x"},
        ],
        "tools": [TOOL],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}},
        "stop": ["x"],
        "stream_options": {"include_usage": True},
        "chat_template_kwargs": {"a": 1},
        "reasoning_effort": "low",
        "temperature": 1,
    },
    "responses": {
        "input": [
            USER,
            {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "Hm."}], "summary": []},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x"}]},
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": "x"},
        ],
        "instructions": "Be brief.",
        "tools": [{"type": "function", **F}],
        "tool_choice": {"type": "function", "name": "f"},
        "text": {"format": {"type": "json_schema", "name": "n", "schema": {}}},
        "reasoning": {"effort": "low"},
    },
    "messages": {
        "max_tokens": 9,
        "system": [{"type": "text", "text": "Be brief."}],
        "messages": [
            USER,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Hm.", "signature": ""},
                    {"type": "text", "text": "x"},
                    {"type": "tool_use", "id": "a", "name": "f", "input": {}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]},
        ],
        "tools": [{"name": "f", "input_schema": {}}],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}},
        "stop_sequences": ["x"],
    },
}


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in places(item, (*path, key)))]


@pytest.mark.parametrize("api", BODIES)
def test_any_other_value_anywhere_is_read_or_is_an_error_of_the_api(api: str) -> None:
    """Never another exception: that would be a 500 for a client's mistake."""
    read = {"chat": read_chat, "responses": read_responses, "messages": read_messages}[api]
    for no_object in (None, [], "x", 1):
        with pytest.raises(ApiError, match="expected a JSON object"):
            read(no_object)
    read(BODIES[api])
    refused = 0
    for path in places(BODIES[api])[1:]:
        for value in (
            None,
            True,
            -1,
            1.5,
            "",
            "none",
            [],
            ["x"],
            [[]],
            {},
            {"type": []},
            {"type": "x"},
            [{"role": {}}],
        ):
            body = deepcopy(BODIES[api])
            at: Any = body
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
            try:
                assert isinstance(read(body).prepare["messages"], list)
            except ApiError as error:
                assert error.status == 400 and error.message
                refused += 1
    assert refused > 200


def test_whose_mistake_an_error_is() -> None:
    assert ApiError.of(RequestError("no tool is named x")).status == 400
    assert ApiError.of(LoadError("model.gguf: no such file")).status == 500
    failed = ApiError.of(KeyError("/secret/path"))
    assert failed.status == 500 and "secret" not in failed.message
    assert failed.openai()["error"]["type"] == "server_error"
    assert failed.anthropic()["error"]["type"] == "api_error"


@pytest.mark.parametrize("api", ["chat", "responses", "messages"])
def test_fields_of_other_servers_for_the_template(api: str) -> None:
    """Their users send these to every API."""
    said = [{"role": "user", "content": "Hi"}]
    read, body = {
        "chat": (read_chat, {"messages": said, "reasoning_effort": "high"}),
        "responses": (read_responses, {"input": "Hi", "reasoning": {"effort": "high"}}),
        "messages": (read_messages, {"messages": said, "max_tokens": 9, "output_config": {"effort": "high"}}),
    }[api]
    found = read({**body, "chat_template_kwargs": {"a": 1}, "enable_thinking": False})
    assert (found.template_kwargs, found.thinking) == ({"a": 1, "reasoning_effort": "high"}, False)
    assert read(body).thinking is None
    with pytest.raises(ApiError, match="expected an object, found a list") as caught:
        read({**body, "chat_template_kwargs": []})
    assert caught.value.param == "chat_template_kwargs"


def test_the_system_text_is_the_same_in_each_request_of_an_agent() -> None:
    """Claude Code writes a line of accounting at its head, which differs in each request."""
    prompts = []
    for number in ("aaa", "bbb"):
        line = f"x-anthropic-billing-header: cc_version=2.1; cch={number};"
        system = [
            {"type": "text", "text": line},
            {"type": "text", "text": "Be short."},
            {"type": "text", "text": "Go."},
        ]
        body = {
            "model": "m",
            "max_tokens": 9,
            "system": system,
            "messages": [{"role": "user", "content": "Hi"}],
        }
        request = read_messages(body)
        assert request.dropped == ("line x-anthropic-billing-header",)
        prompts.append(request.messages[0])
    assert prompts[0] == prompts[1] == {"role": "system", "content": "Be short.\nGo."}
