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


def chat(drops: bool = False, **body: Any) -> Request:
    return read_chat({"model": "m", "messages": [USER], **body}, drop_unsupported=drops)


def responses(drops: bool = False, **body: Any) -> Request:
    return read_responses({"model": "m", "input": "Hi", **body}, drop_unsupported=drops)


def messages(drops: bool = False, **body: Any) -> Request:
    return read_messages({"model": "m", "max_tokens": 9, "messages": [USER], **body}, drop_unsupported=drops)


READERS: dict[str, Callable[..., Request]] = {"chat": chat, "responses": responses, "messages": messages}


Bodies = list[tuple[str, dict[str, Any]]]
"""Requests, each by the name of its API."""


def in_all(**body: Any) -> Bodies:
    return [(api, body) for api in READERS]


def said(*content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [*content]}]


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


def documents(kind: str, value: str) -> dict[str, tuple[Bodies, dict[str, Any]]]:
    """A document that is text is the same in all APIs, in a result too."""
    data = base64.b64encode(value.encode()).decode()
    url, quoted = f"data:{kind};base64,{data}", f"data:{kind},{quote(value)}"
    item = {"type": "input_file", "filename": "a.md", "file_data": url}
    document = {"type": "document", "title": "a.md"}
    sources = [
        {"type": "base64", "media_type": kind, "data": data},
        {"type": "text", "media_type": kind, "data": value},
        {"type": "content", "content": [text(value)]},
    ]
    files = [{"type": "file", "file": {"filename": "a.md", "file_data": one}} for one in (url, quoted)]
    bodies: Bodies = [("chat", {"messages": said(one)}) for one in files]
    bodies += [("responses", {"input": said(one)}) for one in (item, {**item, "file_data": data})]
    bodies += [("messages", {"messages": said({**document, "source": one})}) for one in sources]
    result = {"type": "tool_result", "tool_use_id": "a", "content": [{**document, "source": sources[0]}]}
    read = {"content": [text(f"a.md:\n{value}")]}
    return {
        f"a document of {kind}": (bodies, {"messages": [{"role": "user", **read}], "dropped": ()}),
        f"a result of {kind}": (
            [("messages", {"messages": said(result)})],
            {"messages": [{"role": "tool", "tool_call_id": "a", **read}], "dropped": ()},
        ),
    }


def allowed(mode: str) -> tuple[Bodies, dict[str, Any]]:
    """Some of the tools alone may be called."""
    tools = [{"type": "function", "function": {"name": name}} for name in ("a", "b", "c")]
    inner = {"mode": mode, "tools": [tools[0], tools[2]]}
    flat = [{"type": "function", **one["function"]} for one in tools]  # type: ignore[dict-item]
    bodies: Bodies = [
        ("chat", {"tools": tools, "tool_choice": {"type": "allowed_tools", "allowed_tools": inner}}),
        (
            "responses",
            {
                "tools": flat,
                "tool_choice": {"type": "allowed_tools", "mode": mode, "tools": [flat[0], flat[2]]},
            },
        ),
    ]
    return bodies, {"tool_choice": mode, "names": ["a", "c"]}


