"""The mask says what the matcher takes: both are compared for every token at every step of a run.

A server samples a token from the mask and hands it to the matcher. If the matcher refuses it, the request fails. If the
matcher takes a token that the mask has not, the model cannot write what it would: another value comes out.
"""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import numpy as np
import pytest
from test_matrix import TOOL_FORMATS
from test_sampler import DIALECTS, REQUESTS, end_of, mask_of
from tokenizers import Tokenizer
from toy import Mask, pieces, sample, toy_tokenizer

import chatparsers
from chatparsers.testing.plugin import tokenizer_loaders


class Compared(Mask):
    """A mask whose tokens are all tried."""

    def __init__(self, inner: Mask, tokenizer: Any) -> None:
        self.inner = inner
        self.texts = pieces(tokenizer)
        self.added, self.ordinary, self.after = _in_order(tokenizer)
        self.refused: dict[bytes, int] = {}
        """Tokens in the mask that the matcher refuses, each with a step."""
        self.hidden: dict[bytes, int] = {}
        """Tokens that the matcher takes and the mask has not."""
        self.tried = 0
        self.step = 0

    def allowed(self) -> np.ndarray:
        allowed = self.inner.allowed()
        takes = np.zeros(len(self.texts), dtype=bool)
        takes[[id for id in self.added if self.inner.would_accept(id)]] = True
        at = 0
        while at < len(self.ordinary):
            id = self.ordinary[at]
            taken = takes[id] = self.inner.would_accept(id)
            at = at + 1 if taken else self.after[at]
        for id in np.flatnonzero(takes != allowed):
            (self.hidden if takes[id] else self.refused)[self.texts[id]] = self.step
        self.tried += len(self.texts)
        self.step += 1
        return allowed

    def accept(self, id: int) -> bool:
        return self.inner.accept(id)


@lru_cache(maxsize=8)
def _in_order(tokenizer: Tokenizer) -> tuple[list[int], list[int], list[int]]:
    """Added ids; ordinary ids in the order of their texts; for each of these the place of the next whose text does not
    begin with its text. Where a matcher takes no text of a token, it takes no token that goes on from it."""
    texts, added = pieces(tokenizer), tokenizer.get_added_tokens_decoder().keys()
    ordinary = sorted(
        (id for id, text in enumerate(texts) if text and id not in added), key=texts.__getitem__
    )
    after = [len(ordinary)] * len(ordinary)
    begun: list[int] = []
    for at, id in enumerate(ordinary):
        while begun and not texts[id].startswith(texts[ordinary[begun[-1]]]):
            after[begun.pop()] = at
        begun.append(at)
    return sorted(added), ordinary, after


def compare(name: str, dialect: str, tokenizer: Any, modes: dict[str, dict[str, Any]], budget: int) -> None:
    format = chatparsers.get_format(name)
    for mode, asked in modes.items():
        turn = format.bind(**asked, tokenizer=tokenizer)
        stops = list(turn.stop_ids) or [end_of(tokenizer)]
        seed = random.Random(f"{name}/{dialect}/{mode}").getrandbits(32)
        mask = Compared(mask_of(turn, dialect, tokenizer, stops, forcing=False), tokenizer)
        ids, _ = sample(mask, tokenizer, format, stops, seed, budget)
        shown = tokenizer.decode(ids, skip_special_tokens=False)
        assert mask.tried, "nothing was compared"
        assert not mask.refused, f"{dialect}, {mode}: in the mask, and refused: {mask.refused} of {shown!r}"
        assert not mask.hidden, f"{dialect}, {mode}: taken, and not in the mask: {mask.hidden} of {shown!r}"


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_the_mask_is_what_the_matcher_takes(name: str, pytestconfig: pytest.Config) -> None:
    nightly = bool(pytestconfig.getoption("--nightly"))
    tokenizer = toy_tokenizer(chatparsers.get_format(name), True)
    for dialect in DIALECTS:
        modes = {mode: asked for mode, asked in REQUESTS.items() if dialect != "gbnf" or mode != "auto"}
        if not nightly:
            modes = {"required": {**REQUESTS["required"], "thinking": False}}
        compare(name, dialect, tokenizer, modes, 240 if nightly else 60)


@pytest.mark.of_the_folder
@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_with_real_vocabularies(name: str, pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("--nightly"):
        pytest.skip("a mask of 150,000 tokens takes long to compare: with --nightly")
    loaders = tokenizer_loaders(pytestconfig)
    if not loaders:
        pytest.skip("no real tokenizers: give --shared DIR or set CHATPARSERS_SHARED")
    modes = {"required": {**REQUESTS["required"], "thinking": False}, "auto": REQUESTS["auto"]}
    for load in loaders.values():
        for dialect in ("structural_tag", "lark"):
            compare(name, dialect, load(), modes, 12)


@pytest.mark.parametrize("whitespace", [None, 1, 0])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_at_the_end_of_a_string(dialect: str, whitespace: int | None) -> None:
    """A token that ends a string may go on with the white space that the grammar allows after it."""
    tokenizer = toy_tokenizer(chatparsers.get_format("qwen3"), True)
    turn = chatparsers.get_format("qwen3").bind(**REQUESTS["required"], thinking=False, tokenizer=tokenizer)
    inner = mask_of(turn, dialect, tokenizer, [end_of(tokenizer)], forcing=False, whitespace=whitespace)
    mask, begun = Compared(inner, tokenizer), BEGUN.replace(" ", "") if whitespace == 0 else BEGUN
    for id in tokenizer.encode(begun, add_special_tokens=False).ids:
        assert mask.accept(id)
    allowed = mask.allowed()
    assert allowed[tokenizer.token_to_id('"}}')]
    for text in ('."\u010a', '}"\u010a'):
        assert bool(allowed[tokenizer.token_to_id(text)]) is (whitespace != 0)
    assert not mask.refused
    assert not mask.hidden


BEGUN = '<tool_call>\n{"name": "get_weather", "arguments": {"days": 3, "city": "Os'
