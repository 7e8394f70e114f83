"""Masks of llguidance, from Lark grammars."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import llguidance
import numpy as np

from ..core.format import Turn
from ..errors import RequestError

__all__ = ["llguidance_masks"]

_tokenizers: WeakKeyDictionary[Any, dict[tuple[int, tuple[int, ...]], Any]] = WeakKeyDictionary()


def llguidance_masks(turn: Turn, size: int, ends: Sequence[int]) -> Callable[[], _LlguidanceMask] | None:
    """Makes new masks for ``turn``; None if it constrains nothing."""
    grammar = turn.grammar("lark")
    if grammar is None:
        return None
    text = llguidance.LLMatcher.grammar_from_lark(str(grammar))
    tokenizer = _tokenizer(turn.tokenizer, size, tuple(ends))
    return lambda: _LlguidanceMask(tokenizer, text, size)


class _LlguidanceMask:
    def __init__(self, tokenizer: Any, text: str, size: int) -> None:
        self._matcher = llguidance.LLMatcher(tokenizer, text, log_level=0)
        self._size = size
        self._check()

    def allowed(self) -> Any:
        bits = np.frombuffer(self._matcher.compute_bitmask(), dtype=np.uint8)
        self._check()
        return np.unpackbits(bits, bitorder="little")[: self._size].astype(bool)

    def accept(self, id: int) -> bool:
        return bool(self._matcher.consume_token(id))

    def _check(self) -> None:
        if self._matcher.is_error():
            raise RequestError(f"grammar: llguidance gives up: {self._matcher.get_error()}")


def _tokenizer(tokenizer: Any, size: int, ends: tuple[int, ...]) -> Any:
    known = _tokenizers.setdefault(tokenizer, {})
    if (size, ends) not in known:
        known[size, ends] = llguidance.LLTokenizer(tokenizer.to_str(), n_vocab=size, eos_token=list(ends))
    return known[size, ends]
