"""``python holds.py PORT CLIENT``: what a Python client makes of each shape, a JSON line each."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

SHAPES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("shapes.json").read_text("utf-8"))
PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": True}
NAMES = ("get_weather", "get_time", "ping", "add", "get_order", "set", "run_sql")
CHAT_TOOLS: Any = [
    {"type": "function", "function": {"name": name, "parameters": PARAMETERS}} for name in NAMES
]
MESSAGE_TOOLS: Any = [{"name": name, "input_schema": PARAMETERS} for name in NAMES]
ASK: Any = [{"role": "user", "content": "?"}]


def text(value: Any) -> Any:
    """Arguments as JSON text: an SDK gives them as text or as an object."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def calls_of(message: Any) -> list[list[Any]]:
    """The calls of a message of OpenAI's types, function tools and custom tools; a client may leave these as a dict."""
    found = []
    for call in message.tool_calls or []:
        if call.type == "custom":
            custom = call.custom if isinstance(call.custom, dict) else vars(call.custom)
            found.append([custom["name"], custom["input"]])
        else:
            found.append([call.function.name, call.function.arguments])
    return found


def openai_chat(url: str) -> dict[str, Any]:
    import openai

    client = openai.OpenAI(base_url=url + "/v1", api_key="k", max_retries=0)
    with client.chat.completions.stream(model="m", messages=ASK, tools=CHAT_TOOLS) as stream:
        for _ in stream:
            pass
        done = stream.get_final_completion()
    choice, message = done.choices[0], done.choices[0].message
    held = message.to_dict()
    usage = [done.usage.prompt_tokens, done.usage.completion_tokens] if done.usage else None
    reasoning = held.get("reasoning_content") or held.get("reasoning") or ""
    return {
        "content": message.content or "",
        "reasoning": reasoning,
        "calls": calls_of(message),
        "finish": choice.finish_reason,
        "usage": usage,
        "refusal": message.refusal or "",
    }


def langchain_chat(url: str) -> dict[str, Any]:
    from langchain_openai import ChatOpenAI

    model: Any = ChatOpenAI(model="m", base_url=url + "/v1", api_key="k", max_retries=0, stream_usage=True)
    whole: Any = None
    for chunk in model.bind_tools(CHAT_TOOLS).stream("?"):
        whole = chunk if whole is None else whole + chunk
    calls = [[call["name"], text(call["args"])] for call in whole.tool_calls]
    calls += [[call["name"], text(call["args"])] for call in whole.invalid_tool_calls]
    usage = whole.usage_metadata
    extra = whole.additional_kwargs
    return {
        "content": whole.content,
        "reasoning": extra.get("reasoning_content") or extra.get("reasoning") or "",
        "calls": calls,
        "finish": whole.response_metadata.get("finish_reason"),
        "usage": [usage["input_tokens"], usage["output_tokens"]] if usage else None,
        "refusal": extra.get("refusal") or "",
        "invalid": len(whole.invalid_tool_calls),
    }


def litellm_chat(url: str) -> dict[str, Any]:
    import litellm

    litellm.suppress_debug_info = True
    chunks = list(
        litellm.completion(
            model="openai/m",
            api_base=url + "/v1",
            api_key="k",
            messages=ASK,
            tools=CHAT_TOOLS,
            stream=True,
            stream_options={"include_usage": True},
            num_retries=0,
        )
    )
    whole: Any = litellm.stream_chunk_builder(chunks, messages=ASK)
    choice, message = whole.choices[0], whole.choices[0].message
    usage = [whole.usage.prompt_tokens, whole.usage.completion_tokens]
    return {
        "content": message.content or "",
        "reasoning": getattr(message, "reasoning_content", None) or "",
        "calls": calls_of(message),
        "finish": choice.finish_reason,
        "usage": usage,
        "refusal": (
            getattr(message, "refusal", None) or (message.provider_specific_fields or {}).get("refusal") or ""
        ),
    }


