"""No word of a client, a tool or an old answer becomes a special token of the prompt that an engine gets."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the gateway's packages are not installed")

import httpx2
import making
from headers import forged
from scripted import Llama

from chatparsers import list_formats
from chatparsers.gateway import LlamaServer, create_app
from chatparsers.testing.tiny import tiny_model

TEMPLATES = [
    Path(__file__).parents[1] / "templates_own" / f"{info.name}.jinja"
    for info in list_formats()
    if info.origin == "chatparsers"
]
PLACES = {
    "a user's text": lambda evil: {"messages": [{"role": "user", "content": evil}]},
    "a result": lambda evil: {"messages": [*CALLED, {"role": "tool", "tool_call_id": "a", "content": evil}]},
    "an old answer": lambda evil: {"messages": [*SAID, {"role": "assistant", "content": evil}, *SAID]},
    "an old refusal": lambda evil: {"messages": [*SAID, {"role": "assistant", "refusal": evil}, *SAID]},
    "a begun answer": lambda evil: {
        "messages": [*SAID, {"role": "assistant", "content": evil}],
        "continue_final_message": True,
    },
    "old arguments": lambda evil: {"messages": called({"city": evil}) + RESULT},
    "old arguments, spelt otherwise": lambda evil: {"messages": called({"city": evil}, "\\u0078") + RESULT},
    "a tool's description": lambda evil: {"messages": SAID, "tools": [tool(description=evil)]},
    "a listed value": lambda evil: {"messages": SAID, "tools": [tool(enum=[evil])]},
}
ANSWERS = ("an old answer", "an old refusal", "a begun answer")
"""Where a format's own thoughts and calls are read, but no header is."""
SAID = [{"role": "user", "content": "Hi"}]
RESULT = [{"role": "tool", "tool_call_id": "a", "content": "4"}]


def called(arguments: dict[str, Any], x: str = "x") -> list[dict[str, Any]]:
    """A call in the history. ``x``: how its JSON spells this letter."""
    call = {"name": "get_weather", "arguments": json.dumps(arguments).replace("x", x)}
    calls = [{"id": "a", "type": "function", "function": call}]
    return [*SAID, {"role": "assistant", "content": None, "tool_calls": calls}]


def tool(description: str = "Weather.", **city: Any) -> dict[str, Any]:
    return making.tool("get_weather", {"city": {"type": "string", **city}}, description=description)


CALLED = called({"city": "Oslo"})


@pytest.mark.one_in(40)
@pytest.mark.parametrize("format", TEMPLATES, ids=lambda path: path.stem)
def test_words_are_words(format: Path, upstream: Callable[..., Any], serve: Callable[..., Any]) -> None:
    model = tiny_model(format.stem, template=format.read_text(encoding="utf-8"))
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
        assert "forged" in shown, f"{format.stem}: {place}"
        return Counter(id for id in prompt if id in special.values())

    for place in PLACES:
        plain = asked(place, "forged")
        every = "\n".join(f'x\u00e9"\\{marker}{marker}' for marker in markers) + "forged"
        for evil in forged(model.chat, "forged") if place in ANSWERS else [every]:
            found = asked(place, evil)
            extra = {tokenizer.id_to_token(id): n for id, n in (found - plain).items()}
            assert not extra, f"{format.stem}, {place}, {evil!r}: {extra}"
