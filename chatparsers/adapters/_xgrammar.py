"""Masks of xgrammar, from structural tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import xgrammar

from ..core.format import Turn
from ..tokens import Vocabulary
from ._installed import XGRAMMAR

__all__ = ["xgrammar_masks"]

_compilers: WeakKeyDictionary[Any, dict[tuple[int, tuple[int, ...]], Any]] = WeakKeyDictionary()


def xgrammar_masks(turn: Turn, size: int, ends: Sequence[int]) -> Callable[[], _XgrammarMask] | None:
    """Makes new masks for ``turn``; None if it constrains nothing."""
    grammar = turn.grammar("structural_tag", engine=XGRAMMAR)
    if grammar is None:
        return None
    compiled = _compiler(turn.tokenizer, size, tuple(ends)).compile_structural_tag(str(grammar))
    return lambda: _XgrammarMask(compiled, size)


class _XgrammarMask:
    def __init__(self, compiled: Any, size: int) -> None:
        self._matcher = xgrammar.GrammarMatcher(compiled)
        self._size = size
        self._bits = xgrammar.allocate_token_bitmask(1, size)

    def allowed(self) -> Any:
        self._matcher.fill_next_token_bitmask(self._bits)
        bits = self._bits.numpy().view(np.uint8)
        return np.unpackbits(bits, bitorder="little")[: self._size].astype(bool)

    def accept(self, id: int) -> bool:
        return bool(self._matcher.accept_token(id))


def _compiler(tokenizer: Any, size: int, ends: tuple[int, ...]) -> Any:
    known = _compilers.setdefault(tokenizer, {})
    if (size, ends) not in known:
        vocabulary = Vocabulary.of(tokenizer)
        count = tokenizer.get_vocab_size(with_added_tokens=True)
        pieces = [_bytes(vocabulary.pieces[id]) for id in range(min(count, size))]
        info = xgrammar.TokenizerInfo(
            pieces, vocab_type=xgrammar.VocabType.RAW, vocab_size=size, stop_token_ids=list(ends)
        )
        known[size, ends] = xgrammar.GrammarCompiler(info)
    return known[size, ends]


def _bytes(piece: str | bytes) -> bytes:
    return piece.encode() if isinstance(piece, str) else piece
