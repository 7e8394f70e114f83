"""Log probabilities, ids and several answers: each token that the engine speaks of reaches its part of the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from scripted import Upstream, Wire, forced, llama_end, llama_piece, soon, sse
from servers import tiny_model

pytest.importorskip("starlette", reason="the package starlette is not installed")

import httpx2
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

from chatparsers import Format, Message, Turn, get_format, list_formats
from chatparsers.gateway import VLLM, LlamaServer, Ollama, OpenAICompletions, SGLang, create_app
from chatparsers.gateway.answer import Answer, Answers
from chatparsers.gateway.engine import Batch, End
from chatparsers.gateway.metrics import Metrics
from chatparsers.gateway.probable import columns, placed, records
from chatparsers.gateway.record import Record
from chatparsers.serving import OpenAIChat, OpenAIResponses, Request
from chatparsers.serving.logprobs import TokenLogprob
from chatparsers.testing import TOOLS
from chatparsers.testing.wild import broken, samples

FORMATS = [info.name for info in list_formats() if info.origin == "chatparsers"]
REQUEST = Request("m", [], logprobs=0, token_ids=False)
BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)


def said(number: int, text: str) -> TokenLogprob:
    """What an engine says of its token at a place: the number tells where it was."""
    return {
        "token": text,
        "logprob": -float(number),
        "bytes": list(text.encode("utf-8", "replace")),
        "top_logprobs": [],
    }


def cuts(data: Any, random: Random) -> Iterator[Any]:
    place = 0
    while place < len(data):
        size = random.choice((1, 1, 2, 3, 5, 9, 20))
        yield data[place : place + size]
        place += size


def tokenized(text: str, turn: Turn, random: Random) -> tuple[Any, list[int]]:
    """A tokenizer whose tokens cut a text anywhere, inside characters and markers too, and the text's ids."""
    parts = [text]
    for marker in turn.preserved_tokens:
        parts = [
            piece
            for part in parts
            for piece in ([part] if part in turn.preserved_tokens else split(part, marker))
        ]
    listed: list[tuple[bool, bytes]] = []
    for part in parts:
        if part in turn.preserved_tokens and random.random() < 0.7:
            listed.append((True, part.encode()))
        else:
            listed += [(False, piece) for piece in cuts(part.encode(), random)]
    spelt = byte_letters()
    plain = sorted(
        {piece for special, piece in listed if not special} | {bytes([byte]) for byte in range(256)}
    )
    vocabulary = {"".join(spelt[byte] for byte in piece): id for id, piece in enumerate(plain)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = BYTES
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(piece.decode(), special=True) for special, piece in listed if special]
    )
    numbers = dict(zip(plain, range(len(plain)), strict=True))
    return tokenizer, [
        tokenizer.token_to_id(piece.decode()) if special else numbers[piece] for special, piece in listed
    ]


def split(text: str, marker: str) -> list[str]:
    pieces = text.split(marker)
    found = [part for piece in pieces for part in (piece, marker)][:-1]
    return [part for part in found if part]


