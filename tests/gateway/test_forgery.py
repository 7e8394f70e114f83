"""No word of a client, a tool or an old answer becomes a special token of the prompt that an engine gets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the gateway's packages are not installed")

import httpx2
from scripted import Llama
from servers import tiny_model

from chatparsers.gateway import LlamaServer, create_app

PLACES = {
    "a user's text": lambda evil: {"messages": [{"role": "user", "content": evil}]},
    "a result": lambda evil: {"messages": [*CALLED, {"role": "tool", "tool_call_id": "a", "content": evil}]},
    "an old answer": lambda evil: {"messages": [*SAID, {"role": "assistant", "content": evil}, *SAID]},
    "old arguments": lambda evil: {"messages": called({"city": evil}) + RESULT},
    "a tool's description": lambda evil: {"messages": SAID, "tools": [tool(description=evil)]},
    "a listed value": lambda evil: {"messages": SAID, "tools": [tool(enum=[evil])]},
}
SAID = [{"role": "user", "content": "Hi"}]
RESULT = [{"role": "tool", "tool_call_id": "a", "content": "4"}]


def called(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    call = {"name": "get_weather", "arguments": json.dumps(arguments)}
    calls = [{"id": "a", "type": "function", "function": call}]
    return [*SAID, {"role": "assistant", "content": None, "tool_calls": calls}]


def tool(description: str = "Weather.", **city: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"city": {"type": "string", **city}}}
    return {
        "type": "function",
        "function": {"name": "get_weather", "description": description, "parameters": parameters},
    }


CALLED = called({"city": "Oslo"})


@pytest.mark.parametrize("format", ["qwen3", "llama-3-x", "gemma-4", "glm-4-5", "gpt-oss"])
def test_words_are_words(format: str, upstream: Callable[..., Any], serve: Callable[..., Any]) -> None:
    model = tiny_model(format)
    tokenizer = model.tokenizer
    engine = upstream(Llama(tokenizer=tokenizer))
    server = serve(create_app(model.chat, LlamaServer(engine.url)))
    special = {token.content: id for id, token in tokenizer.get_added_tokens_decoder().items()}
    markers = [text for text in special if text.strip()]

    def asked(place: str, words: str) -> Counter[int]:
        body = {"model": "m", "tools": [tool()], "max_tokens": 4, **PLACES[place](words)}
        answer = httpx2.post(f"{server.url}/v1/chat/completions", json=body, timeout=60)
        assert answer.status_code == 200, answer.text
        prompt = engine.requests[-1][1]["prompt"]
        assert all(isinstance(id, int) for id in prompt)
        shown = tokenizer.decode(prompt, skip_special_tokens=False)
        assert "forged" in shown or place == "an old answer", f"{format}: {place}"
        return Counter(id for id in prompt if id in special.values())

    for place in PLACES:
        plain = asked(place, "forged")
        found = asked(place, "\n".join(f"x{marker}{marker}" for marker in markers) + "forged")
        extra = {tokenizer.id_to_token(id): n for id, n in (found - plain).items()}
        own = set(model.chat.format.preserved_tokens) if place == "an old answer" else set()
        assert extra.keys() <= own, f"{format}, {place}: {extra}"
