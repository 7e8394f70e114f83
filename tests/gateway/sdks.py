"""What the companies and frameworks offer their users, asked of a gateway with a store. `test_sdks.py` runs each case
before an engine that follows a script. By hand it prints a table with the versions:

    python tests/gateway/sdks.py          # needs chatparsers[gateway], tokenizers, and each SDK that is to be tried
    python tests/gateway/sdks.py --engine http://127.0.0.1:8080 --model model.gguf        # before a real llama-server

An SDK that is not installed is left out, and named.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import importlib
import importlib.metadata
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from scripted import Llama, Upstream, Wire
from servers import Server
from visions import RED, seeing

import chatparsers
from chatparsers.gateway import LlamaServer, Settings, create_app

ASK = "Weather in Oslo?"
CITY: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Oslo"}}\n</tool_call>'
CASES: dict[str, list[tuple[str, Callable[[str], object]]]] = {}
"""The cases by the package that they need."""


COLD = "It is cold."
SETTINGS = Settings(store="memory", api_key="key")
REAL = False
"""Whether a real model answers: then an answer may have other words, and a value another number."""


class Engine(Llama):
    """Thinks, calls the tool once where there is one, writes JSON where it must, and else says that it is cold."""

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        prompt = body.get("prompt")
        if isinstance(prompt, list):
            prompt = self.tokenizer.decode(prompt, skip_special_tokens=False)
        last = str(prompt).rpartition("<|im_start|>user")[2]
        text = COLD
        if "<|im_start|>tool" not in last and "get_weather" in str(prompt):
            text = CALL
        elif body.get("grammar") and not body.get("grammar_lazy"):
            text = '{"city": "Oslo", "days": 3}'
        self.pieces = ["<think>\nHm.\n</think>\n\n", text]
        await super().__call__(path, body, wire)


def cold(text: str | None) -> bool:
    """Whether an answer is the right one."""
    return bool(text) if REAL else text == COLD


def oslo(arguments: str | dict[str, Any]) -> bool:
    """Whether a call asks for the right city."""
    given = json.loads(arguments) if isinstance(arguments, str) else arguments
    return given == {"city": "Oslo"}


def stay() -> Any:
    """A class for an answer."""
    from pydantic import create_model

    return create_model("Stay", city=(str, ...), days=(int, ...))


def stays(found: Any) -> bool:
    """Whether an answer in that class is the right one."""
    return isinstance(found.days, int) and (REAL or (found.city, found.days) == ("Oslo", 3))


def case(package: str, name: str) -> Callable[[Callable[[str], object]], Callable[[str], object]]:
    def keep(function: Callable[[str], object]) -> Callable[[str], object]:
        CASES.setdefault(package, []).append((name, function))
        return function

    return keep


def installed(package: str) -> str | None:
    """The version of a package, if it is installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def get_weather(city: str) -> str:
    """The weather of a city."""
    return f"cold in {city}"


# openai


def openai(url: str, **more: Any) -> Any:
    import openai

    return openai.OpenAI(base_url=f"{url}/v1", api_key="key", max_retries=0, **more)


CHAT_TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": CITY}}
TOOL = {"type": "function", "name": "get_weather", "parameters": CITY}
MESSAGES: Any = [{"role": "user", "content": ASK}]


@case("openai", "chat: create")
def _(url: str) -> object:
    return cold(openai(url).chat.completions.create(model="m", messages=MESSAGES).choices[0].message.content)


@case("openai", "chat: a call, its result, the answer")
def _(url: str) -> object:
    client, said = openai(url), [*MESSAGES]
    first = client.chat.completions.create(model="m", messages=said, tools=[CHAT_TOOL]).choices[0].message
    said += [first, {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "cold"}]
    return (
        client.chat.completions.create(model="m", messages=said, tools=[CHAT_TOOL]).choices[0].message.content
    )


@case("openai", "chat: stream helper with tools")
def _(url: str) -> object:
    with openai(url).chat.completions.stream(model="m", messages=MESSAGES, tools=[CHAT_TOOL]) as stream:
        kinds = {event.type for event in stream}
        made = stream.get_final_completion().choices[0].message.tool_calls[0].function
    return "tool_calls.function.arguments.done" in kinds and oslo(made.arguments)


@case("openai", "chat: parse into a class")
def _(url: str) -> object:
    done = openai(url).chat.completions.parse(model="m", messages=MESSAGES, response_format=stay())
    return stays(done.choices[0].message.parsed)


