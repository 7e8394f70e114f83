"""The recipes of docs/guide.md with small real models: budgets, one call, cuts, forms, JSON, drafts."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engines import xgrammar

import chatparsers
from chatparsers import CallEnd, Guide, RequestError, Turn

llama_cpp = pytest.importorskip("llama_cpp", reason="llama-cpp-python is not installed")
pytest.importorskip("llguidance", reason="llguidance is not installed")

PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer", "maximum": 7}},
    "required": ["city", "days"],
}
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": PARAMETERS}}]
ANSWER = {
    "type": "object",
    "properties": {"rain": {"type": "boolean"}, "why": {"type": "string", "maxLength": 30}},
}
ASKED = "What will the weather in São Paulo be like for the next three days?"
FACTS = {
    "type": "object",
    "properties": {
        "subject": {"type": "string"},
        "kind": {"enum": ["person", "place", "thing"]},
        "facts": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "year": {"type": "integer"},
    },
    "required": ["subject", "kind", "facts"],
}
SUBJECTS = ["Norway", "Marie Curie", "the bicycle", "Mount Fuji", "Ada Lovelace", "chess"]
CITIES = ["Oslo", "São Paulo", "Łódź", "東京", "Reykjavík", "Lima", "Москва", "Accra", "Zürich", "Hà Nội"]
QUESTIONS = [f"What is the weather in {city} {when}?" for city in CITIES for when in ("today", "this week")]
MODELS = ["qwen05", "smollm2", "gemma270"]
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*is a small stand-in:UserWarning"
)  # Gemma's file has no template


class Model:
    """A model that takes the likeliest id which the guide allows."""

    def __init__(self, path: Path) -> None:
        options = {"n_ctx": 2048, "n_threads": 1, "n_threads_batch": 1, "verbose": False}
        self.llama = llama_cpp.Llama(str(path), **options)
        self.chat = chatparsers.load(path)
        self.words = np.zeros((1, (self.llama.n_vocab() + 31) // 32), dtype=np.int32)

    def turn(self, question: str = ASKED, **asked: Any) -> Turn:
        """A turn in which the prompt has opened a thought. The model knows no thoughts: the grammar asks for them."""
        turn = self.chat.prepare([{"role": "user", "content": question}], tools=asked.get("tools"))
        return chatparsers.get_format("qwen3").bind(
            **asked,
            tokenizer=turn.tokenizer,
            token_config=self.chat.files.special_config,
            prefix="<think>\n",
            prompt=turn.prompt + "<think>\n",
            id_seed="guide",
        )

    def read(self, turn: Turn) -> None:
        self.llama.reset()
        self.llama.eval(turn.tokenizer.encode(turn.prompt, add_special_tokens=False).ids)

    def next(self, guide: Guide) -> int:
        logits = llama_cpp.llama_get_logits_ith(self.llama._ctx.ctx, -1)
        found = np.ctypeslib.as_array(logits, shape=(self.llama.n_vocab(),)).copy()
        if guide.fill(self.words):
            bits = np.unpackbits(self.words[0].view(np.uint8), bitorder="little")[: len(found)]
            found[bits == 0] = -np.inf
        return int(found.argmax())

    def answer(
        self, turn: Turn, guide: Guide, most: int = 120, drafts: bool = False, forced: bool = True
    ) -> list[int]:
        """The ids of an answer. ``drafts``: each id is given and taken back first, with others after it. Without
        ``forced``, the model chooses each id, also where only one text may follow."""
        self.read(turn)
        ids: list[int] = []
        while not guide.ended and len(ids) < most:
            new = (forced and guide.forced()) or [self.next(guide)]
            if drafts:
                guesses = [*new, *ids[:4]]
                count = guide.accepts(guesses)
                guide.feed(guesses[:count])
                guide.rollback(count)
            guide.feed(new)
            ids += new
            if not guide.ended:
                self.llama.eval(new)
        guide.finish()
        return ids


@pytest.fixture(scope="module", params=MODELS)
def model(request: Any, gguf_of: Callable[[str], Path]) -> Model:
    return Model(gguf_of(request.param))


@pytest.mark.parametrize("budget", [0, 1, 12, 40, 200])
def test_a_budget(model: Model, budget: int) -> None:
    turn = model.turn(tools=TOOLS, tool_choice="required")
    guide = turn.guide(thinking_tokens=budget)
    ids = model.answer(turn, guide, budget + 120)
    kinds = turn.stream()
    spent = 0
    for id in ids:
        spent += kinds.state.kind == "reasoning"
        kinds.feed(id)
    closer = len(turn.tokenizer.encode("</think>", add_special_tokens=False).ids)
    assert spent <= budget + closer + 3
    assert guide.state.left is not None
    (call, *_) = guide.message.tool_calls
    assert call.complete and 0 < len(call.parsed_arguments["city"]) <= 20
    assert not [one for one in guide.message.diagnostics if one.code != "truncated"]


def test_at_most_one_call(model: Model) -> None:
    turn = model.turn(tools=TOOLS, tool_choice="required")
    guide = turn.guide(thinking_tokens=4, max_calls=1)
    model.answer(turn, guide)
    assert guide.ended and len(guide.message.tool_calls) == 1


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_cut_answer_goes_on_at_every_token(model: Model, question: str) -> None:
    """By text: the grammar of the rest allows what the whole one allows, and the parser reads the same call."""
    turn = model.turn(question, tools=TOOLS, tool_choice="required")
    whole = turn.guide(thinking_tokens=8, max_calls=1)
    ids = model.answer(turn, whole, 90)
    calls = [one.arguments for one in whole.message.tool_calls]
    tried = 0
    for cut in range(1, len(ids) - 1):
        try:
            rest = turn.rest(ids[:cut])
        except RequestError as error:
            assert "part of one" in str(error)
            continue
        before, after = turn.guide(max_calls=1), rest.guide(max_calls=1)
        before.feed(ids[:cut])
        masks = [np.zeros_like(model.words) for _ in range(2)]
        assert before.fill(masks[0]) == after.fill(masks[1])
        differ = np.flatnonzero(np.unpackbits((masks[0] ^ masks[1]).view(np.uint8), bitorder="little"))
        # The whole grammar counts white space up to 64 characters, that of the rest begins to count anew.
        assert not "".join(turn.tokenizer.decode([int(id)]) for id in differ).strip(" \t"), ids[:cut]
        ended = any(isinstance(event, CallEnd) for event in turn.stream().feed(ids[:cut]))
        found = [one.arguments for one in rest.parse(ids[cut:]).tool_calls]
        assert found == ([] if ended else calls)
        tried += 1
    assert tried > 20
    print(f"{tried} cuts of {len(ids)} tokens")


def test_a_form_fills_while_the_model_writes(model: Model) -> None:
    turn = model.turn(tools=TOOLS, tool_choice="required")
    guide = turn.guide(thinking_tokens=0, max_calls=1)
    ids = model.answer(turn, guide)
    stream, seen = turn.stream(), []
    for id in ids:
        stream.feed(id)
        if stream.message.tool_calls:
            seen.append(json.loads(json.dumps(stream.so_far(0))))
    stream.finish()
    assert stream.so_far(0) == guide.message.tool_calls[0].parsed_arguments
    texts = [one["city"] for one in seen if "city" in one]
    assert len(set(texts)) > 1 and all(after.startswith(before) for before, after in pairwise(texts))


def test_json_after_thinking(model: Model) -> None:
    turn = model.turn(response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": ANSWER}})
    guide = turn.guide(thinking_tokens=6, thinking_message=" So.")
    model.answer(turn, guide)
    assert guide.message.reasoning.endswith("So.")
    assert set(json.loads(guide.message.content)) <= {"rain", "why"}


def test_drafts_change_nothing(model: Model) -> None:
    turn = model.turn(tools=TOOLS, tool_choice="required")
    alone = model.answer(turn, turn.guide(thinking_tokens=8, max_calls=1))
    assert model.answer(turn, turn.guide(thinking_tokens=8, max_calls=1), drafts=True) == alone


@pytest.mark.parametrize("subject", SUBJECTS)
def test_each_engine_lets_the_model_write_the_same_values(model: Model, subject: str) -> None:
    """A token that is missing in one engine's masks would turn the answer."""
    xgrammar()
    said = {}
    for engine in ("llguidance", "xgrammar"):
        turn = model.chat.prepare(
            [{"role": "user", "content": f"Tell me about {subject}. Answer in JSON."}],
            response_format={"type": "json_schema", "json_schema": {"name": "facts", "schema": FACTS}},
        )
        guide = turn.guide(engine)
        model.answer(turn, guide, 160, forced=False)
        said[engine] = json.loads(guide.message.content) if guide.ended else guide.message.content
    assert said["llguidance"] == said["xgrammar"]
