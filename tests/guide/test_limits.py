"""Limits over all formats with thoughts: a toy model samples under the masks of a guide, and everything is watched.

Before each id the mask is compared with what the guide says must come, and with the guide's fork; some ids are taken
back and given again. At the end, the message is what the parser reads without a guide, and it has no diagnostics.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from engines import llguidance, xgrammar
from samples import tool
from test_sampler import end_of, real_tokenizer
from toy import Mask, sample, toy_tokenizer

from chatparsers import (
    ChatParsersError,
    Diagnostic,
    Format,
    Guide,
    Message,
    RequestError,
    Turn,
    get_format,
    list_formats,
)
from chatparsers.tokens import Vocabulary

THINKING = [
    info.name
    for info in list_formats()
    if info.origin == "chatparsers" and get_format(info.name).features.reasoning
]
TOOLS = [
    tool("get_weather", {"city": {"type": "string"}, "days": {"type": "integer"}}, ["city"]),
    tool("now", {}, []),
]
ANSWER = {
    "type": "object",
    "properties": {"x": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["x"],
}
REQUESTS: dict[str, dict[str, Any]] = {
    "auto": {"tools": TOOLS},
    "required": {"tools": TOOLS, "tool_choice": "required"},
    "schema": {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": ANSWER}}},
    "nothing": {},
}
THOUGHTS = ("Hm, 😀 the 天気.\n", "a < b </ c </thin", '{"a": [1]}\n\n', "é", "")


def unexpected(message: Message) -> list[Diagnostic]:
    """What is told of an answer, but for what no grammar keeps from it: a call like one before, and markers that mean
    nothing where they stand, in text or in a text value."""
    return [one for one in message.diagnostics if not expected(one, message)]


def expected(one: Diagnostic, message: Message) -> bool:
    kind = next((region.kind for region in message.regions if region.start <= one.position < region.end), "")
    calls = [(call.name, call.arguments) for call in message.tool_calls]
    if one.code == "repeated-call":
        assert one.call is not None
        return calls[one.call] in calls[: one.call]
    if one.code == "markup-in-value":
        assert one.call is not None
        return one.found[:4] in message.tool_calls[one.call].arguments
    return one.code == "stray-marker" and one.call is None and kind != "call"


def same(one: Message, other: Message) -> bool:
    """Whether they are equal, but for how many tokens they are."""

    def without_counts(message: Message) -> Message:
        regions = [replace(region, token_start=None, token_end=None) for region in message.regions]
        return replace(message, regions=regions)

    return without_counts(one) == without_counts(other)


def opener(format: Format) -> str:
    """What a prompt writes that opens a thought."""
    written = format.render({"role": "assistant", "reasoning_content": "QZX"})
    return written[: written.index("QZX")]


def ends_by_itself(format: Format, tokenizer: Any) -> bool:
    return any(tokenizer.token_to_id(stop) is not None for stop in format.stops)


def turns(name: str, tokenizer: Any, begun: bool) -> list[Turn]:
    format = get_format(name)
    end = tokenizer.decode([end_of(tokenizer)], skip_special_tokens=False)
    found = []
    for asked in REQUESTS.values():
        if "tools" in asked and not format.features.tools:
            continue
        found.append(
            format.bind(
                **asked,
                tokenizer=tokenizer,
                prefix=opener(format) if begun else "",
                id_seed="s",
                token_config=None if ends_by_itself(format, tokenizer) else {"eos_token": end},
            )
        )
    return found


class Watched(Mask):
    """A guide as the mask of a toy model. It holds what the guide says of itself against what it does."""

    def __init__(self, guide: Guide, turn: Turn, budget: int, chance: random.Random) -> None:
        self.guide = guide
        self.turn = turn
        self.budget = budget
        self.chance = chance
        self.size = guide._plan.size
        self.thought = 0
        self.closed = 0
        self.ids: list[int] = []

    def mask(self, guide: Guide) -> np.ndarray:
        words = np.zeros((self.size + 31) // 32, dtype=np.int32)
        if not guide.fill(words):
            return np.ones(self.size, dtype=bool)
        return np.unpackbits(words.view(np.uint8), bitorder="little")[: self.size].astype(bool)

    def allowed(self) -> np.ndarray:
        found = self.mask(self.guide)
        assert found.any(), f"nothing may come after {self.shown()!r}"
        forced = self.guide.forced()
        if forced:
            assert found[forced[0]]
            assert self.guide.accepts(forced) == len(forced)
            if self.chance.random() < 0.3:
                self.go_without(forced)
        return found

    def go_without(self, forced: list[int]) -> None:
        """Samples any allowed ids in place of the forced ones, and holds both against each other: they are the same
        text, with the same special tokens, and what may follow is the same."""
        alone, with_forced = self.guide.fork(), self.guide.fork()
        with_forced.feed(forced)
        text, sampled = self.spelt(forced), []
        while len(self.spelt(sampled)) < len(text) and not alone.ended:
            sampled.append(int(self.chance.choice(np.flatnonzero(self.mask(alone)).tolist())))
            alone.feed(sampled[-1])
        spelt = self.spelt(sampled)
        assert spelt[: len(text)] == text, (self.shown(), spelt, text)
        if spelt == text and alone.state.left == with_forced.state.left:
            assert alone.state[:4] == with_forced.state[:4], self.shown()
            assert same(alone.message, with_forced.message), self.shown()
            assert (self.mask(alone) == self.mask(with_forced)).all(), self.shown()

    def spelt(self, ids: list[int]) -> list[Any]:
        """The bytes of ordinary tokens, and the special ones."""
        vocabulary, found = Vocabulary.of(self.turn.tokenizer), []
        for id in ids:
            piece = vocabulary.pieces[id]
            if id in vocabulary.added:
                found.append(("id", id))
            else:
                found += piece.encode() if isinstance(piece, str) else piece
        return found

    def accept(self, id: int) -> bool:
        guide, before = self.guide, self.guide.state
        limit = guide._forced_id >= 0
        if limit:
            assert guide._known.kind == "reasoning" and before.left == 0
        guide.feed(id)
        self.ids.append(id)
        if before.kind == "reasoning" and not limit:
            self.thought += 1
        if limit and guide._forced_id < 0:
            self.closed += 1
            assert guide.state.kind != "reasoning", self.shown()
        assert self.thought <= self.budget + 3, self.shown()
        assert self.closed <= 1, self.shown()
        if self.chance.random() < 0.05:
            self.go_back()
        return True

    def go_back(self) -> None:
        """Takes some ids back and gives them again, and compares with a fork that never saw others."""
        guide, count = self.guide, self.chance.randint(1, min(8, len(self.ids)))
        before = self.seen(guide)
        fork = guide.fork()
        fork.rollback(count)
        fresh = self.turn.guide(thinking_tokens=self.budget, engine=self.engine)
        fresh.feed(self.ids[:-count])
        assert self.seen(fork) == self.seen(fresh), self.shown()
        fork.feed(self.ids[-count:])
        assert self.seen(fork) == before == self.seen(guide), self.shown()

    engine: Any = None

    def seen(self, guide: Guide) -> Any:
        return guide.state, guide.forced(), self.mask(guide).tobytes(), guide.message

    def shown(self) -> str:
        return str(self.turn.tokenizer.decode(self.ids, skip_special_tokens=False))


def run(turn: Turn, engine: Any, budget: int, seed: int) -> str:
    chance = random.Random(seed)
    guide = turn.guide(engine, thinking_tokens=budget)
    watched = Watched(guide, turn, budget, chance)
    watched.engine = engine
    if guide.state.kind == "reasoning":
        for id in Vocabulary.of(turn.tokenizer).encode(chance.choice(THOUGHTS)):
            if guide.state.kind == "reasoning" and watched.allowed()[id]:
                watched.accept(id)
    _, end = sample(watched, turn.tokenizer, turn.format, turn.stop_ids, seed, 120)
    assert end in ("ended", "cut"), (end, watched.shown())
    guide.finish()
    message = guide.message
    if end == "ended":
        told = [one for one in unexpected(message) if guide.grammar is not None or one.code != "truncated"]
        assert not told, (told, watched.shown())
        assert message.complete or guide.grammar is None  # then a model may end its turn within a thought
        assert message == turn.parse(watched.ids)
    return end


def keeps_budgets(name: str, tokenizer: Any, count: int, engines: list[str], chance: random.Random) -> None:
    for _ in range(count):
        try:
            found = turns(name, tokenizer, chance.random() < 0.7)
        except ChatParsersError as error:
            pytest.skip(str(error))
        turn, engine = chance.choice(found), chance.choice(engines)
        try:
            turn.guide(engine)  # type: ignore[arg-type]
        except RequestError as error:
            assert str(error).startswith("prefix:")  # after that thought, no shaped answer can be written
            continue
        run(turn, engine, chance.choice([0, 1, 2, 5, 12, 40, 64]), chance.getrandbits(32))


@pytest.mark.parametrize("name", THINKING)
def test_a_budget_is_kept(name: str, amount: Callable[[int, int, int], int]) -> None:
    llguidance(), xgrammar()
    chance = random.Random(name)
    engines = ["llguidance", "llguidance", "xgrammar"]
    for _ in range(amount(3, 6, 40)):
        tokenizer = toy_tokenizer(get_format(name), chance.random() < 0.5)
        keeps_budgets(name, tokenizer, 1, engines, chance)


@pytest.mark.of_the_folder
@pytest.mark.parametrize("name", THINKING)
def test_a_budget_is_kept_with_a_real_vocabulary(
    name: str, amount: Callable[[int, int, int], int], request: pytest.FixtureRequest
) -> None:
    """In llguidance, as xgrammar compiles a grammar over a real vocabulary for a second or more."""
    count = amount(0, 1, 10)
    if not count:
        pytest.skip("a mask of 150,000 tokens takes long to sample from: with --whole")
    llguidance()
    _, tokenizer = real_tokenizer(name, request.config)
    keeps_budgets(name, tokenizer, count, ["llguidance"], random.Random(name))


CALLING = [
    info.name
    for info in list_formats()
    if info.origin == "chatparsers" and get_format(info.name).features.tools
]


@pytest.mark.parametrize("name", CALLING)
def test_a_call_comes_within_so_much_content(name: str, amount: Callable[[int, int, int], int]) -> None:
    llguidance(), xgrammar()
    format, chance = get_format(name), random.Random(name)
    for _ in range(amount(2, 4, 20)):
        tokenizer = toy_tokenizer(format, chance.random() < 0.5)
        ends = {"eos_token": "<|toy_end|>"} if not format.stops else None
        turn = format.bind(tools=TOOLS, tokenizer=tokenizer, id_seed="s", token_config=ends)
        within = chance.choice([1, 3, 8, 20])
        given = {"call_within": within}
        if chance.random() < 0.5:
            turn, given = turn._replace(**given), {}
        try:
            guide = turn.guide(chance.choice(["llguidance", "xgrammar"]), **given, max_calls=2)
        except ChatParsersError as error:
            assert "call_within" in str(error) or "name of the tool" in str(error)
            continue
        said, ids, chance_of_ids = 0, [], np.random.default_rng(chance.getrandbits(32))
        words = np.zeros((guide._plan.size + 31) // 32, dtype=np.int32)
        ordinary = set(Vocabulary.of(tokenizer).encode("Let me look, 天気 <tool_ {"))
        while not guide.ended and len(ids) < 150:
            assert guide.fill(words)
            allowed = np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))
            assert len(allowed), tokenizer.decode(ids, skip_special_tokens=False)
            wished = [id for id in allowed if int(id) in ordinary] if guide.state.kind != "call" else []
            id = int(chance_of_ids.choice(wished or allowed))
            if id in turn.stop_ids and not guide.message.tool_calls and len(allowed) > len(turn.stop_ids):
                continue  # a model may end its turn before it must call
            guide.feed(id)
            ids.append(id)
            # A call's opener of several ids is content until it is one.
            said += guide.state.kind == "content" and not guide._known.called and not guide.message.tool_calls
            assert said <= within + 3, tokenizer.decode(ids, skip_special_tokens=False)
        guide.finish()
        message = guide.message
        assert len(message.tool_calls) <= 2
        if guide.ended:
            assert not unexpected(message), (unexpected(message), message.text)
            assert message.tool_calls or said < within, message.text