@case("openai", "chat: an image")
def _(url: str) -> object:
    image = {
        "type": "image_url",
        "image_url": {"url": "data:image/png;base64," + base64.b64encode(RED).decode()},
    }
    said: Any = [{"role": "user", "content": [{"type": "text", "text": ASK}, image]}]
    return openai(url).chat.completions.create(model="m", messages=said).choices[0].message.content


@case("openai", "chat: a text file")
def _(url: str) -> object:
    file = {"filename": "a.txt", "file_data": "data:text/plain;base64," + base64.b64encode(b"Hello").decode()}
    said: Any = [{"role": "user", "content": [{"type": "file", "file": file}]}]
    return openai(url).chat.completions.create(model="m", messages=said).choices[0].message.content


@case("openai", "chat: two answers")
def _(url: str) -> object:
    return len(openai(url).chat.completions.create(model="m", messages=MESSAGES, n=2).choices) == 2


@case("openai", "responses: create")
def _(url: str) -> object:
    return cold(openai(url).responses.create(model="m", input=ASK).output_text)


@case("openai", "responses: stream helper with a call")
def _(url: str) -> object:
    with openai(url).responses.stream(model="m", input=ASK, tools=[TOOL]) as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    return kinds[-1] == "response.completed" and oslo(final.output[-1].arguments)


@case("openai", "responses: parse into a class")
def _(url: str) -> object:
    return stays(openai(url).responses.parse(model="m", input=ASK, text_format=stay()).output_parsed)


@case("openai", "responses: previous_response_id with a result")
def _(url: str) -> object:
    client = openai(url)
    first = client.responses.create(model="m", input=ASK, tools=[TOOL])
    given = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "cold"}
    more = client.responses.create(model="m", input=[given], tools=[TOOL], previous_response_id=first.id)
    return cold(more.output_text)


@case("openai", "responses: conversation")
def _(url: str) -> object:
    client = openai(url)
    made = client.conversations.create()
    client.responses.create(model="m", input=ASK, conversation=made.id)
    return len(client.conversations.items.list(made.id).data) == 3


@case("openai", "responses: background, poll")
def _(url: str) -> object:
    client = openai(url)
    found = client.responses.create(model="m", input=ASK, background=True)
    while found.status in ("queued", "in_progress"):
        found = client.responses.retrieve(found.id)
    return cold(found.output_text)


@case("openai", "responses: background, stream from a number")
def _(url: str) -> object:
    client = openai(url)
    stream = client.responses.create(model="m", input=ASK, background=True, stream=True)
    events = list(stream)
    id = events[0].response.id
    rest = list(client.responses.retrieve(id, stream=True, starting_after=events[1].sequence_number))
    return [event.type for event in rest] == [event.type for event in events[2:]]


@case("openai", "responses: retrieve, input_items, delete")
def _(url: str) -> object:
    import openai as sdk

    client = openai(url)
    found = client.responses.create(model="m", input=ASK)
    assert client.responses.retrieve(found.id).output_text == found.output_text
    assert len(client.responses.input_items.list(found.id).data) == 1
    client.responses.delete(found.id)
    try:
        client.responses.retrieve(found.id)
    except sdk.NotFoundError:
        return True
    return False


@case("openai", "responses: input_tokens")
def _(url: str) -> object:
    return openai(url).responses.input_tokens.count(model="m", input=ASK).input_tokens > 3