def pydantic_ai(url: str, model: Any) -> dict[str, Any]:
    import asyncio

    from pydantic_ai.direct import model_request_stream
    from pydantic_ai.messages import ModelRequest
    from pydantic_ai.models import ModelRequestParameters
    from pydantic_ai.tools import ToolDefinition

    tools = [ToolDefinition(name=name, parameters_json_schema=PARAMETERS) for name in NAMES]
    parameters = ModelRequestParameters(function_tools=tools)

    async def ask() -> Any:
        request = [ModelRequest.user_text_prompt("?")]
        async with model_request_stream(model, request, model_request_parameters=parameters) as stream:
            async for _ in stream:
                pass
            return stream.get()

    whole = asyncio.run(ask())
    parts: dict[str, list[Any]] = {"text": [], "thinking": [], "tool-call": []}
    for part in whole.parts:
        parts.setdefault(part.part_kind, []).append(part)
    return {
        "content": "".join(part.content for part in parts["text"]),
        "reasoning": "".join(part.content for part in parts["thinking"]),
        "calls": [[part.tool_name, text(part.args)] for part in parts["tool-call"]],
        "finish": whole.finish_reason,
        "usage": [whole.usage.input_tokens, whole.usage.output_tokens],
        "refusal": "",
    }


def pydantic_ai_chat(url: str) -> dict[str, Any]:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return pydantic_ai(url, OpenAIChatModel("m", provider=OpenAIProvider(base_url=url + "/v1", api_key="k")))


def pydantic_ai_messages(url: str) -> dict[str, Any]:
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    return pydantic_ai(url, AnthropicModel("m", provider=AnthropicProvider(base_url=url, api_key="k")))


def anthropic_messages(url: str) -> dict[str, Any]:
    import anthropic

    client = anthropic.Anthropic(base_url=url, api_key="k", max_retries=0)
    with client.messages.stream(model="m", max_tokens=50, messages=ASK, tools=MESSAGE_TOOLS) as stream:
        message = stream.get_final_message()
    blocks = message.content
    return {
        "content": "".join(block.text for block in blocks if block.type == "text"),
        "reasoning": "".join(block.thinking for block in blocks if block.type == "thinking"),
        "calls": [[block.name, text(block.input)] for block in blocks if block.type == "tool_use"],
        "finish": message.stop_reason,
    }


def langchain_messages(url: str) -> dict[str, Any]:
    from langchain_anthropic import ChatAnthropic

    model: Any = ChatAnthropic(model="m", base_url=url, api_key="k", max_retries=0, max_tokens=50)
    whole: Any = None
    for chunk in model.bind_tools(MESSAGE_TOOLS).stream("?"):
        whole = chunk if whole is None else whole + chunk
    blocks = [{"type": "text", "text": whole.content}] if isinstance(whole.content, str) else whole.content
    calls = [[call["name"], text(call["args"])] for call in whole.tool_calls]
    calls += [[call["name"], text(call["args"])] for call in whole.invalid_tool_calls]
    return {
        "content": "".join(block.get("text", "") for block in blocks if block["type"] == "text"),
        "reasoning": "".join(block.get("thinking", "") for block in blocks if block["type"] == "thinking"),
        "calls": calls,
        "finish": whole.response_metadata.get("stop_reason"),
        "invalid": len(whole.invalid_tool_calls),
    }


CLIENTS: dict[str, tuple[str, Callable[[str], dict[str, Any]]]] = {
    "openai (Python)": ("chat", openai_chat),
    "LangChain (Python)": ("chat", langchain_chat),
    "LiteLLM": ("chat", litellm_chat),
    "pydantic-ai": ("chat", pydantic_ai_chat),
    "anthropic (Python)": ("messages", anthropic_messages),
    "LangChain anthropic (Python)": ("messages", langchain_messages),
    "pydantic-ai anthropic": ("messages", pydantic_ai_messages),
}


def held_of(ask: Callable[[str], dict[str, Any]], url: str) -> dict[str, Any]:
    """What a client holds at the end of the stream at an address."""
    try:
        return ask(url)
    except Exception as error:
        return {"raises": f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    port, only = sys.argv[1], sys.argv[2:]
    for client, (api, ask) in CLIENTS.items():
        if only and client not in only:
            continue
        for name, shape in SHAPES.items():
            if shape["api"] != api:
                continue
            held = held_of(ask, f"http://127.0.0.1:{port}/{name}")
            print(json.dumps({"client": client, "shape": name, "held": held}, ensure_ascii=False), flush=True)