def byte_letters() -> list[str]:
    """The letter of each byte, as byte-level tokenizers spell it."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte) if byte in kept else chr(next(others)) for byte in range(256)]


def answered(
    turn: Turn, batches: list[Batch], by_ids: bool, api: type[Any]
) -> tuple[dict[str, Any], list[dict[str, Any]], Message]:
    """The whole answer, the events of the stream, and the message."""
    writer = api("m", call_id=turn.call_id)
    writer.logprobs = {}
    answer = Answer(turn, writer, REQUEST, by_ids=by_ids, framed=True, prompt=None)
    answers = Answers([answer], framed=True, usage=False)
    record = Record("chat", {}, Metrics(), None)
    frames = answers.start()
    for batch in batches:
        frames += answer.read(batch)
    frames += answers.finish(answer, End("stop"), record)
    lines = [line[6:] for line in frames.split("\n") if line.startswith("data: {")]
    return json.loads(answers.text()), [json.loads(line) for line in lines], answer._stream.message


def grouped(entries: list[Any], random: Random) -> Iterator[list[Any]]:
    yield from cuts(entries, random)


def expected(message: Message, place: int, size: int, by_ids: bool) -> str | None:
    """The field of a token, from the regions of the whole message; None if no region has it."""
    names = {"call": "tool_calls"}
    found = [
        region.kind
        for region in message.regions
        if (region.token_start if by_ids else region.start) < place + size
        and (region.token_end if by_ids else region.end) > place
    ]
    kinds = [kind for kind in found if kind != "markup"] or found
    return names.get(kinds[0], kinds[0]) if kinds else None


def lists(given: dict[str, Any] | None) -> dict[str, list[Any]]:
    return {name: found for name, found in (given or {}).items() if found}


@pytest.mark.parametrize("by_ids", [True, False], ids=["ids", "text"])
@pytest.mark.parametrize("name", FORMATS)
def test_no_token_is_lost_or_doubled(name: str, by_ids: bool, amount: Callable[[int, int, int], int]) -> None:
    format: Format = get_format(name)
    texts = [
        *samples(format)[: amount(1, 3, 50)],
        *broken(format, amount(1, 3, 50)),
    ]
    for number, text in enumerate(texts):
        random = Random(number)
        turn = format.bind(tools=TOOLS)
        if by_ids:
            tokenizer, ids = tokenized(text, turn, random)
            turn = format.bind(tools=TOOLS, tokenizer=tokenizer)
            ends = [place for place, id in enumerate(ids) if id in turn.stop_ids]
            ids = ids[: ends[0] + 1] if ends else ids
            fed: list[Any] = [(id, said(place, str(id))) for place, id in enumerate(ids)]
            spans = [(place, 1) for place in range(len(ids))]
            batches = [
                Batch(ids=[id for id, _ in part], logprobs=[(at, one) for at, (_, one) in enumerate(part)])
                for part in grouped(fed, random)
            ]
        else:
            pieces = list(cuts(text, random))
            fed = [(piece, said(place, piece)) for place, piece in enumerate(pieces)]
            spans, start = [], 0
            for piece in pieces:
                spans.append((start, len(piece)))
                start += len(piece)
            batches = []
            for part in grouped(fed, random):
                joined = "".join(piece for piece, _ in part)
                batches.append(Batch(joined, logprobs=placed([one for _, one in part], None, joined)))
        whole, events, message = answered(turn, batches, by_ids, OpenAIChat)
        found = lists(whole["choices"][0]["logprobs"])
        streamed: dict[str, list[Any]] = {}
        order = []
        for event in events:
            for field, more in lists(event["choices"][0]["logprobs"]).items():
                streamed.setdefault(field, []).extend(more)
                order += more
        assert streamed == found
        assert order == [one for _, one in fed]  # the stream has them in the engine's order
        where = {-one["logprob"]: field for field, ones in found.items() for one in ones}
        assert len(where) == len(fed) == sum(map(len, found.values()))
        for place, span in enumerate(spans):
            kind = expected(message, *span, by_ids)
            assert kind is None or where[place] == kind
        response, events, _ = answered(turn, batches, by_ids, OpenAIResponses)
        content = [
            one
            for item in response["output"]
            if item["type"] == "message"
            for one in item["content"][0]["logprobs"]
        ]
        apart = lists(response.get("token_logprobs"))
        ended = [
            one for event in events if event["type"].endswith("output_text.done") for one in event["logprobs"]
        ]
        deltas = [
            one
            for event in events
            if event["type"].endswith("text.delta")
            for one in event.get("logprobs", ())
        ]
        assert ended == content and [one for one in content if one in deltas] == deltas
        assert len(content) - len(deltas) <= 20  # the tokens whose text is stripped come with the item's end
        both = sorted(content + apart.pop("content", []), key=lambda one: -one["logprob"])
        assert both == found.pop("content", [])
        assert apart == found


# engines, over the wire

TEXT = '<think>\nHm.\n</think>\n\nIt is so.\n<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
F = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


class Telling:
    """An engine that says how probable its tokens are, as llama-server, vLLM, SGLang, another server or Ollama does."""

    def __init__(self, kind: str, silent: bool = False) -> None:
        self.kind = kind
        self.silent = silent
        self.model = tiny_model("qwen3")
        tokenizer = self.model.tokenizer
        self.ids = [*tokenizer.encode(TEXT, add_special_tokens=False).ids, self.model.eos_ids[0]]
        self.pieces = [tokenizer.decode([id], skip_special_tokens=False) for id in self.ids]
        self.bodies: list[dict[str, Any]] = []

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        if path in ("/v1/models", "/api/tags", "/model_info"):
            await wire.head(200, "application/json")
            await wire.send(b'{"data": [{"id": "served"}], "models": [{"name": "served"}]}')
            await wire.end()
            return
        id = forced(body)
        options = body.get("options", body)
        await wire.head()
        if id is not None:
            await wire.send(self.event(0, body, self.model.tokenizer.id_to_token(id), id))
        elif 1 in (body.get("n_predict"), body.get("max_tokens")) or "num_predict" in options:
            await wire.send(self.event(0, body, "<think>" if self.kind == "ollama" else "a", 0))
        else:
            self.bodies.append(body)
            for place, (id, piece) in enumerate(zip(self.ids, self.pieces, strict=True)):
                await wire.send(self.event(place, body, piece, id))
        await wire.send(self.end())
        await wire.end()

    def event(self, place: int, body: dict[str, Any], piece: str, id: int) -> bytes:
        number = -0.25 * place
        others = {"?": -9.5}
        asked = not self.silent and ("n_probs" in body or "logprobs" in body)
        if self.kind == "llama":
            made = json.loads(llama_piece(piece, [id])[6:])
            if asked:
                tops = [
                    {"id": 1, "token": name, "bytes": [63], "logprob": value}
                    for name, value in others.items()
                ]
                one = {
                    "id": id,
                    "token": piece,
                    "bytes": list(piece.encode()),
                    "logprob": number,
                    "top_logprobs": tops,
                }
                made["completion_probabilities"] = [one]
            return sse(made)
        if self.kind == "ollama":
            made = {"model": "served", "response": piece, "done": False}
            if asked:
                tops = [{"token": name, "logprob": value} for name, value in others.items()]
                made["logprobs"] = [{"token": piece, "logprob": number, "top_logprobs": tops}]
            return json.dumps(made).encode() + b"\n"
        choice: dict[str, Any] = {"index": 0, "text": piece, "finish_reason": None}
        if self.kind != "other":
            choice["token_ids"] = [id]
        if asked:
            name = f"token_id:{id}" if body.get("return_tokens_as_token_ids") else piece
            tops = {name: number, **others}
            choice["logprobs"] = {
                "tokens": [name],
                "token_logprobs": [number],
                "top_logprobs": [tops],
                "text_offset": [0],
            }
        return sse({"choices": [choice]})

    def end(self) -> bytes:
        if self.kind == "llama":
            return llama_end(completion=len(self.ids))
        if self.kind == "ollama":
            return b'{"response": "", "done": true, "done_reason": "stop", "prompt_eval_count": 5, "eval_count": 40}\n'
        usage = {"prompt_tokens": 5, "completion_tokens": len(self.ids)}
        return (
            sse({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}], "usage": usage})
            + b"data: [DONE]\n\n"
        )


ENGINES: dict[str, Any] = {
    "llama": LlamaServer,
    "vllm": VLLM,
    "sglang": SGLang,
    "other": OpenAICompletions,
    "ollama": lambda url: Ollama(url, model="served"),
}


@pytest.fixture
def telling(upstream: Callable[..., Upstream], serve: Callable[[Any], Any]) -> Callable[..., Any]:
    def make(kind: str, silent: bool = False) -> Any:
        script = Telling(kind, silent)
        server = serve(create_app(script.model.chat, ENGINES[kind](upstream(script).url)))
        server.script = script
        return server

    return make


@pytest.mark.parametrize("kind", ENGINES)
def test_clients_read_log_probabilities(kind: str, telling: Callable[..., Any], openai: Any) -> None:
    gateway = telling(kind)
    script = gateway.script
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        asked: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "tools": [F]}
        asked |= {"logprobs": True, "top_logprobs": 1}
        whole = client.chat.completions.create(**asked).choices[0]
        chunks = list(client.chat.completions.create(**asked, stream=True))
        with client.chat.completions.stream(**asked) as stream:
            streamed = stream.get_final_completion().choices[0]
        found = whole.logprobs.content
        assert "".join(one.token for one in found).strip() == whole.message.content == "It is so."
        assert [one.token for one in streamed.logprobs.content] == [one.token for one in found]
        others = [top.token for one in found for top in one.top_logprobs]
        assert len(others) == len(found)
        for one in found:
            spelt = [piece for place, piece in enumerate(script.pieces) if -0.25 * place == one.logprob]
            assert [one.token] == spelt and bytes(one.bytes).decode() == one.token
        fields = whole.logprobs.model_dump()
        assert "".join(one["token"] for one in fields["reasoning"]).strip() == "Hm."
        assert '"a": 1' in "".join(one["token"] for one in fields["tool_calls"])
        told = sum(len(fields[name] or ()) for name in ("content", "reasoning", "tool_calls", "markup"))
        assert told == len(script.ids)
        sent = [
            (chunk.choices[0].delta.content, chunk.choices[0].logprobs) for chunk in chunks if chunk.choices
        ]
        beside = "".join(text for text, more in sent if text and more and more.content)
        assert beside == "It is so."  # content comes with its own tokens
        response = client.responses.create(
            model="m",
            input="Hi",
            tools=[{"type": "function", **F["function"]}],
            include=["message.output_text.logprobs"],
            top_logprobs=1,
        )
        said = response.output[1].content[0].logprobs
        assert [(one.token, one.logprob) for one in said] == [(one.token, one.logprob) for one in found]
        assert len(script.bodies) == 4


def test_an_engine_that_says_nothing_is_an_error(telling: Callable[..., Any]) -> None:
    gateway = telling("llama", silent=True)
    for stream in (False, True):
        body = {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "logprobs": True,
            "stream": stream,
        }
        answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=20)
        assert answer.status_code == 400 and "gives no log probabilities" in answer.text


@pytest.mark.parametrize("kind", ["llama", "vllm", "other"])
def test_ids_of_prompt_and_answer(kind: str, telling: Callable[..., Any]) -> None:
    gateway = telling(kind)
    body: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "return_token_ids": True,
    }
    answer = httpx2.post(f"{gateway.url}/v1/chat/completions", json=body, timeout=20)
    if kind == "other":
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "return_token_ids"
        return
    script = gateway.script
    prompt = script.bodies[-1]["prompt"]
    whole = answer.json()
    assert (whole["prompt_token_ids"], whole["choices"][0]["token_ids"]) == (prompt, script.ids)
    text = httpx2.post(f"{gateway.url}/v1/chat/completions", json={**body, "stream": True}, timeout=20).text
    chunks = [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: {")]
    assert chunks[0]["prompt_token_ids"] == prompt
    ids = [id for chunk in chunks for choice in chunk["choices"] for id in choice.get("token_ids", ())]
    assert ids == script.ids
    other = {"model": "m", "input": "Hi", "return_token_ids": True}
    found = httpx2.post(f"{gateway.url}/v1/responses", json=other, timeout=20).json()
    assert (found["prompt_token_ids"], found["token_ids"]) == (prompt, script.ids)
    text = httpx2.post(f"{gateway.url}/v1/responses", json={**other, "stream": True}, timeout=20).text
    events = [json.loads(line[6:]) for line in text.split("\n") if line.startswith("data: {")]
    assert [id for event in events for id in event.get("token_ids", ())] == script.ids
    assert events[0]["response"]["prompt_token_ids"] == prompt


@pytest.mark.parametrize("kind", ["llama", "vllm"])
def test_several_answers(kind: str, telling: Callable[..., Any], openai: Any) -> None:
    gateway = telling(kind)
    script = gateway.script
    with openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="none", max_retries=0) as client:
        asked: dict[str, Any] = {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": [F],
            "n": 3,
        }
        whole = client.chat.completions.create(**asked, seed=7)
        assert sorted(body["seed"] for body in script.bodies) == [7, 8, 9]
        with client.chat.completions.stream(**asked, stream_options={"include_usage": True}) as stream:
            streamed = stream.get_final_completion()
    for found in (whole, streamed):
        assert [choice.index for choice in found.choices] == [0, 1, 2]
        assert len({choice.message.tool_calls[0].id for choice in found.choices}) == 3
        for choice in found.choices:
            assert (choice.message.content, choice.finish_reason) == ("It is so.", "tool_calls")
            assert choice.message.tool_calls[0].function.arguments == '{"a": 1}'
        assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (5, 3 * len(script.ids))
    metrics = gateway.app.state.metrics
    # A client has its answer before the request is counted as ended.
    soon(lambda: metrics.active == 0 and metrics.value("tokens", kind="prompt") == 10)
    assert metrics.value("calls", format="qwen3") == 6


def test_no_token_is_half_a_character() -> None:
    """An engine may cut an emoji into two tokens, and send each as an escape: UTF-8 can spell neither."""
    high, low = "\ud83d", "\ude00"
    listed = records([{"token": high, "logprob": -1, "top_logprobs": [{"token": low, "logprob": -2}]}])
    old = columns({"tokens": [high], "token_logprobs": [-1], "top_logprobs": [{high: -1, low: -2}]})
    for (found,) in (listed, old):
        json.dumps(found, ensure_ascii=False).encode()
        assert {found["token"], *(top["token"] for top in found["top_logprobs"])} == {"\ufffd"}
        assert found["bytes"] == list("\ufffd".encode())
    assert [place for place, _ in placed([said(0, "a"), *listed], None, "a" + high) or ()] == [0, 1]