@case("openai", "responses: encrypted reasoning is carried back")
def _(url: str) -> object:
    client = openai(url)
    given: Any = {"model": "m", "include": ["reasoning.encrypted_content"], "store": False}
    first = client.responses.create(input=ASK, tools=[TOOL], **given)
    assert first.output[0].encrypted_content
    result = {"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "cold"}
    items = [
        {"role": "user", "content": ASK},
        *(one.model_dump(exclude_none=True) for one in first.output),
        result,
    ]
    return cold(client.responses.create(input=items, tools=[TOOL], **given).output_text)


@case("openai", "responses: compact")
def _(url: str) -> object:
    return openai(url).responses.compact(model="m", input=[{"role": "user", "content": ASK}]).output


@case("openai", "models: list, retrieve")
def _(url: str) -> object:
    client = openai(url)
    return client.models.retrieve(client.models.list().data[0].id).id


@case("openai", "failure: a wrong key is AuthenticationError")
def _(url: str) -> object:
    import openai as sdk

    try:
        openai(url).with_options(api_key="wrong").chat.completions.create(model="m", messages=MESSAGES)
    except sdk.AuthenticationError:
        return True
    return False


@case("openai", "failure: too long is BadRequestError with both numbers")
def _(url: str) -> object:
    import openai as sdk

    try:
        openai(url).chat.completions.create(model="m", messages=[{"role": "user", "content": "word " * 9000}])
    except sdk.BadRequestError as error:
        return error.code == "context_length_exceeded"
    return False


@case("openai", "failure: a misspelt choice is BadRequestError with its path")
def _(url: str) -> object:
    import openai as sdk

    try:
        openai(url).responses.create(model="m", input=ASK, tool_choice={"type": "function", "name": "no"})
    except sdk.BadRequestError as error:
        return error.param
    return False


# anthropic


def anthropic(url: str) -> Any:
    import anthropic

    return anthropic.Anthropic(base_url=url, api_key="key", max_retries=0)


CLAUDE_TOOL = {"name": "get_weather", "input_schema": CITY}


@case("anthropic", "messages: create with thinking")
def _(url: str) -> object:
    budget = {"type": "enabled", "budget_tokens": 1024}
    found = anthropic(url).messages.create(model="m", max_tokens=2000, messages=MESSAGES, thinking=budget)
    return [block.type for block in found.content] == ["thinking", "text"]


@case("anthropic", "messages: stream helper with a call")
def _(url: str) -> object:
    with anthropic(url).messages.stream(
        model="m", max_tokens=99, messages=MESSAGES, tools=[CLAUDE_TOOL]
    ) as stream:
        final = stream.get_final_message()
    return final.stop_reason == "tool_use" and oslo(final.content[-1].input)


@case("anthropic", "messages: tool runner")
def _(url: str) -> object:
    import anthropic as sdk

    made = sdk.beta_tool(get_weather)
    runner = anthropic(url).beta.messages.tool_runner(
        model="m", max_tokens=99, messages=MESSAGES, tools=[made]
    )
    return cold(runner.until_done().content[-1].text)


@case("anthropic", "messages: parse into a class")
def _(url: str) -> object:
    found = anthropic(url).messages.parse(model="m", max_tokens=99, messages=MESSAGES, output_format=stay())
    return stays(found.parsed_output)


@case("anthropic", "messages: a text document")
def _(url: str) -> object:
    source = {"type": "text", "media_type": "text/plain", "data": "Hello"}
    said: Any = [
        {"role": "user", "content": [{"type": "document", "source": source}, {"type": "text", "text": ASK}]}
    ]
    return anthropic(url).messages.create(model="m", max_tokens=99, messages=said).content


@case("anthropic", "messages: an image")
def _(url: str) -> object:
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(RED).decode()}
    said: Any = [
        {"role": "user", "content": [{"type": "image", "source": source}, {"type": "text", "text": ASK}]}
    ]
    return anthropic(url).messages.create(model="m", max_tokens=99, messages=said).content


@case("anthropic", "messages: count_tokens; models")
def _(url: str) -> object:
    client = anthropic(url)
    return (
        client.messages.count_tokens(model="m", messages=MESSAGES).input_tokens > 3
        and client.models.list().data
    )


# frameworks


@case("langchain-openai", "ChatOpenAI: tools, structured output, Responses that go on")
def _(url: str) -> object:
    from langchain_openai import ChatOpenAI

    given: Any = {"base_url": f"{url}/v1", "api_key": "key", "model": "m"}
    assert oslo(ChatOpenAI(**given).bind_tools([get_weather]).invoke(ASK).tool_calls[0]["args"])
    assert ChatOpenAI(**given).with_structured_output({"title": "stay", **CITY}).invoke(ASK)["city"] == "Oslo"
    model = ChatOpenAI(**given, use_responses_api=True, use_previous_response_id=True)
    first = model.invoke(ASK)
    return model.invoke([("user", ASK), first, ("user", "And now?")]).text


@case("langchain-anthropic", "ChatAnthropic: tools, streamed")
def _(url: str) -> object:
    from langchain_anthropic import ChatAnthropic

    model = ChatAnthropic(base_url=url, api_key="key", model="m").bind_tools([get_weather])
    chunks = list(model.stream(ASK))
    return oslo(sum(chunks[1:], chunks[0]).tool_calls[0]["args"])


def goes_on(model: Any, **settings: Any) -> bool:
    from pydantic_ai import Agent

    agent = Agent(model, tools=[get_weather], model_settings=settings)
    first = agent.run_sync(ASK)
    return cold(first.output) and cold(
        agent.run_sync("And now?", message_history=first.all_messages()).output
    )


