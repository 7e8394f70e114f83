"""vLLM: its real serving layer over an engine that samples under the request's own structural tag, or from a script.

What is real: the plugin's entry point, ``ModelConfig``, ``HfRenderer``, ``OnlineRenderer``, ``OpenAIServingModels`` and
``OpenAIServingChat``. What is not: the engine core, which needs a GPU build.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import warnings
from functools import cache
from typing import Any

import pytest
from tinies import FORMATS, MESSAGES, RUNS, TOOLS, Table, tiny, wrong_in

import chatparsers
from chatparsers.serving import Usage

pytest.importorskip("vllm", reason="vLLM is not installed: tests/hosts/install vllm")
transformers = pytest.importorskip("transformers")

with warnings.catch_warnings():  # vLLM's own are its own
    warnings.simplefilter("ignore")
    from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
    from vllm.entrypoints.openai.chat_completion.serving import OpenAIServingChat
    from vllm.entrypoints.openai.models.protocol import BaseModelPath
    from vllm.entrypoints.openai.models.serving import OpenAIServingModels
    from vllm.exceptions import VLLMValidationError
    from vllm.parser.parser_manager import ParserManager
    from vllm.plugins import load_general_plugins
    from vllm.renderers.online_renderer import OnlineRenderer
    from vllm_engine import Engine

load_general_plugins()
pytestmark = pytest.mark.filterwarnings("ignore:max_tokens is deprecated:DeprecationWarning")
NAMES = {"tool_parser": "chatparsers", "reasoning_parser": "chatparsers", "enable_auto_tools": True}
ANSWER = {
    "role": "assistant",
    "reasoning_content": "The user wants weather.\nTwo cities.",
    "content": "Let me look.",
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": text}}
        for text in (
            '{"city": "Oslo", "days": 3}',
            '{"city": "Tromsø \\"N\\"", "days": 1, "unit": "celsius"}',
        )
    ],
}


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Any:
    @cache
    def server(name: str) -> tuple[Engine, Any]:
        engine = Engine(name, tiny(name).write_folder(tmp_path_factory.mktemp(name)))
        shared = {"request_logger": None, "chat_template": None, "chat_template_content_format": "auto"}
        online = OnlineRenderer(engine.model_config, engine.renderer, **shared, **NAMES)
        models = OpenAIServingModels(engine, [BaseModelPath(name="m", model_path="m")])
        return engine, OpenAIServingChat(
            engine, models, "assistant", online_renderer=online, **shared, **NAMES
        )

    return server


async def _streamed(serving: Any, request: Any) -> tuple[dict[str, Any], str, int]:
    message: dict[str, Any] = {"content": "", "reasoning": "", "tool_calls": []}
    reason, deltas = "", 0
    async for frame in await serving.create_chat_completion(request):
        data = frame.removeprefix("data: ").strip()
        if data == "[DONE]":
            continue
        chunk = json.loads(data)
        assert "error" not in chunk, chunk
        for choice in chunk["choices"]:
            reason = choice.get("finish_reason") or reason
            for key in ("content", "reasoning"):
                message[key] += choice["delta"].get(key) or ""
            for call in choice["delta"].get("tool_calls") or ():
                deltas += 1
                if call.get("id"):
                    message["tool_calls"].append({"id": call["id"], **call["function"]})
                else:
                    message["tool_calls"][call["index"]]["arguments"] += call["function"]["arguments"]
    return message, reason, deltas


async def _whole(serving: Any, request: Any) -> tuple[dict[str, Any], str, int]:
    response = await serving.create_chat_completion(request)
    assert hasattr(response, "choices"), response
    choice = response.model_dump()["choices"][0]
    found = choice["message"]
    calls = [{"id": call["id"], **call["function"]} for call in found.get("tool_calls") or ()]
    texts = {key: found.get(key) or "" for key in ("content", "reasoning")}
    return {**texts, "tool_calls": calls}, choice["finish_reason"], len(calls)


def ask(serving: Any, stream: bool, **body: Any) -> tuple[dict[str, Any], str, int]:
    request = ChatCompletionRequest(model="m", messages=MESSAGES, stream=stream, temperature=1.0, **body)
    return asyncio.run((_streamed if stream else _whole)(serving, request))


def plain(message: chatparsers.Message) -> dict[str, Any]:
    return {
        "content": message.content,
        "reasoning": message.reasoning,
        "tool_calls": [(call.name, call.arguments) for call in message.tool_calls],
    }


def named(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "tool_calls": [(call["name"], call["arguments"]) for call in answer["tool_calls"]]}


@pytest.mark.parametrize("choice", ["required", "auto"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_run_is_complete_valid_and_equal(name: str, choice: str, servers: Any) -> None:
    """Sampled under the tag that reached the engine; the streamed and the whole answer are the parse of the ids."""
    engine, serving = servers(name)
    table = Table()
    for seed in range(RUNS):
        engine.script, engine.seed = None, seed
        streamed, reason, _ = ask(serving, True, tools=TOOLS, tool_choice=choice)
        assert engine.seen.skip_special_tokens is False and engine.others["reasoning_ended"] is True
        engine.script = list(engine.written)
        whole, whole_reason, _ = ask(serving, False, tools=TOOLS, tool_choice=choice)
        turn = engine.model.chat.prepare(MESSAGES, tools=TOOLS, tool_choice=choice)
        message = turn.parse(engine.script)
        table.add(message, message, choice == "required")
        assert named(streamed) == named(whole) == plain(message)
        assert reason == whole_reason == ("tool_calls" if message.tool_calls else "stop")
        assert not [
            wrong for call in streamed["tool_calls"] if (wrong := wrong_in(call["name"], call["arguments"]))
        ]
    table.check(f"vLLM, {name}, {choice}", RUNS)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("name", ["qwen3", "qwen3-coder", "gpt-oss"])
def test_reasoning_content_and_parallel_calls(name: str, choice: str, stream: bool, servers: Any) -> None:
    engine, serving = servers(name)
    said = {**ANSWER, "content": "" if choice == "required" else ANSWER["content"]}
    text = engine.model.format.render(said, TOOLS)
    engine.script = [*engine.model.tokenizer.encode(text).ids]
    if engine.script[-1] not in engine.model.eos_ids:
        engine.script.append(engine.model.eos_ids[-1 if name == "gpt-oss" else 0])
    answer, reason, deltas = ask(serving, stream, tools=TOOLS, tool_choice=choice)
    read = engine.model.chat.prepare(MESSAGES, tools=TOOLS, tool_choice=choice).parse(engine.script)
    assert named(answer) == plain(read)
    assert answer["reasoning"] == said["reasoning_content"] and answer["content"] == said["content"]
    assert reason == "tool_calls"
    wanted = [
        json.loads(call["function"]["arguments"]) for call in said["tool_calls"][: len(read.tool_calls)]
    ]
    assert [json.loads(call["arguments"]) for call in answer["tool_calls"]] == wanted
    assert not stream or deltas > 2 * len(wanted)


def test_the_call_of_a_prompt_that_opens_the_reasoning(servers: Any) -> None:
    """``enable_thinking`` reaches the turn: the prompt's end decides how the answer is read."""
    engine, serving = servers("qwen3")
    engine.script = [*engine.model.tokenizer.encode("Hello there.").ids, engine.model.eos_ids[0]]
    answer, reason, _ = ask(serving, True, chat_template_kwargs={"enable_thinking": False})
    assert (answer["content"], answer["reasoning"], reason) == ("Hello there.", "", "stop")


