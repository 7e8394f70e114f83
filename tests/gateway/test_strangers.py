"""The third campaign: many strangers at once, words that look like the wire, and bombs of schemas and grammars.

Each answer is its own client's alone, what a model writes is never the frame of a stream, and no request is a failure
of the server.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from scripted import Llama, Upstream, Wire, forced, llama_end, llama_piece, soon
from servers import Server, tiny_model

pytest.importorskip("starlette", reason="the gateway's packages are not installed")

import httpx2
from three_apis import BODIES, PATHS, post, told, tools_of

from chatparsers.gateway import LlamaServer, Settings, create_app

NOTE = {
    "name": "note",
    "description": "Notes.",
    "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
}


class Echo(Llama):
    """Thinks, says and calls with what the last words of the user are between ``[[`` and ``]]``."""

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        if forced(body) is not None:
            await super().__call__(path, body, wire)
            return
        asked = self.tokenizer.decode(body["prompt"], skip_special_tokens=False)
        words = json.loads(re.findall(r"\[\[(.*?)\]\]", asked, re.S)[-1])
        call = json.dumps({"name": "note", "arguments": {"text": words}}, ensure_ascii=False)
        text = f"<think>\n{words}\n</think>\n\n{words}\n<tool_call>\n{call}\n</tool_call>"
        await wire.head()
        for id in self.tokenizer.encode(text, add_special_tokens=False).ids:
            await wire.send(llama_piece(self.tokenizer.decode([id], skip_special_tokens=False), [id]))
            await asyncio.sleep(0)
        await wire.send(llama_end())
        await wire.end()


@pytest.fixture
def server(upstream: Callable[..., Upstream], serve: Callable[..., Server]) -> Server:
    tiny = tiny_model("qwen3")
    engine = upstream(Echo(tokenizer=tiny.tokenizer))
    return serve(create_app(tiny.chat, LlamaServer(engine.url), Settings(store="memory", max_cpu=5)))


def asking(api: str, words: str, *, stream: bool) -> dict[str, Any]:
    """A request whose answer thinks, says and calls with these words."""
    said = f"[[{json.dumps(words)}]]"
    given: Any = {"input": said} if api == "responses" else {"messages": [{"role": "user", "content": said}]}
    return {**BODIES[api], **given, "stream": stream, "tools": tools_of(api, NOTE)}


def repeated(words: str) -> tuple[str, str, list[Any]]:
    return words, words, [{"text": words}]


# each answer is its client's alone


def test_no_answer_is_anothers(server: Server, amount: Callable[..., int]) -> None:
    """Each client has a secret that its answer repeats three times; all ids of calls and answers differ."""
    number = amount(60, 300, 2_400)
    limit = asyncio.Semaphore(40)

    async def one(client: httpx2.AsyncClient, place: int) -> tuple[str, httpx2.Response]:
        api = [*PATHS][place % 3]
        secret = f"secret {place:05d} is mine"
        body = asking(api, secret, stream=place % 2 == 0)
        async with limit:
            answer = await client.post(server.url + PATHS[api], json=body)
        assert answer.status_code == 200, answer.text
        return secret, answer

    async def all_of_them() -> list[tuple[str, httpx2.Response]]:
        async with httpx2.AsyncClient(timeout=300) as client:
            return await asyncio.gather(*(one(client, place) for place in range(number)))

    calls: list[str] = []
    for place, (secret, answer) in enumerate(asyncio.run(all_of_them())):
        text = answer.text
        assert told([*PATHS][place % 3], answer).parts == repeated(secret)
        assert {*re.findall(r"secret \d{5}", text)} <= {secret[:12]}
        (id,) = {*re.findall(r'"(?:call_id|id)": ?"((?:call|toolu)?_?[A-Za-z0-9]{9})"', text)}
        calls.append(id)
    assert len({*calls}) == number


# what a model writes is never a frame


WORDS = {
    "empty lines": "a\n\nb\n\n\nc",
    "a frame": 'a\n\ndata: {"error": "x"}\n\nevent: error\ndata: [DONE]\n\nid: 5\nretry: 1\n\n: b',
    "carriage returns": "a\r\rb\r\n\r\ndata: [DONE]\r\n\r\nc\rd",
    "line separators": "a\u2028\u2028data: x\u2029b\x85\x85c\x0b\x0cd\x1c\x1d\x1ee",
    "a NUL": "a\x00b\x00\x00c\x1bd\x7fe",
    "a byte order mark": "\ufeffdata: a\ufeff",
    "JSON": '"}\n\n{"a": "\\u0000\\n\\"}]',
}


@pytest.mark.parametrize("api", PATHS)
def test_words_are_no_frames(api: str, server: Server) -> None:
    """Each event is one line of data by the rules of server-sent events, and what was said comes back."""
    for name, words in WORDS.items():
        for stream in (False, True):
            answer = post(server.url, api, **asking(api, words, stream=stream))
            assert told(api, answer).parts == repeated(words), (name, stream)


# bombs


def of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"]}


SEPARATE = "".join(chr(0x4E00 + 2 * place) for place in range(500))
BOMBS: dict[str, dict[str, Any]] = {
    "a reference to itself": {"$ref": "#"},
    "a loop of references": {
        "$ref": "#/$defs/a",
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    },
    "references that double": {
        "$ref": "#/$defs/a0",
        "$defs": {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)}
        | {"a40": of({})},
    },
    "a product of alternatives": {
        "type": "object",
        "allOf": [{"anyOf": [{"properties": {f"p{n}": {"const": m}}} for m in range(20)]} for n in range(20)],
    },
    "recursion five ways": {
        "$ref": "#/$defs/t",
        "$defs": {"t": of({"anyOf": [{"type": "array", "items": {"$ref": "#/$defs/t"}}] * 5})},
    },
    "conditions in conditions": of(
        {"if": {"if": {"if": {"minimum": 1}}, "then": {"const": 1}}, "else": {"enum": [2]}}
    ),
    "not, fifty times": of(json.loads('{"not":' * 50 + "{}" + "}" * 50)),
    "items, ninety deep": of(json.loads('{"items":' * 90 + "{}" + "}" * 90)),
    "counts in counts": of({"type": "string", "pattern": "^((a{1,1000}){1,1000}){1,1000}$"}),
    "separate characters": of({"type": "string", "pattern": f"^[{SEPARATE}]{{1,500}}$"}),
    "separate characters, often": of({"type": "string", "pattern": f"^[{SEPARATE * 18}]{{1,500}}$"}),
    "an automaton that doubles": of({"type": "string", "pattern": "(a|b)*a(a|b){40}"}),
    "steps back": of({"type": "string", "pattern": "^(a+)+(a*)*$"}),
    "no expression": of({"type": "string", "pattern": "(((("}),
    "expressions as names": {
        "type": "object",
        "patternProperties": {f"^a{{{n}}}.*$": {} for n in range(300)},
    },
    "20,000 values": of({"enum": [f"value {n}" for n in range(20_000)]}),
    "a value of 100 kB": of({"const": {"a": ["x" * 50_000, {"b": "y" * 50_000}]}}),
    "2,000 alternatives": of(
        {"anyOf": [{"type": "object", "properties": {f"p{n}": {}}} for n in range(2_000)]}
    ),
    "3,000 properties": {
        "type": "object",
        "properties": {f"p{n}": {"type": "integer"} for n in range(3_000)},
    },
    "5,000 required names": {"type": "object", "required": [f"p{n}" for n in range(5_000)]},
    "great numbers": of(
        {"type": "integer", "minimum": -(10**300), "maximum": 10**300, "multipleOf": 10**200}
    ),
    "lengths without end": of(
        {"type": "array", "minItems": 10**9, "items": {"type": "string", "minLength": 10**9}}
    ),
}
PLACES: dict[str, Callable[[dict[str, Any]], tuple[str, dict[str, Any]]]] = {
    "a tool of chat": lambda schema: (
        "chat",
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": schema}}]},
    ),
    "the form of chat": lambda schema: (
        "chat",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": schema}}},
    ),
    "the form of Responses": lambda schema: (
        "responses",
        {"text": {"format": {"type": "json_schema", "name": "a", "schema": schema}}},
    ),
    "a tool of Messages": lambda schema: (
        "messages",
        {"tools": [{"name": "f", "input_schema": schema}], "tool_choice": {"type": "any"}},
    ),
}
LARK = {
    "repeats in repeats": 'start: a~1000\na: b~1000\nb: "x"~1000',
    "a rule of itself": "start: start start | start",
    "rules that double": "\n".join(
        ["start: r0", *(f"r{n}: r{n + 1} r{n + 1}" for n in range(40)), 'r40: "a"']
    ),
    "an expression that doubles": "start: /((a|b)*a(a|b){40}){9}/",
    "no rule": "start: nothing",
    "a text of 100 kB": 'start: "' + "x" * 100_000 + '"',
}


@pytest.mark.one_in(8)
@pytest.mark.parametrize("bomb", [*BOMBS, *LARK])
def test_no_schema_is_a_failure(bomb: str, upstream: Any, serve: Any, capsys: Any) -> None:
    """A bomb is weakened or refused in the API's words, and the server stands."""
    tiny = tiny_model("qwen3")
    engine = upstream(Llama(["Hello."], tiny.tokenizer))
    server = serve(create_app(tiny.chat, LlamaServer(engine.url), Settings(max_cpu=5)))
    if bomb in BOMBS:
        asked = [place(BOMBS[bomb]) for place in PLACES.values()]
    else:
        form = {"type": "grammar", "syntax": "lark", "definition": LARK[bomb]}
        asked = [("responses", {"tools": [{"type": "custom", "name": "f", "format": form}]})]
    for api, more in asked:
        answer = post(server.url, api, **{**asking(api, "Hi", stream=False), **more})
        assert answer.status_code in (200, 400, 413), f"{api}: {answer.status_code} {answer.text[:300]}"
        assert (told(api, answer).error is None) == (answer.status_code == 200)
    metrics = f"{server.url}/metrics"
    soon(lambda: "\nchatparsers_active_requests 0.0\n" in httpx2.get(metrics, timeout=20).text)
    assert "Traceback" not in capsys.readouterr().err
