"""Masks of a structural tag that a host was given, by xgrammar."""

from __future__ import annotations

from typing import Any

import numpy as np
import xgrammar

from chatparsers.tokens import Vocabulary


def compiler(tokenizer: Any, size: int, ends: Any) -> Any:
    vocabulary = Vocabulary.of(tokenizer)
    count = tokenizer.get_vocab_size(with_added_tokens=True)
    pieces = [vocabulary.pieces[id] for id in range(min(count, size))]
    info = xgrammar.TokenizerInfo(
        [piece.encode() if isinstance(piece, str) else piece for piece in pieces],
        vocab_type=xgrammar.VocabType.RAW,
        vocab_size=size,
        stop_token_ids=list(ends),
    )
    return xgrammar.GrammarCompiler(info)


class TagMask:
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
