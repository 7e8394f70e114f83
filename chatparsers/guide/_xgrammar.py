"""xgrammar as an engine: structural tags."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import memmove
from importlib.metadata import version
from typing import Any

import numpy as np
import xgrammar

from ..tokens import Vocabulary
from .bitmask import allow_none


class Xgrammar:
    """xgrammar over a tokenizer. ``ends``: the ids that end a turn."""

    dialect = "structural_tag"

    def __init__(self, tokenizer: Any, ends: tuple[int, ...]) -> None:
        self.vocabulary = Vocabulary.of(tokenizer)
        self.size = tokenizer.get_vocab_size(with_added_tokens=True)
        pieces = [self.vocabulary.pieces[id] for id in range(self.size)]
        info = xgrammar.TokenizerInfo(
            [piece.encode() if isinstance(piece, str) else piece for piece in pieces],
            vocab_type=xgrammar.VocabType.RAW,
            vocab_size=self.size,
            stop_token_ids=list(ends),
        )
        self.last = np.uint32(2 ** ((self.size - 1) % 32 + 1) - 1).view(np.int32)
        """The bits of ids in the last word of a mask. xgrammar sets those after them."""
        self._compiler = xgrammar.GrammarCompiler(info)
        self.options: dict[str, Any] = {"engine": f"xgrammar=={version('xgrammar')}"}

    def compiled(self, grammar: str) -> XgrammarMatcher:
        compiled = self._compiler.compile_structural_tag(grammar)
        return XgrammarMatcher(xgrammar.GrammarMatcher(compiled), self)


class XgrammarFiller:
    """Fills the masks of many matchers."""

    def __init__(self, threads: int | None) -> None:
        self._batch = xgrammar.BatchGrammarMatcher("auto" if threads is None else threads)
        self._words = np.zeros((0, 0), dtype=np.int32)

    def fill(self, rows: list[tuple[XgrammarMatcher, int]], address: int, size: int, count: int) -> None:
        shape = (len(rows), (rows[0][0].size + 31) // 32)
        if self._words.shape != shape:
            self._words = np.zeros(shape, dtype=np.int32)
        self._batch.batch_fill_next_token_bitmask([matcher._inner for matcher, _ in rows], self._words)
        self._words[:, -1] &= rows[0][0]._engine.last
        for place, (_, row) in enumerate(rows):
            allow_none(address + row * size, size)
            memmove(address + row * size, self._words[place].ctypes.data, shape[1] * 4)


class XgrammarMatcher:
    """The state of an answer in xgrammar."""

    __slots__ = ("_engine", "_inner", "_words", "size", "take")

    filler = XgrammarFiller

    def __init__(self, inner: Any, engine: Xgrammar) -> None:
        self._inner = inner
        self.size = engine.size
        self._engine = engine
        self._words = np.zeros((1, (engine.size + 31) // 32), dtype=np.int32)
        self.take = inner.accept_token

    def mend(self, ids: Sequence[int]) -> None:
        """Nothing: a refused id changes nothing."""

    def accepts(self, ids: Sequence[int]) -> int:
        count = 0
        for id in ids:
            if self._inner.is_terminated() or not self._inner.accept_token(id):
                break
            count += 1
        self.rollback(count)
        return count

    def rollback(self, count: int) -> None:
        if count:
            self._inner.rollback(count)

    def copy(self) -> XgrammarMatcher:
        return XgrammarMatcher(self._inner.fork(), self._engine)

    def fill(self, address: int) -> None:
        self._inner.fill_next_token_bitmask(self._words)
        self._words[0, -1] &= self._engine.last
        memmove(address, self._words.ctypes.data, self._words.nbytes)

    def forced(self) -> list[int]:
        text = self._inner.find_jump_forward_string()
        if not text:
            return []
        ids = self._engine.vocabulary.ids_of(text)
        return list(ids[: self.accepts(ids)])