def test_a_schema_for_the_answer_is_in_our_grammar(servers: Any) -> None:
    engine, serving = servers("qwen3")
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    for seed in range(5):
        engine.script, engine.seed = None, seed
        format = {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}
        answer, _, _ = ask(serving, True, response_format=format)
        assert isinstance(json.loads(answer["content"])["a"], int)


@pytest.mark.parametrize("budget", [0, 4])
@pytest.mark.parametrize("name", ["qwen3", "gpt-oss"])
def test_a_budget_for_thoughts_is_in_our_grammar(name: str, budget: int, servers: Any) -> None:
    """vLLM's own needs a reasoning parser that names one marker, and forces its ids."""
    engine, serving = servers(name)
    thoughts = []
    for seed in range(8):
        engine.script, engine.seed = None, seed
        answer, _, _ = ask(serving, True, tools=TOOLS, tool_choice="required", thinking_token_budget=budget)
        assert engine.seen.thinking_token_budget is None and answer["tool_calls"]
        turn = engine.model.chat.prepare(MESSAGES, tools=TOOLS, tool_choice="required")
        thoughts.append(Usage.of(turn.parse(engine.written)).reasoning)
    assert max(thoughts) <= budget
    assert budget == 0 or max(thoughts) > 0


def test_a_schema_that_is_wrong_is_the_clients_error(servers: Any) -> None:
    _, serving = servers("qwen3")
    parameters = {"type": "object", "properties": {"a": {"type": "sting"}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}}]
    with pytest.raises(VLLMValidationError, match="sting"):
        ask(serving, False, tools=tools)