@case("pydantic-ai-slim", "Agent: chat, Responses, Responses by previous_response_id")
def _(url: str) -> object:
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=f"{url}/v1", api_key="key")
    kept = OpenAIResponsesModel("m", provider=provider)
    chat = OpenAIChatModel("m", provider=provider)
    return goes_on(chat) and goes_on(kept) and goes_on(kept, openai_previous_response_id="auto")


@case("pydantic-ai-slim", "Agent: Anthropic")
def _(url: str) -> object:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return goes_on(AnthropicModel("m", provider=AnthropicProvider(base_url=url, api_key="key")))


@case("openai-agents", "Runner: Responses, previous_response_id, conversation")
def _(url: str) -> object:
    import openai as sdk

    agents: Any = importlib.import_module("agents")  # a type checker would take the folder beside this file
    agents.set_tracing_disabled(True)

    async def run() -> object:
        client = sdk.AsyncOpenAI(base_url=f"{url}/v1", api_key="key", max_retries=0)
        model = agents.OpenAIResponsesModel("m", openai_client=client)
        agent = agents.Agent("a", model=model, tools=[agents.function_tool(get_weather)])
        first = await agents.Runner.run(agent, ASK)
        assert cold(first.final_output)
        more = await agents.Runner.run(agent, "And now?", previous_response_id=first.last_response_id)
        assert cold(more.final_output)
        made = await client.conversations.create()
        return (await agents.Runner.run(agent, ASK, conversation_id=made.id)).final_output

    return asyncio.run(run())


@case("litellm", "completion, responses, anthropic_messages")
def _(url: str) -> object:
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it asks for a list of prices
    import litellm

    litellm.telemetry = False
    given: Any = {"api_base": f"{url}/v1", "api_key": "key", "model": "openai/m"}
    chunks = list(litellm.completion(messages=MESSAGES, tools=[CHAT_TOOL], stream=True, **given))
    whole: Any = litellm.stream_chunk_builder(chunks)
    assert oslo(whole.choices[0].message.tool_calls[0].function.arguments)
    first: Any = litellm.responses(input=ASK, **given)
    assert litellm.responses(input="And now?", previous_response_id=first.id, **given)
    other: Any = {"api_base": url, "api_key": "key", "model": "anthropic/m"}
    return litellm.completion(messages=MESSAGES, max_tokens=99, **other).choices[0].message.content


@case("instructor", "from_openai: a class")
def _(url: str) -> object:
    import instructor

    client = instructor.from_openai(openai(url), mode=instructor.Mode.JSON_SCHEMA)
    found: Any = client.chat.completions.create(model="m", messages=MESSAGES, response_model=stay())
    return stays(found)


@contextmanager
def gateway() -> Iterator[str]:
    """The URL of a gateway before an engine that follows the script of these cases. Its model sees."""
    model = seeing()
    props = {"modalities": {"vision": True}}
    engine = Upstream(Engine(tokenizer=model.tokenizer), context=8192, props=props)
    server = Server(create_app(model.chat, LlamaServer(engine.url), SETTINGS))
    yield server.url
    server.close()
    engine.close()


@contextmanager
def real_gateway(engine: str, model: str) -> Iterator[str]:
    settings = replace(SETTINGS, lenient_calls=True, max_tokens=200)
    server = Server(
        create_app(chatparsers.load(model), LlamaServer(engine, stall=1800), settings), patience=600
    )
    yield server.url
    server.close()


def main() -> None:
    global REAL
    parser = argparse.ArgumentParser()
    parser.add_argument("--engine")
    parser.add_argument("--model", help="the file of the model that the engine runs")
    parser.add_argument("-v", action="store_true", help="show tracebacks")
    given = parser.parse_args()
    REAL = given.engine is not None
    counts = {"works": 0, "does not": 0}
    print("| package | case | |\n|---|---|---|")
    with real_gateway(given.engine, given.model) if REAL else gateway() as url:
        for package, cases in CASES.items():
            version = installed(package)
            if version is None:
                print(f"| {package} | not installed | |")
                continue
            for name, function in cases:
                try:
                    found = "works" if function(url) else "wrong"
                except Exception as error:
                    found = f"{type(error).__name__}: {str(error)[:200]}".replace("\n", " ")
                    if given.v:
                        traceback.print_exc()
                counts["works" if found == "works" else "does not"] += 1
                print(f"| {package} {version} | {name} | {found} |", flush=True)
    print(counts)


if __name__ == "__main__":
    main()
