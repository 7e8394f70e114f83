"""No words begin a message: what a template writes between messages is text where it stands in words.

The words are the template's own headers and ends. They stand in every place that a client, a tool or an old answer
fills, and no id of the prompt may be another than with plain words there, but for the ids of the words themselves.
A template may complete words to a marker, with brackets around them; these are words all the same.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from headers import forged, headers
from making import bytewise, tool
from tokenizers import Tokenizer

import chatparsers
from chatparsers import Chat
from chatparsers.errors import ChatParsersError
from chatparsers.templates.probe.turns import MARKER

OWN = sorted((Path(__file__).parents[1] / "templates_own").glob("*.jinja"))
REAL = {
    "o200k_harmony": ["openai-gpt-oss-120b"],
    "qwen3": ["Qwen-Qwen3-0.6B", "Qwen3-Coder", "Qwen-QwQ-32B", "Qwen-Qwen2.5-7B-Instruct"],
    "deepseek-v3x": ["deepseek-ai-DeepSeek-V3.1"],
    "llama3.1": ["meta-llama-Llama-3.1-8B-Instruct", "meta-llama-Llama-3.3-70B-Instruct"],
    "tekken-v13": ["mistral-v13-think-Magistral-2509"],
    "mistral-spm-v7": ["mistral-v7"],
}
"""Templates by the real tokenizer of their models."""

Request = dict[str, Any]
ASK: Request = {"role": "user", "content": "Hi"}
SAID: Request = {"role": "assistant", "content": "Hello."}
TOOLS = [tool("get_weather", {"city": {"type": "string"}}, description="Weather.")]
PLAIN = "forged"


def called(arguments: Any, **more: Any) -> Request:
    call = {
        "id": "call00000",
        "type": "function",
        "function": {"name": "get_weather", "arguments": arguments},
    }
    return {"role": "assistant", "content": "", "tool_calls": [call], **more}


def result(content: Any, **more: Any) -> Request:
    return {"role": "tool", "tool_call_id": "call00000", "name": "get_weather", "content": content, **more}


def described(**city: Any) -> list[Request]:
    return [
        tool("get_weather", {"city": {"type": "string", **city}}, description=city.pop("said", "Weather."))
    ]


def parts(words: str) -> list[Request]:
    """The words in two texts, cut inside of their first marker."""
    cut = next((found.start() + 2 for found in MARKER.finditer(words)), len(words) // 2)
    return [{"type": "text", "text": text} for text in (words[:cut], words[cut:])]


def begun(message: Request, **more: Any) -> Request:
    return {"messages": [ASK, message], "continue_final_message": True, **more}


OPEN = '{"city": "'
PLACES: dict[str, Callable[[str], Request]] = {
    "a question": lambda words: {"messages": [{"role": "user", "content": words}]},
    "a question in parts": lambda words: {"messages": [{"role": "user", "content": parts(words)}]},
    "a user's name": lambda words: {"messages": [{**ASK, "name": words}]},
    "a role": lambda words: {"messages": [ASK, SAID, {"role": words, "content": "Hi"}]},
    "a result": lambda words: {"messages": [ASK, called({"city": "Oslo"}), result(words)]},
    "a result in parts": lambda words: {"messages": [ASK, called({"city": "Oslo"}), result(parts(words))]},
    "a result's name": lambda words: {"messages": [ASK, called({"city": "Oslo"}), result("4", name=words)]},
    "an answer": lambda words: {"messages": [ASK, {**SAID, "content": words}, ASK]},
    "an answer in parts": lambda words: {"messages": [ASK, {**SAID, "content": parts(words)}, ASK]},
    "a refusal": lambda words: {"messages": [ASK, {**SAID, "content": None, "refusal": words}, ASK]},
    "a refusal in a part": lambda words: {
        "messages": [ASK, {**SAID, "content": [{"type": "refusal", "refusal": words}]}, ASK]
    },
    "a thought": lambda words: {
        "messages": [ASK, called({"city": "Oslo"}, reasoning_content=words), result("4")]
    },
    "arguments": lambda words: {"messages": [ASK, called({"city": words}), result("4")]},
    "arguments as JSON": lambda words: {
        "messages": [ASK, called(json.dumps({"city": words}).replace("<", "\\u003c")), result("4")]
    },
    "a key of arguments": lambda words: {"messages": [ASK, called({words: "Oslo"}), result("4")]},
    "a description": lambda words: {"messages": [ASK], "tools": described(said=words)},
    "an argument's description": lambda words: {"messages": [ASK], "tools": described(description=words)},
    "a listed value": lambda words: {"messages": [ASK], "tools": described(enum=[words])},
    "an argument's name": lambda words: {
        "messages": [ASK],
        "tools": [tool("get_weather", {words: {"type": "string"}})],
    },
    "a tool's name": lambda words: {"messages": [ASK], "tools": [tool(words, {"city": {"type": "string"}})]},
    "a document": lambda words: {"messages": [ASK], "documents": [{"title": words, "text": words}]},
    "a begun answer": lambda words: begun({**SAID, "content": words}),
    "a begun thought": lambda words: begun({**SAID, "content": "", "reasoning_content": words}),
    "begun arguments": lambda words: begun(called(OPEN + json.dumps(words)[1:-1]), tools=TOOLS),
    "whole arguments": lambda words: begun(called(json.dumps({"city": words})), tools=TOOLS),
}


def inner(chat: Chat) -> list[str]:
    """The markers of headers without their brackets, and without one of them."""
    found = dict.fromkeys(one[0] for text in headers(chat) for one in MARKER.finditer(text))
    return [part for text in found for part in (text[1:-1], text[1:], text[:-1])]


def check(chat: Chat, words: list[str]) -> int:
    """How many prompts were compared, of those that the template makes."""
    tokenizer, tried = chat.tokenizer, 0
    special = set(tokenizer.get_added_tokens_decoder())

    def asked(place: str, words: str) -> dict[str, Counter[int]]:
        request = {"tools": TOOLS, **PLACES[place](words)}
        messages = request.pop("messages")
        ids = {"rollout": chat.rollout(messages, **request).ids}
        if "documents" not in request:
            ids["encode"] = chat.encode(messages, **request).ids
        return {way: Counter(id for id in found if id in special) for way, found in ids.items()}

    for place in PLACES:
        try:
            plain = asked(place, PLAIN)
        except ChatParsersError:  # the template, or the format, has no such place
            continue
        for text in words:
            if place == "a role" and text.isidentifier():  # it names a role of the template's
                continue
            try:
                found = asked(place, text)
            except ChatParsersError:
                continue
            tried += 1
            for way, ids in found.items():
                extra = {tokenizer.id_to_token(id): n for id, n in (ids - plain[way]).items()}
                assert not extra, f"{chat.name}: {place}, {way}, {text!r}: {extra}"
    return tried


@pytest.mark.one_in(40)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_no_words_begin_a_message(path: Path) -> None:
    """The markers of headers are added tokens, as in real vocabularies."""
    named = {"bos_token": "<BOS>", "eos_token": "<EOS>", "format": path.stem}
    bare = chatparsers.load(path, **named)
    marks = {text.strip() for text in (*bare.syntax.preserved_tokens, *bare.syntax.stops)}
    marks |= {found[0] for text in headers(bare) for found in MARKER.finditer(text)}
    tokenizer = bytewise("<BOS>", "<EOS>", *sorted(filter(None, marks)))
    chat = chatparsers.load(path, tokenizer=tokenizer, **named)
    assert check(chat, [*forged(chat, PLAIN), *inner(chat)]) > 20


BRACKETS = (
    "{% macro in(x) %}{{ '<' ~ x ~ '>' if x is string else x | tojson }}{% endmacro %}"
    "{% for t in tools or [] %}<|im_start|>system\n{{ in(t.function.name) }}{{ in(t.function.description) }}"
    "{% for k, v in t.function.parameters.properties.items() %}{{ in(k) }}{{ in(v.description) }}"
    "{% for e in v.enum or [] %}{{ in(e) }}{% endfor %}{% endfor %}<|im_end|>\n{% endfor %}"
    "{% for d in documents or [] %}<{{ d.title }}>{{ d.text }}{% endfor %}"
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ in(m.name) if m.name }}"
    "{% if m.reasoning_content %}<think>{{ in(m.reasoning_content) }}</think>{% endif %}"
    "{{ in(m.content) if m.content }}{% for c in m.tool_calls or [] %}<tool_call>{{ in(c.function.name) }}"
    "{% for k, v in c.function.arguments.items() %}{{ in(k) }}{{ in(v) }}{% endfor %}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""It writes all words in brackets."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("sides", [("<|", "|>"), ("", ">")])
def test_no_words_are_completed_to_a_marker(sides: tuple[str, str]) -> None:
    """Whatever part of a marker the words are, and with no other word of the request that spells one."""
    open, close = sides
    template = BRACKETS.replace("'<' ~ x ~ '>'", f"'{open}' ~ x ~ '{close}'")
    tokenizer = bytewise("<|im_start|>", "<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>")
    chat = chatparsers.load(template, tokenizer=tokenizer, format="hermes-2-pro")
    words = [text[len(open) : len(text) - len(close)] for text in ("<|im_end|>", "<|im_start|>")]
    assert check(chat, [*words, *(f" {word}" for word in words)]) > 40


@pytest.mark.one_in(4)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("vocabulary", "template"),
    [(name, one) for name, of in REAL.items() for one in of],
    ids=lambda text: text,
)
def test_by_real_tokenizers(shared_dir: Path, vocabulary: str, template: str) -> None:
    where = (
        shared_dir / "templates" / f"{template}.jinja",
        shared_dir / "tokenizers" / f"{vocabulary}.json.gz",
    )
    if not all(path.exists() for path in where):
        pytest.skip(f"no {template} with {vocabulary}")
    tokenizer = Tokenizer.from_str(gzip.decompress(where[1].read_bytes()).decode())
    chat = chatparsers.load(where[0], tokenizer=tokenizer)
    assert check(chat, forged(chat, PLAIN)) > 20


def test_a_tokenizer_of_another_model_warns() -> None:
    """No marker of the format is one token: then any text spells them."""
    template = (OWN[0].parent / "qwen3.jinja").read_text(encoding="utf-8")
    own, other = bytewise("<|im_start|>", "<|im_end|>"), bytewise("<|start|>", "<|end|>")
    assert chatparsers.load(template, tokenizer=own).format.name == "qwen3"
    with pytest.warns(UserWarning, match="is it another model's"):
        chatparsers.load(template, tokenizer=other)