def test_stop_texts_and_cuts(servers: Any) -> None:
    engine, serving = servers("qwen3")
    engine.script = engine.model.tokenizer.encode("One two three.").ids
    for stream in (True, False):
        answer, reason, _ = ask(serving, stream, tools=TOOLS, tool_choice="auto")
        assert (answer["content"], reason) == ("One two three.", "length")
        answer, _, _ = ask(serving, stream, tools=TOOLS, stop=[" three"])
        assert answer["content"] == "One two"


def test_random_texts_stream_as_they_are_read_whole(servers: Any) -> None:
    engine, serving = servers("qwen3-coder")
    draw = random.Random(3)
    size = engine.model.tokenizer.get_vocab_size()
    for _ in range(10):
        engine.script = [draw.randrange(size) for _ in range(60)]
        answers = [named(ask(serving, stream, tools=TOOLS)[0]) for stream in (True, False)]
        assert answers[0] == answers[1]


def test_other_parsers_are_what_they_were() -> None:
    from chatparsers.adapters.vllm import register

    register()
    register()
    found = ParserManager.get_parser(tool_parser_name="hermes", enable_auto_tools=True)
    assert found is not None and not found.__module__.startswith("chatparsers")
    with pytest.raises(TypeError, match="cannot be combined, because chatparsers reads both"):
        ParserManager.get_parser(
            tool_parser_name="chatparsers", reasoning_parser_name="qwen3", enable_auto_tools=True
        )


def test_another_vllm_is_named_when_the_parser_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from chatparsers.adapters import vllm as adapter

    monkeypatch.setattr(ParserManager, "_compose_parser", classmethod(lambda cls, other: None))
    adapter.register()  # it must not fail: it runs in every process of vLLM
    with pytest.raises(ImportError, match=r"vLLM .*_compose_parser|vLLM .*has the parameters \(cls, other\)"):
        adapter.check()


def test_a_tokenizer_without_a_template_is_refused_at_the_start() -> None:
    from chatparsers.adapters._vllm_parser import ChatParser

    copied = tiny("lfm2").tokenizer.from_str(tiny("lfm2").tokenizer.to_str())
    bare = transformers.PreTrainedTokenizerFast(tokenizer_object=copied)
    with pytest.raises(TypeError, match="has no chat template"):
        ParserManager.validate_parser_tokenizer(
            ChatParser, bare, tool_parser_name="chatparsers", model_name="m"
        )