NULL = dict.fromkeys(("strict", "defer_loading"))
"""As clients write what they leave out."""
OBJECT = {"type": "object"}
STRUCTURE = {"type": "object", "properties": {"a": {"type": "string"}}}
JSON_SCHEMA = {"type": "json_schema", "json_schema": {"name": "answer", "schema": STRUCTURE}}
SCHEMA_FORMS: list[dict[str, Any]] = [
    {"guided_json": STRUCTURE},
    {"guided_json": json.dumps(STRUCTURE)},
    {"json_schema": STRUCTURE},
    {"structured_outputs": {"json": STRUCTURE, "regex": None}},
]
"""How engines' clients ask for an answer by a schema."""
FOUND_BLOCK = {
    **{"type": "search_result", "title": "Oslo", "source": "https://oslo.example"},
    "content": [{"type": "text", "text": "Cold."}, {"type": "text", "text": "Windy."}],
    "citations": {"enabled": True},
}
FOUND_TEXT = "Oslo\nhttps://oslo.example\nCold.\nWindy."
CALLED = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]}
RESULT = {"type": "tool_result", "tool_use_id": "1"}
BEGUN = [USER, {"role": "assistant", "content": "The answer is"}]
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "one"}
TUNED = {"min_tokens": 2, "ignore_eos": True, "stop_token_ids": [7], "logit_bias": {"5": -1.5}}
FOREIGN = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAABo"}
IMAGE_OF_MESSAGES = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "AA"},
}
FAILED = {"type": "tool_result", "tool_use_id": "1", "content": [IMAGE_OF_MESSAGES], "is_error": True}
LISTED = {"type": "tool_reference", "tool_name": "read"}
NO_IMAGE = text("[image left out: this model reads text alone]")
SEARCH = {"type": "web_search", "external_web_access": False}
UNKNOWN_ALLOWED = {"type": "allowed_tools", "mode": "auto", "tools": [{"name": "d"}]}
KEPT = {"type": "clear_thinking_20251015", "keep": "all"}
CLEARED = {"type": "clear_tool_uses_20250919"}
READ: dict[str, tuple[Bodies, dict[str, Any]]] = {
    "a plain request": (
        in_all(temperature=0.5, top_p=1, stream=True),
        {
            **{
                "messages": [USER],
                "model": "m",
                "stream": True,
                "sampling": {"temperature": 0.5, "top_p": 1},
            },
            **{"tools": None, "tool_choice": "auto", "parallel_tool_calls": True, "thinking": None},
        },
    ),
    "all that three APIs have": (
        [
            (
                "chat",
                {
                    "tools": [TOOL],
                    "tool_choice": {"type": "function", "function": {"name": "f"}},
                    "parallel_tool_calls": False,
                    "response_format": JSON_SCHEMA,
                    "reasoning_effort": "none",
                    "max_completion_tokens": 9,
                },
            ),
            (
                "responses",
                {
                    "tools": [{"type": "function", **F}],
                    "tool_choice": {"type": "function", "name": "f"},
                    "parallel_tool_calls": False,
                    "text": {"format": {"type": "json_schema", "name": "answer", "schema": STRUCTURE}},
                    "reasoning": {"effort": "none"},
                    "max_output_tokens": 9,
                },
            ),
            (
                "messages",
                {
                    "tools": [{"name": "f", "description": "Does f.", "input_schema": OBJECT}],
                    "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
                    "output_config": {"format": {"type": "json_schema", "schema": STRUCTURE}},
                    "thinking": {"type": "disabled"},
                },
            ),
        ],
        {"thinking": False, "tools": [TOOL], "max_tokens": 9, "parallel_tool_calls": False},
    ),
    "what clients leave out": (
        [
            ("chat", {"tools": [{**TOOL, **NULL, "function": {**F, **NULL}}]}),
            ("responses", {"tools": [{"type": "function", **F, **NULL}]}),
            (
                "messages",
                {"tools": [{"name": "f", "description": "Does f.", "input_schema": OBJECT, **NULL}]},
            ),
        ],
        {"tools": [TOOL]},
    ),
    "fields of other servers for the template": (
        [
            (api, {**body, "chat_template_kwargs": {"a": 1}, "enable_thinking": False})
            for api, body in (
                ("chat", {"reasoning_effort": "high"}),
                ("responses", {"reasoning": {"effort": "high"}}),
                ("messages", {"output_config": {"effort": "high"}}),
            )
        ],
        {"template_kwargs": {"a": 1}, "effort": "high", "thinking": False},
    ),
    "an effort": (
        [("chat", {"reasoning_effort": "low"}), ("responses", {"reasoning": {"effort": "low"}})],
        {"template_kwargs": {}, "effort": "low", "thinking": None},
    ),
    "a switch of the template": (
        [("chat", {"chat_template_kwargs": {"enable_thinking": False}})],
        {"template_kwargs": {"enable_thinking": False}},
    ),
    "a thought that is asked for": (
        [
            ("chat", {"enable_thinking": True}),
            ("chat", {"thinking": {"type": "enabled"}, "reasoning_effort": "none"}),
            ("messages", {"thinking": {"type": "enabled", "budget_tokens": 1024}}),
        ],
        {"thinking": True},
    ),
    "thoughts as the model likes": (
        [
            (api, {**body, "thinking": {"type": "adaptive"}})
            for api, body in (
                ("chat", {"reasoning_effort": "high"}),
                ("responses", {"reasoning": {"effort": "high"}}),
                ("messages", {"output_config": {"effort": "high"}}),
            )
        ],
        {"thinking": "adaptive", "effort": "high"},
    ),
    "an effort of none": (
        [("messages", {"thinking": {"type": "adaptive"}, "output_config": {"effort": "none"}})],
        {"thinking": False},
    ),
    "samplers of other servers": (
        [("chat", {"top_k": 3, "min_p": 0.1, "repetition_penalty": 1.1})],
        {"sampling": {"top_k": 3, "min_p": 0.1, "repetition_penalty": 1.1}},
    ),
    "a stop": ([("chat", {"stop": "x"})], {"stops": ("x",)}),
    "stops": ([("messages", {"stop_sequences": ["x", "y"]})], {"stops": ("x", "y")}),
    "the usage is asked for": (
        [("chat", {"stream_options": {"include_usage": True}})],
        {"include_usage": True},
    ),
    "the usage is not asked for": ([("chat", {})], {"include_usage": False}),
    "an answer that is continued": (
        [("messages", {"messages": BEGUN}), ("chat", {"messages": BEGUN, "continue_final_message": True})],
        {"continue_final_message": True},
    ),
    "an answer that is not": ([("chat", {"messages": BEGUN})], {"continue_final_message": False}),
    "results come before the text beside them": (
        [("messages", {"messages": said(text("And?"), RESULT, {**RESULT, "tool_use_id": "b"})})],
        {
            "messages": [
                {"role": "tool", "tool_call_id": "a", "content": "one"},
                {"role": "tool", "tool_call_id": "b", "content": "one"},
                {**said(text("And?"))[0], "beside_result": True},
            ]
        },
    ),
    **documents("text/plain", "Grüße ☃"),
    **documents("text/markdown", "# A\n"),
    **documents("application/json", '{"a": 1}'),
    "a schema in engines' own fields": (
        [("chat", one) for one in ({"response_format": JSON_SCHEMA}, *SCHEMA_FORMS)],
        {"ignored": ()},
    ),
    "an object in engines' own fields": (
        [("chat", {"structured_outputs": {"json_object": True}})],
        {"response_format": {"type": "json_object"}},
    ),
    "a grammar in engines' own fields": (
        [("chat", {"structured_outputs": {"grammar": 'root ::= "a"', "json": None}})],
        {"response_format": {"type": "grammar", "grammar": 'root ::= "a"'}},
    ),
    "a regular expression in engines' own fields": (
        [("chat", {"structured_outputs": {"regex": "a+"}})],
        {"response_format": {"type": "regex", "pattern": "a+"}},
    ),
    "choices in engines' own fields": (
        [("chat", {"structured_outputs": {"choice": ["yes", "no"]}})],
        {"response_format": {"type": "choice", "choices": ["yes", "no"]}},
    ),
    "what a search found": (
        [
            ("messages", {"messages": [{"role": "user", "content": [FOUND_BLOCK]}]}),
            ("messages", {"messages": [{"role": "user", "content": [{"type": "text", "text": FOUND_TEXT}]}]}),
        ],
        {"dropped": ()},
    ),
    "what a search found, as a result": (
        [
            (
                "messages",
                {"messages": [USER, CALLED, {"role": "user", "content": [{**RESULT, "content": one}]}]},
            )
            for one in ([FOUND_BLOCK], [{"type": "text", "text": FOUND_TEXT}])
        ],
        {"dropped": ()},
    ),
    "engines' own fields": ([("chat", TUNED)], {"engine_fields": TUNED}),
    "engines' own fields that change nothing": (
        [("chat", {"min_tokens": 0, "ignore_eos": False, "stop_token_ids": [], "logit_bias": {}})],
        {"engine_fields": {}},
    ),
    "fields that no API has are named": (
        in_all(metadata={}, seed=1, models=["a"], temprature=0, provider=None),
        {"ignored": ("models", "temprature")},
    ),
    "a thought of another server": (
        [("responses", {"input": [USER, FOREIGN]})],
        {"dropped": ("encrypted thought of another server",)},
    ),
    # Claude Code writes a line of accounting at its head, which differs in each request.
    "the system text of an agent": (
        [
            (
                "messages",
                {
                    "system": [
                        text(f"x-anthropic-billing-header: cc_version=2.1; cch={number};"),
                        text("Be short."),
                        text("Go."),
                    ]
                },
            )
            for number in ("aaa", "bbb")
        ],
        {
            "messages": [{"role": "system", "content": "Be short.\nGo."}, USER],
            "dropped": ("line x-anthropic-billing-header",),
        },
    ),
    "some tools may be called": allowed("auto"),
    "some tools must be called": allowed("required"),
    "a tool that is left out": (
        [("responses", {"tools": [SEARCH]})],
        {"dropped": ("tool web_search",), "names": []},
    ),
    "each part that is left out has a line in its place": (
        [
            (
                "messages",
                {
                    "tools": [
                        {"type": "web_search_20250305", "name": "web_search"},
                        {"name": "f", "input_schema": {}},
                    ],
                    "messages": said(
                        IMAGE_OF_MESSAGES,
                        FAILED,
                        {"type": "tool_result", "tool_use_id": "2", "content": [LISTED]},
                    ),
                },
            )
        ],
        {
            "messages": [
                {"role": "tool", "tool_call_id": "1", "content": [text("Error: "), NO_IMAGE]},
                {"role": "tool", "tool_call_id": "2", "content": [LISTED]},
                {**said(NO_IMAGE)[0], "beside_result": True},
            ],
            "dropped": ("part image", "tool web_search_20250305"),
            "names": ["f"],
        },
    ),
    "a call of another server is no text": (
        [
            (
                "responses",
                {"tools": [SEARCH, {"type": "function", **F}], "input": [USER, {"type": "web_search_call"}]},
            )
        ],
        {"dropped": ("tool web_search", "item web_search_call"), "roles": ["user"]},
    ),
    # Anthropic's server would take results out of a long history; to keep all thoughts asks nothing.
    "an edit of the history that changes nothing": (
        [("messages", {"context_management": {"edits": [KEPT]}})],
        {"dropped": (), "ignored": ()},
    ),
    "an edit of the history": (
        [("messages", {"context_management": {"edits": [KEPT, CLEARED]}})],
        {"dropped": ("context_management clear_tool_uses_20250919",), "ignored": ()},
    ),
}
DROPPING = {"each part that is left out has a line in its place", "a call of another server is no text"}
"""What is read with ``drop_unsupported``."""


