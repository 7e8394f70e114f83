"""xgrammar as an engine: structural tags."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from ctypes import c_uint32, memmove
from importlib.metadata import version
from typing import Any, TypeAlias

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
        info = xgrammar.TokenizerInfo(
            self.pieces,
            vocab_type=xgrammar.VocabType.RAW,
            vocab_size=self.size,
            stop_token_ids=list(ends),
        )
        self.ends = ends
        self.last = 2 ** ((self.size - 1) % 32 + 1) - 1
        """The bits of ids in the last word of a mask. xgrammar sets those after them, which are taken out."""
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
        for words, (matcher, row) in zip(self._words, rows, strict=True):
            _bits(words)[-1] &= matcher.last
            allow_none(address + row * size, size)
            memmove(address + row * size, words.ctypes.data, words.nbytes)


class XgrammarMatcher:
    """The state of an answer in xgrammar. ``tokens``: the ids that its grammar names."""

    __slots__ = (
        "_address", "_engine", "_given", "_own", "_tokens", "bytes", "inner", "last", "rollback", "size",
        "take",
    )  # fmt: skip

    filler = XgrammarFiller

    def __init__(self, inner: Any, engine: Xgrammar, tokens: list[int]) -> None:
        self.inner = inner
        self._engine = engine
        self._tokens = tokens
        self.size = engine.size
        self.bytes = (engine.size + 31) // 32 * 4
        self.last = engine.last
        self._address = -1
        self._given: _Mask
        """The mask at ``_address``, which was filled last: those of one answer nearly always come to one place."""
        self._own: _Mask | None = None
        """To look at a mask here."""
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
            self._given = _mask((c_uint32 * (self.bytes >> 2)).from_address(address))
            self._address = address
        words, bits = self._given
        self.inner.fill_next_token_bitmask(words)
        bits[-1] &= self.last

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
        _, words = self._looked()
        return any(words[token >> 5] >> (token & 31) & 1 for token in self._tokens if token != id)

    def _text_follows(self) -> bool:
        """Whether more may come next than tokens that the grammar names and the end of the turn, before which the
        tokenizer cuts text as it cuts it alone."""
        words, bits = self._looked()
        for id in (*self._tokens, *self._engine.ends):
            _clear(bits, id)
        return bool(words.any())

    def _looked(self) -> _Mask:
        """What may come next, in the matcher's own words."""
        if self._own is None:
            self._own = _mask((c_uint32 * (self.bytes >> 2))())
        self.inner.fill_next_token_bitmask(self._own[0])
        self._own[1][-1] &= self.last
        return self._own


_Mask: TypeAlias = "tuple[Any, memoryview]"
"""The words of a mask as xgrammar takes them, and as `_bits`."""


def _mask(words: Any) -> _Mask:
    """A mask of ctypes' unsigned integers."""
    return np.frombuffer(words, dtype=np.int32).reshape(1, -1), _bits(words)


def _bits(words: Any) -> memoryview:
    """A mask as unsigned integers, which Python counts with faster than with numpy's."""
    return memoryview(words).cast("B").cast("I")


def _clear(words: memoryview, id: int) -> None:
    """Takes an id out of a mask."""
    words[id >> 5] &= ~(1 << (id & 31))