def test_the_plugin_imports_nothing_before_a_parser_is_asked_for() -> None:
    """It runs in every process of vLLM of whoever has this package installed."""
    code = """
import sys
import vllm.engine.arg_utils  # what loads plugins
from importlib.metadata import entry_points
before = set(sys.modules)
for point in entry_points(group="vllm.general_plugins"):
    if point.name == "chatparsers":
        point.load()()
print(sorted(name for name in set(sys.modules) - before if name.startswith("chatparsers")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    adapter = (f"chatparsers.adapters{part}" for part in ("", "._check", "._vllm_check", ".vllm"))
    assert done.stdout.strip() == repr(["chatparsers", *adapter, "chatparsers.lazy"])


@pytest.fixture(scope="session")
def responses(servers: Any) -> Any:
    """The real ``OpenAIServingResponses`` over the same engine."""
    from vllm.entrypoints.openai.responses.serving import OpenAIServingResponses

    @cache
    def server(name: str) -> tuple[Engine, Any]:
        engine, chat = servers(name)
        serving = OpenAIServingResponses(
            engine,
            chat.models,
            chat.online_renderer,
            request_logger=None,
            chat_template=None,
            chat_template_content_format="auto",
            **NAMES,
        )
        return engine, serving

    return server


def respond(serving: Any, stream: bool, **body: Any) -> tuple[dict[str, Any], str]:
    """The answer of the Responses API, in the form of `named`, and its status."""
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

    tools = [{"type": "function", **tool["function"]} for tool in body.pop("tools", TOOLS)]
    asked = {"input": "What is the weather in Oslo?", "tools": tools, "stream": stream, **body}
    request = ResponsesRequest(model="m", **asked)

    async def run() -> Any:
        made = await serving.create_responses(request)
        if not stream:
            return made
        return [event async for event in made][-1].response

    answer = asyncio.run(run())
    assert hasattr(answer, "output"), answer
    found: dict[str, Any] = {"content": "", "reasoning": "", "tool_calls": []}
    for item in answer.output:
        if item.type == "reasoning":
            found["reasoning"] += "".join(part.text for part in item.content)
        elif item.type == "message":
            found["content"] += "".join(part.text for part in item.content)
        else:
            found["tool_calls"].append((item.name, item.arguments))
    return found, answer.status


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("name", ["qwen3", "qwen3-coder"])
def test_the_responses_api(name: str, choice: str, responses: Any) -> None:
    """Sampled under the tag of the request; the streamed and the whole answer are the parse of the ids."""
    engine, serving = responses(name)
    for seed in range(8):
        engine.script, engine.seed = None, seed
        streamed, status = respond(serving, True, tool_choice=choice)
        engine.script = list(engine.written)
        turn = engine.model.chat.prepare(MESSAGES, tools=TOOLS, tool_choice=choice)
        message = turn.parse(engine.script)
        assert streamed == plain(message) and status == "completed"
        whole, _ = respond(serving, False, tool_choice=choice)
        assert whole == plain(message)
        assert not [wrong for call in message.tool_calls if (wrong := wrong_in(call.name, call.arguments))]
        assert choice == "auto" or message.tool_calls


def test_what_of_a_responses_request_is_read(responses: Any) -> None:
    """Images and stored conversations are vLLM's business. Tools that a server runs itself have no grammar here."""
    from vllm.entrypoints.openai.responses.protocol import ResponsesRequest

    from chatparsers.adapters._vllm_parser import ChatParser

    engine, _ = responses("qwen3")
    tools = [{"type": "function", **tool["function"]} for tool in TOOLS]
    image = {"type": "input_image", "image_url": "https://example.org/cat.png", "detail": "auto"}
    given = {"model": "m", "tools": tools, "tool_choice": "required"}
    for more in (
        {"input": [{"role": "user", "content": [image]}]},
        {"input": "Hi", "previous_response_id": "resp_1"},
    ):
        request = ChatParser(engine.tokenizer).adjust_request(ResponsesRequest(**given, **more))
        assert "get_weather" in request.structured_outputs.structural_tag
    hosted = {**given, "tools": [*tools, {"type": "code_interpreter", "container": {"type": "auto"}}]}
    with pytest.raises(VLLMValidationError, match="code_interpreter"):
        ChatParser(engine.tokenizer).adjust_request(ResponsesRequest(**hosted, input="Hi"))
