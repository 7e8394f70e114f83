"""llguidance as an engine: Lark grammars.

Two things of llguidance 1.9 are not used. If it may write forced text ahead, it loses its place when ids are taken back
after a mask was asked for; so that is switched off, and `LlguidanceMatcher.forced` finds what is forced from masks.
And an id that ends the turn is not given to it, because it would take back one byte too many.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ctypes import addressof, c_char
from itertools import groupby
from typing import Any

import llguidance

from ..errors import RequestError
from ..tokens import Vocabulary
from .bitmask import allow_none

_NO_FORCING = '%llguidance {"no_forcing": true}\n'
_MOST_FORCED = 128
"""So many ids are looked ahead."""
_MOST_BEGUN = 64
"""If more ids than these are allowed, none of them is forced: forced text has few beginnings."""
_any_bit = re.compile(rb"[^\x00]").finditer
_BLOCK = 512
_NO_BITS = bytes(_BLOCK)
"""So many bytes of a mask are looked at together, as most have no bit if few ids are allowed."""


class Llguidance:
    """llguidance over a tokenizer. ``ends``: the ids that end a turn."""

    dialect = "lark"

    def __init__(self, tokenizer: Any, ends: tuple[int, ...]) -> None:
        self.tokenizer = llguidance.LLTokenizer(tokenizer.to_str(), eos_token=list(ends))
        self.vocabulary = Vocabulary.of(tokenizer)
        self.ends = frozenset(ends)
        self.size = self.tokenizer.vocab_size
        self.options: dict[str, Any] = {}

    def compiled(self, grammar: str) -> LlguidanceMatcher:
        text = llguidance.LLMatcher.grammar_from_lark(_NO_FORCING + grammar)
        fresh = llguidance.LLMatcher(self.tokenizer, text, log_level=0)
        made = LlguidanceMatcher(fresh, fresh, self)
        made.check()
        return made

    def bytes_of(self, id: int) -> bytes:
        """The bytes of an id; none if it stands for no text."""
        piece = "" if id in self.vocabulary.added else self.vocabulary.pieces[id]
        return piece.encode() if isinstance(piece, str) else piece

    def as_encoded(self, ids: list[int]) -> list[int]:
        """The ids in which the tokenizer writes the text of ``ids``, whatever text follows."""
        found: list[int] = []
        runs = [(special, list(run)) for special, run in groupby(ids, self.vocabulary.added.__contains__)]
        for special, run in runs[:-1]:
            found += run if special else self.vocabulary.ids_of(self._text(run).decode("utf-8", "ignore"))
        for special, run in runs[-1:]:
            found += run if special else self.tokenizer.tokenize_partial(self._text(run), found[-_RECENT:])[0]
        return found

    def _text(self, ids: list[int]) -> bytes:
        return b"".join(map(self.bytes_of, ids))


_RECENT = 3
"""So many ids before a text are a hint of how it is cut."""


class LlguidanceFiller:
    """Fills the masks of many matchers."""

    def __init__(self, threads: int | None) -> None:
        self._executor = llguidance.LLExecutor(threads)

    def fill(self, rows: list[tuple[LlguidanceMatcher, int]], address: int, size: int, count: int) -> None:
        if all(matcher.bytes == size for matcher, _ in rows):
            inner = [(matcher.inner, row) for matcher, row in rows]
            self._executor.unsafe_compute_mask_ptr(inner, address, size, count)
        else:
            for matcher, row in rows:
                allow_none(address + row * size, size)
                matcher.fill(address + row * size)
        for matcher, _ in rows:
            matcher.check()


class LlguidanceMatcher:
    """The state of an answer in llguidance. ``fresh``: the state before the first id."""

    __slots__ = ("_engine", "_fresh", "_mask", "bytes", "inner", "rollback", "size", "take")

    filler = LlguidanceFiller

    def __init__(self, fresh: Any, inner: Any, engine: Llguidance) -> None:
        self._fresh = fresh
        self._engine = engine
        self._mask: tuple[bytearray, int] | None = None
        """To look at a mask here: its bytes, and where they are."""
        self.size = engine.size
        self.bytes = (engine.size + 31) // 32 * 4
        self._set(inner)

    def _set(self, inner: Any) -> None:
        self.inner = inner
        self.take = inner.consume_token
        self.rollback = inner.rollback

    def restart(self, ids: Sequence[int]) -> None:
        self._set(self._fresh.deep_copy())
        self.inner.consume_tokens(list(ids))

    def may_end(self) -> bool:
        return bool(self.inner.is_accepting())

    def accepts(self, ids: Sequence[int]) -> int:
        return int(self.inner.validate_tokens(list(ids)))

    def copy(self) -> LlguidanceMatcher:
        return LlguidanceMatcher(self._fresh, self.inner.deep_copy(), self._engine)

    def fill(self, address: int) -> None:
        self.inner.unsafe_compute_mask_ptr(address, self.bytes)
        if self.inner.is_error():
            self.check()

    def forced(self) -> list[int]:
        """What all allowed ids begin with must come: it goes on by the shortest of them, as long as there is one."""
        taken: list[int] = []
        while len(taken) < _MOST_FORCED and (id := self._only()) >= 0 and self.take(id):
            taken.append(id)
        if not taken:
            return taken
        self.rollback(len(taken))
        found = self._engine.as_encoded(taken)
        return found[: self.accepts(found)]

    def _allowed(self) -> list[int]:
        """The ids that may come; none if they are too many."""
        if self._mask is None:
            made = bytearray(self.bytes)
            self._mask = made, addressof(c_char.from_buffer(made))
        mask, address = self._mask
        self.inner.unsafe_compute_mask_ptr(address, self.bytes)
        found: list[int] = []
        if min(_BLOCK, self.bytes) - mask.count(0, 0, _BLOCK) > _MOST_BEGUN:
            return found
        for begin in range(0, self.bytes, _BLOCK):
            if mask.startswith(_NO_BITS, begin):
                continue
            for byte in _any_bit(mask, begin, begin + _BLOCK):
                place = byte.start()
                found += [place * 8 + bit for bit in range(8) if mask[place] >> bit & 1]
                if len(found) > _MOST_BEGUN:
                    return []
        return found

    def _only(self) -> int:
        """The shortest of the ids that may come, if all begin with its text; -1 if there is none."""
        ids = self._allowed()
        if len(ids) <= 1:
            return -1 if not ids or ids[0] in self._engine.ends else ids[0]
        texts = {self._engine.bytes_of(id): id for id in ids}
        begin = min(texts, key=len, default=b"")
        return texts[begin] if begin and all(text.startswith(begin) for text in texts) else -1

    def check(self) -> None:
        """Raises `RequestError` if llguidance gave up."""
        if self.inner.is_error():
            raise RequestError(f"grammar: llguidance gives up: {self.inner.get_error()}")
