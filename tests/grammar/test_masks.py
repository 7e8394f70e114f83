"""The mask says what the matcher takes: both are compared for every token at every step of a run.

A server samples a token from the mask and hands it to the matcher. If the matcher refuses it, the request fails. A
structural tag may hide one kind of token that its rules take: a quote that ends a string together with white space,
because its look-ahead has none (structural_tag.py). The quote alone is then allowed, so no text is lost.
"""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import pytest
from test_matrix import TOOL_FORMATS
from test_sampler import DIALECTS, REQUESTS, end_of, mask_of, real_tokenizer
from toy import Mask, pieces, sample, toy_tokenizer

import chatparsers

MOST = 400
"""So many tokens are tried at a step. All of a toy vocabulary, a part of a real one."""
QUOTE_AND_BLANK = re.compile(rb'"[ \n\t]').search


class Compared(Mask):
    """A mask whose tokens are all tried."""

    def __init__(self, inner: Mask, texts: list[bytes], seed: int) -> None:
        self.inner = inner
        self.texts = texts
        self.chance = random.Random(seed)
        self.refused: dict[bytes, int] = {}
        """Tokens in the mask that the matcher refuses, each with a step."""
        self.hidden: dict[bytes, int] = {}
        """Tokens that the matcher takes and the mask has not."""
        self.tried = 0
        self.step = 0

    def allowed(self) -> np.ndarray:
        allowed = self.inner.allowed()
        ids: Any = [id for id, text in enumerate(self.texts) if text]
        if len(ids) > MOST:
            inside = np.flatnonzero(allowed).tolist()
            ids = {
                *self.chance.sample(inside, min(MOST // 2, len(inside))),
                *self.chance.sample(ids, MOST // 2),
            }
        for id in ids:
            takes = self.inner.would_accept(id)
            if takes != allowed[id]:
                (self.hidden if takes else self.refused)[self.texts[id]] = self.step
        self.tried += len(ids)
        self.step += 1
        return allowed

    def accept(self, id: int) -> bool:
        return self.inner.accept(id)


def compare(name: str, dialect: str, tokenizer: Any, modes: dict[str, dict[str, Any]], budget: int) -> None:
    format = chatparsers.get_format(name)
    texts = pieces(tokenizer)
    for mode, asked in modes.items():
        turn = format.bind(**asked, tokenizer=tokenizer)
        stops = list(turn.stop_ids) or [end_of(tokenizer)]
        seed = random.Random(f"{name}/{dialect}/{mode}").getrandbits(32)
        mask = Compared(mask_of(turn, dialect, tokenizer, stops), texts, seed)
        ids, _ = sample(mask, tokenizer, format, stops, seed, budget)
        shown = tokenizer.decode(ids, skip_special_tokens=False)
        assert mask.tried, "nothing was compared"
        assert not mask.refused, f"{dialect}, {mode}: in the mask, and refused: {mask.refused} of {shown!r}"
        if dialect == "lark":
            continue  # where one text alone may follow, llguidance's mask has one of its spellings
        hidden = {
            text: step
            for text, step in mask.hidden.items()
            if dialect != "structural_tag" or not QUOTE_AND_BLANK(text)
        }
        assert not hidden, f"{dialect}, {mode}: taken, and not in the mask: {hidden} of {shown!r}"


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_the_mask_is_what_the_matcher_takes(name: str, pytestconfig: pytest.Config) -> None:
    nightly = bool(pytestconfig.getoption("--nightly"))
    tokenizer = toy_tokenizer(chatparsers.get_format(name), True)
    for dialect in DIALECTS:
        modes = {mode: asked for mode, asked in REQUESTS.items() if dialect != "gbnf" or mode != "auto"}
        if not nightly:
            modes = {"required": {**REQUESTS["required"], "thinking": False}}
        compare(name, dialect, tokenizer, modes, 240 if nightly else 60)


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_with_a_real_vocabulary(name: str, request: pytest.FixtureRequest) -> None:
    if not request.config.getoption("--nightly"):
        pytest.skip("a mask of 150,000 tokens takes long to compare: with --nightly")
    _, tokenizer = real_tokenizer(name, request.config)
    modes = {"required": {**REQUESTS["required"], "thinking": False}}
    for dialect in DIALECTS:
        compare(name, dialect, tokenizer, modes, 60)


@pytest.mark.parametrize(("before", "hides"), [("", set()), ('"days": 3, ', {b'."\n', b'}"\n'})])
@pytest.mark.parametrize("dialect", ["gbnf", "structural_tag"])
def test_at_the_end_of_a_string(dialect: str, before: str, hides: set[bytes]) -> None:
    """If another member must come, a comma follows the quote at once. If not, white space may follow."""
    tokenizer = toy_tokenizer(chatparsers.get_format("qwen3"), True)
    turn = chatparsers.get_format("qwen3").bind(**REQUESTS["required"], thinking=False, tokenizer=tokenizer)
    mask = Compared(mask_of(turn, dialect, tokenizer, [end_of(tokenizer)]), pieces(tokenizer), 0)
    begun = f'<tool_call>\n{{"name": "get_weather", "arguments": {{{before}"city": "Os'
    for id in tokenizer.encode(begun, add_special_tokens=False).ids:
        assert mask.accept(id)
    allowed = mask.allowed()
    assert {tokenizer.token_to_id(text): bool(before) for text in ('"}}',)}.items() <= dict(
        enumerate(allowed.tolist())
    ).items()
    assert not mask.refused
    assert set(mask.hidden) == (hides if dialect == "structural_tag" else set())
