"""xgrammar as an engine: structural tags."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from ctypes import c_int32, memmove
from importlib.metadata import version
from typing import Any

import numpy as np
import xgrammar

from ..kept import cached
from ..tokens import Vocabulary
from .bitmask import allow_none


class Xgrammar:
    """xgrammar over a tokenizer. ``ends``: the ids that end a turn."""

    dialect = "structural_tag"

    def __init__(self, tokenizer: Any, ends: tuple[int, ...]) -> None:
        self.vocabulary = Vocabulary.of(tokenizer)
        self.size = tokenizer.get_vocab_size(with_added_tokens=True)
        pieces = [self.vocabulary.pieces[id] for id in range(self.size)]
        self.pieces = [piece.encode() if isinstance(piece, str) else piece for piece in pieces]
        rest = -self.size % 32
        """So many bits of a mask stand for no id. xgrammar may set them, but never those of ids without text."""
        info = xgrammar.TokenizerInfo(
            [*self.pieces, *[b""] * rest],
            vocab_type=xgrammar.VocabType.RAW,
            vocab_size=self.size + rest,
            stop_token_ids=list(ends),
        )
        self.ends = ends
        installed = version("xgrammar")
        # The cache of xgrammar 0.2.8 takes `"a" Token(1)` for `"a" Token(2)`, if it has compiled that before.
        cached = tuple(int(digits) for digits in re.findall(r"\d+", installed)[:3]) >= _CACHED
        self._compiler = xgrammar.GrammarCompiler(info, cache_enabled=cached, cache_limit_bytes=_CACHE)
        self.options: dict[str, Any] = {"engine": f"xgrammar=={installed}"}

    def compiled(self, grammar: str) -> XgrammarMatcher:
        compiled = self._compiler.compile_structural_tag(grammar)
        tokens = sorted({int(id) for id in _tokens(grammar)})
        return XgrammarMatcher(xgrammar.GrammarMatcher(compiled), self, tokens)

    @cached
    def texts(self) -> list[bytes]:
        """The texts of ordinary ids, sorted."""
        added = self.vocabulary.added
        return sorted({piece for id, piece in enumerate(self.pieces) if id not in added})

    def settled(self, ids: Sequence[int]) -> int:
        """How many of the ids stay, whatever text follows: where their text ends in the beginning of a longer id, the
        tokenizer may cut it otherwise from there on."""
        text, ends = b"", []
        for id in ids:
            text += self.pieces[id]
            ends.append(len(text))
        first = next((at for at in range(len(text)) if self._goes_on(text[at:])), len(text))
        return sum(end <= first for end in ends)

    def _goes_on(self, text: bytes) -> bool:
        """Whether a longer id begins with this text."""
        at = bisect_right(self.texts, text)
        return at < len(self.texts) and self.texts[at].startswith(text)


_CACHED = (0, 2, 9)
"""The first xgrammar whose cache of compiled grammars tells tokens apart."""
_CACHE = 256_000_000
"""The bytes of compiled grammars that are kept."""
_tokens = re.compile(r'(?:"token": |Token\()(\d+)').findall
"""The ids that a grammar names."""


class XgrammarFiller:
    """Fills the masks of many matchers."""

    def __init__(self, threads: int | None) -> None:
        self._batch = xgrammar.BatchGrammarMatcher("auto" if threads is None else threads)
        self._words = np.zeros((0, 0), dtype=np.int32)

    def fill(self, rows: list[tuple[XgrammarMatcher, int]], address: int, size: int, count: int) -> None:
        shape = (len(rows), (rows[0][0].size + 31) // 32)
        if self._words.shape != shape:
            self._words = np.zeros(shape, dtype=np.int32)
        self._batch.batch_fill_next_token_bitmask([matcher.inner for matcher, _ in rows], self._words)
        for words, (_, row) in zip(self._words, rows, strict=True):
            allow_none(address + row * size, size)
            memmove(address + row * size, words.ctypes.data, words.nbytes)


class XgrammarMatcher:
    """The state of an answer in xgrammar. ``tokens``: the ids that its grammar names."""

    __slots__ = (
        "_address", "_engine", "_given", "_own", "_tokens", "bytes", "inner", "rollback", "size", "take",
    )  # fmt: skip

    filler = XgrammarFiller

    def __init__(self, inner: Any, engine: Xgrammar, tokens: list[int]) -> None:
        self.inner = inner
        self._engine = engine
        self._tokens = tokens
        self.size = engine.size
        self.bytes = (engine.size + 31) // 32 * 4
        self._address = -1
        self._given: Any
        """The mask at ``_address``, which was filled last: those of one answer nearly always come to one place."""
        self._own: Any = None
        """A mask to look at here."""
        self.take = inner.accept_token
        self.rollback = inner.rollback

    def restart(self, ids: Sequence[int]) -> None:
        self.inner.reset()
        for id in ids:
            self.inner.accept_token(id)

    def may_end(self) -> bool:
        return bool(self.inner.is_completed())

    def accepts(self, ids: Sequence[int]) -> int:
        count = 0
        for id in ids:
            if self.inner.is_terminated() or not self.inner.accept_token(id):
                break
            count += 1
        self.rollback(count)
        return count

    def copy(self) -> XgrammarMatcher:
        return XgrammarMatcher(self.inner.fork(), self._engine, self._tokens)

    def fill(self, address: int) -> None:
        if address != self._address:
            words = (c_int32 * (self.bytes >> 2)).from_address(address)
            self._given = np.frombuffer(words, dtype=np.int32).reshape(1, -1)
            self._address = address
        self.inner.fill_next_token_bitmask(self._given)

    def forced(self) -> list[int]:
        found: list[int] = []
        text = self.inner.find_jump_forward_string()
        if not text:
            return found
        ids = self._engine.vocabulary.ids_of(text)
        for id in ids:
            if self._chooses(id) or not self.take(id):
                break
            found.append(id)
        whole = len(found) == len(ids) and not self._text_follows()
        self.rollback(len(found))
        return found if whole else found[: self._engine.settled(found)]

    def _chooses(self, id: int) -> bool:
        """Whether a token that the grammar names may come in place of ``id``: xgrammar's forced text ignores these."""
        if not self._tokens:
            return False
        words = self._looked()
        return any(words[token >> 5] >> (token & 31) & 1 for token in self._tokens if token != id)

    def _text_follows(self) -> bool:
        """Whether more may come next than tokens that the grammar names and the end of the turn, before which the
        tokenizer cuts text as it cuts it alone."""
        words = self._looked()
        for id in (*self._tokens, *self._engine.ends):
            words[id >> 5] &= ~(1 << (id & 31))
        return bool(self._own.any())

    def _looked(self) -> memoryview:
        """What may come next, in the matcher's own mask: its words as unsigned integers, which Python counts with
        faster than with numpy's."""
        if self._own is None:
            self._own = np.zeros((1, self.bytes >> 2), dtype=np.int32)
        self.inner.fill_next_token_bitmask(self._own)
        return memoryview(self._own).cast("B").cast("I")
