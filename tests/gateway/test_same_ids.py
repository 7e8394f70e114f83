"""Before the first request the gateway compares its ids of a telling text with the engine's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scripted import Llama, Upstream
from servers import tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from tokenizers import Regex, Tokenizer, pre_tokenizers

import chatparsers
from chatparsers.gateway import VLLM, EngineError, LlamaServer, Ollama, Settings, SGLang, create_app
from chatparsers.gateway.same_ids import same_ids, telling_text
from chatparsers.tokens.gguf_words import PRE_TOKENIZERS

ENGINES = [LlamaServer, VLLM, SGLang]


def encode(tokenizer: Any) -> Callable[[str], list[int]]:
    return lambda text: list(tokenizer.encode(text, add_special_tokens=False).ids)


def compared(made: Any, chat: Any, **more: Any) -> list[str]:
    async def compare() -> list[str]:
        try:
            return await same_ids(chat, made, **more)
        finally:
            await made.close()

    return asyncio.run(compare())


@pytest.mark.parametrize("kind", ENGINES)
def test_ids_are_compared(kind: Any, upstream: Callable[..., Upstream]) -> None:
    """Other ids are named and refused, unless they are trusted; an engine that cannot be asked is said so."""
    model = tiny_model("qwen3")
    other = Tokenizer.from_str(model.tokenizer.to_str())
    other.add_special_tokens(["4444"])
    engine, wrong, deaf = (
        upstream(Llama(), tokenize=one) for one in (encode(model.tokenizer), encode(other), None)
    )
    assert compared(kind(engine.url, model="m"), model.chat) == []
    (body,) = engine.encoded
    if kind is LlamaServer:
        assert body == {"content": telling_text(model.chat), "add_special": False, "parse_special": True}
    else:
        assert body == {"prompt": telling_text(model.chat), "add_special_tokens": False, "model": "m"}
    (id,), ours = encode(other)("4444"), encode(model.tokenizer)("4444")
    with pytest.raises(EngineError, match="--trust-ids goes on") as caught:
        compared(kind(wrong.url), model.chat)
    assert f"'4444' is {ours} here, and [{id}] there. The model would read" in str(caught.value)
    (said,) = compared(kind(wrong.url), model.chat, trusted=True)
    assert said.startswith("the engine's tokenizer gives a text other ids") and "goes on" not in said
    (said,) = compared(kind(deaf.url), model.chat)
    assert said.startswith("the engine has no /tokenize")
    assert compared(Ollama("http://127.0.0.1:9", model="m"), model.chat) == []  # it gets text


def test_the_text_tells_pre_tokenizers_apart() -> None:
    """All that llama.cpp cut in different ways in one of the texts of `test_gguf_ids`."""
    rows = json.loads((Path(__file__).parents[1] / "tokens" / "llama_cpp_words.json").read_bytes())["rows"]
    text = telling_text(tiny_model("qwen3").chat)
    found: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for row in rows:
        pre = PRE_TOKENIZERS[row["pre"][0]]
        words = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(one), "isolated") for one in pre.expressions]
        )
        cut = tuple(word for word, _ in words.pre_tokenize_str(text))
        found.setdefault(cut, set()).add(tuple(row["words"]))
    assert all(len(rows) == 1 for rows in found.values())


def test_the_gateway_does_not_start_with_other_ids(upstream: Callable[..., Upstream], capsys: Any) -> None:
    model = tiny_model("qwen3")
    wrong = upstream(Llama(["Hi."], model.tokenizer), tokenize=lambda text: [1, 2, 3])

    async def start(**more: Any) -> None:
        engine = LlamaServer(wrong.url)
        app = create_app(model.chat, engine, Settings(**more))
        try:
            async with app.router.lifespan_context(app):
                pass
        finally:
            await engine.close()

    with pytest.raises(EngineError, match="gives a text other ids"):
        asyncio.run(start())
    capsys.readouterr()
    asyncio.run(start(trust_ids=True))
    assert "warning: the engine's tokenizer gives a text other ids" in capsys.readouterr().err


@pytest.mark.parametrize("trusted", [False, True])
def test_prompts_of_an_unknown_pre_tokenizer_are_text(
    trusted: bool, upstream: Callable[..., Upstream], serve: Callable[[Any], Any], capsys: Any
) -> None:
    model = tiny_model("qwen3")
    chat = chatparsers.load(template="qwen3")
    chat.files = replace(chat.files, unknown_pre="brand-new", _read_tokenizer=lambda: model.tokenizer)
    engine = upstream(Llama(["Hi."], model.tokenizer), tokenize=encode(model.tokenizer))
    server = serve(create_app(chat, LlamaServer(engine.url), Settings(trust_ids=trusted)))
    asked = {"messages": [{"role": "user", "content": "Hello"}]}
    answer = httpx2.post(f"{server.url}/v1/chat/completions", json=asked, timeout=20)
    assert answer.json()["choices"][0]["message"]["content"] == "Hi."
    prompt = engine.requests[-1][1]["prompt"]
    assert isinstance(prompt, list) if trusted else prompt.endswith("<|im_start|>assistant\n")
    said = "pre-tokenizer 'brand-new' is not known: prompts go as text"
    assert (said in capsys.readouterr().err) == (not trusted)