@pytest.mark.parametrize("name", READ)
def test_what_is_read(name: str) -> None:
    """Requests that say the same are read alike, in whatever API they say it."""
    bodies, wanted = READ[name]
    prepared = []
    for api, body in bodies:
        request = READERS[api](drops=name in DROPPING, **body)
        found = {key: getattr(request, key, None) for key in wanted}
        found |= {"names": request.toolkit.names()} if "names" in wanted else {}
        found |= {"roles": [one["role"] for one in request.messages]} if "roles" in wanted else {}
        assert found == wanted, (api, body)
        prepared.append(request.prepare)
    assert all(one == prepared[0] for one in prepared), "they are prepared alike"


def test_engines_get_their_own_fields() -> None:
    pytest.importorskip("starlette", reason="the package starlette is not installed")
    from chatparsers.gateway import VLLM, LlamaServer
    from chatparsers.gateway.engine import Job

    job = Job(get_format("qwen3").bind(), "Hi", sampling=TUNED)
    body = VLLM("http://engine").body(job)
    assert body == {**body, **TUNED}
    assert LlamaServer("http://engine").body(job)["logit_bias"] == [[5, -1.5]]


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
    without = {key: value for key, value in said.items() if not key.startswith("reasoning")}
    for field in ("reasoning", "reasoning_content", "reasoning_text", "cot_summary"):
        sent = {**without, field: message.reasoning}
        assert chat(messages=[USER, sent, result]).messages == [USER, wanted, result], field
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
    ("chat", {"structured_outputs": {"regex": 5}}, "structured_outputs.regex", "expected a string"),
    (
        "chat",
        {"structured_outputs": {"choice": ["a", 5]}},
        "structured_outputs.choice[1]",
        "expected a string",
    ),
    ("chat", {"structured_outputs": {"choice": "a"}}, "structured_outputs.choice", "found a string"),
    (
        "chat",
        {"structured_outputs": {"structural_tag": "{}"}},
        "structured_outputs.structural_tag",
        "alone, found",
    ),
    ("chat", {"structured_outputs": {"grammar": 3}}, "structured_outputs.grammar", "expected a string"),
    ("chat", {"tools": [{"type": "function", "name": "f"}]}, "tools[0]", "as the Responses API has it"),
    ("chat", {"tools": [{"name": "f", "input_schema": {}}]}, "tools[0]", "as the Messages API has it"),
    ("responses", {"tools": [TOOL]}, "tools[0]", "as chat completions has it"),
    ("responses", {"tools": [{"name": "f", "input_schema": {}}]}, "tools[0]", "as the Messages API has it"),
    ("messages", {"tools": [TOOL]}, "tools[0]", "as chat completions has it"),
    ("messages", {"tools": [{"type": "function", "name": "f"}]}, "tools[0]", "as the Responses API has it"),
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
    ("messages", {"tools": [{"type": "shell_1", "name": "bash"}]}, "tools[0].type", "'shell_1'"),
    ("messages", {"tools": [{"name": "f"}]}, "tools[0].input_schema", "expected an object"),
    ("messages", {"tool_choice": {"type": "any"}}, "tool_choice", "needs tools"),
    ("messages", {"thinking": {"type": "sometimes"}}, "thinking.type", "'sometimes'"),
    *((api, {"chat_template_kwargs": []}, "chat_template_kwargs", "found a list") for api in READERS),
    *(
        ("chat", {**one, "response_format": {"type": "json_object"}}, next(iter(one)), "send one of them")
        for one in SCHEMA_FORMS
    ),
    (
        "responses",
        {"tools": [{"type": "function", **F}], "tool_choice": UNKNOWN_ALLOWED},
        "tool_choice.tools[0].name",
        "no tool is named 'd'",
    ),
    ("messages", {"messages": said(IMAGE_OF_MESSAGES)}, "messages[0].content[0]", "text alone"),
    ("responses", {"tools": [SEARCH, {"type": "code_interpreter"}]}, "tools[1].type", "'code_interpreter'"),
    ("messages", {"context_management": [KEPT]}, "context_management", ""),
    # No field is ignored in silence.
    ("chat", {"modalities": ["text", "audio"]}, "modalities", "text"),
    ("chat", {"prediction": {"type": "content", "content": "x"}}, "prediction", ""),
    ("chat", {"web_search_options": {}}, "web_search_options", ""),
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
    assert error.openai()["error"]["message"] == str(error)  # many clients show it alone
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
