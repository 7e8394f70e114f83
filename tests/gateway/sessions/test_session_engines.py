"""Sessions before engines over HTTP: their own ids and log probabilities are what the rows have."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

pytest.importorskip("starlette", reason="the package starlette is not installed")

from behaviours import Agent
from clients import Chat
from model import Model, chat_of
from scripted import Upstream, Wire, forced, llama_end, llama_events, llama_piece, sse
from test_behaviours import check_rows, rows, script

from chatparsers.gateway import (
    VLLM,
    Job,
    LlamaServer,
    Settings,
    SGLang,
    SGLangGenerate,
    VLLMGenerate,
    create_app,
)
from chatparsers.tokens import Vocabulary

ENGINES = {
    "llama-server": LlamaServer,
    "vllm": VLLM,
    "vllm-generate": VLLMGenerate,
    "sglang": SGLang,
    "sglang-generate": SGLangGenerate,
    "sglang-generate, what is new": SGLangGenerate,
}

VERSIONS = {"vllm-generate": {4, 5}, "sglang-generate": {7}, "sglang-generate, what is new": {4, 5}}
"""Of the weights, where the engine says them."""


class Served:
    """The model behind an engine's own protocol."""

    def __init__(self, model: Model, kind: str) -> None:
        self.model, self.kind = model, kind

    async def __call__(self, path: str, body: dict[str, Any], wire: Wire) -> None:
        await wire.head()
        asked = {**body, **body.get("sampling_params", {})}
        id = forced(asked)
        prompt = next((asked[name] for name in ("prompt", "token_ids", "input_ids") if name in asked), None)
        if (
            id is not None
            or 1 in [asked.get(name) for name in ("n_predict", "max_tokens", "max_new_tokens")]
            or not isinstance(prompt, list)
        ):
            ids, probs = [0 if id is None else id], [-1.0]
        else:
            turn = self.model.chat.bind(tools=[{"name": "get_weather"}, {"name": "book"}])
            ids, _ = self.model.write(Job(turn, prompt))
            self.model.sampled += len(ids)
            probs = self.model.network.logprobs([*prompt, *ids], range(len(prompt), len(prompt) + len(ids)))
        for event in self.events(ids, probs):
            await wire.send(event)
        await wire.end()

    def events(self, ids: list[int], probs: list[float]) -> Any:
        pieces = Vocabulary.of(self.model.tokenizer).pieces
        known = dict(zip(range(len(ids)), zip(ids, probs, strict=True), strict=True))
        raw = [
            (id, piece if isinstance(piece, bytes) else piece.encode())
            for id in ids
            for piece in (pieces[id],)
        ]
        if self.kind == "llama-server":
            at = 0
            for text, given in llama_events(raw):
                while known[at][0] != given[0]:
                    at += 1  # it left out a part of a character
                data = json.loads(llama_piece(text, given)[6:])
                said = {
                    "id": given[0],
                    "token": text,
                    "bytes": [],
                    "logprob": known[at][1],
                    "top_logprobs": [],
                }
                yield sse({**data, "completion_probabilities": [said]})
                at += 1
            yield llama_end()
            return
        if "generate" in self.kind:
            yield from self._generated(ids, probs)
            return
        for place, (id, piece) in enumerate(raw):
            text = piece.decode("utf-8", "replace")
            told = {"tokens": [f"token_id:{id}"], "token_logprobs": [probs[place]], "top_logprobs": [None]}
            choice = {"index": 0, "text": text, "token_ids": [id], "logprobs": told, "finish_reason": None}
            yield sse({"choices": [choice]})
        yield sse({"choices": [{"index": 0, "text": "", "finish_reason": "stop"}]})

    def _generated(self, ids: list[int], probs: list[float]) -> Any:
        """The events of the endpoints of ids, which know no text. The weights change while they write."""
        half = len(ids) // 2
        spans = [{"version": "4", "start": 0, "end": half}, {"version": "5", "start": half, "end": len(ids)}]
        for place, id in enumerate(ids):
            if self.kind == "vllm-generate":
                said = {"token_id": id, "logprob": probs[place], "rank": 1, "top_logprobs": []}
                choice = {
                    "index": 0,
                    "token_ids": [id],
                    "logprobs": {"content": [said]},
                    "finish_reason": None,
                }
                yield sse({"request_id": "r", "choices": [choice]})
                continue
            first = place if self.kind.endswith("new") else 0
            said = [[probs[at], ids[at], None] for at in range(first, place + 1)]
            over = {"type": "stop", "matched": id} if place == len(ids) - 1 else None
            counts = {
                "prompt_tokens": 1,
                "completion_tokens": place + 1,
                "finish_reason": over,
                "weight_version": "7",
            }
            if over and first:
                counts["weight_versions"] = spans
            yield sse(
                {"output_ids": ids[first : place + 1], "meta_info": {**counts, "output_token_logprobs": said}}
            )
        if self.kind == "vllm-generate":
            over = {"index": 0, "token_ids": [], "finish_reason": "stop", "weight_versions": spans}
            yield sse({"choices": [over]})
            yield sse({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": len(ids)}})


@pytest.mark.parametrize("kind", ENGINES)
def test_engines_over_http(
    kind: str, tmp_path: Path, upstream: Callable[..., Upstream], serve: Callable[..., Any]
) -> None:
    model = Model(chat_of("qwen3"), script("", True))
    engine = upstream(Served(model, kind))
    server = serve(create_app(model.chat, ENGINES[kind](engine.url), Settings(rollouts=str(tmp_path))))
    agent = Agent(Chat(f"{server.url}/sessions/s/v1", stream=True))
    items = agent.begin()
    for number in range(3):
        items = agent.after(items, agent.ask(items), number)
    assert [reply.session["reason"] for reply in agent.replies] == ["first", "exact", "exact"]
    found = rows(server, "s")
    counted, gap = check_rows(model, found)
    assert counted == model.sampled and gap < 1e-9
    named = [
        version
        for row in found
        for version, mask in zip(row["versions"], row["loss_mask"], strict=True)
        if mask
    ]
    assert set(named) == VERSIONS.get(kind, {-1}) and abs(2 * named.count(4) - counted * (4 in named)) < 4
    model.script = lambda job: ({"role": "assistant", "content": "Cold 🥶."}, "stop")
    refused = Chat(f"{server.url}/sessions/s/v1").send("Be terse.", items)
    if kind == "llama-server":  # its events lack the ids of the parts of a character
        assert refused.status_code == 502 and "log probabilities" in refused.text
    else:
        assert refused.status_code == 200 and "🥶" in refused.json()["choices"][0]["message"]["content"]
