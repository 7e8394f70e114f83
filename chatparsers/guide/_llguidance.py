"""llguidance as an engine: Lark grammars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import llguidance

from ..errors import RequestError
from .bitmask import allow_none


class Llguidance:
    """llguidance over a tokenizer. ``ends``: the ids that end a turn."""

    dialect = "lark"

    def __init__(self, tokenizer: Any, ends: tuple[int, ...]) -> None:
        self.tokenizer = llguidance.LLTokenizer(tokenizer.to_str(), eos_token=list(ends))
        self.size = self.tokenizer.vocab_size
        self.options: dict[str, Any] = {}

    def compiled(self, grammar: str) -> LlguidanceMatcher:
        text = llguidance.LLMatcher.grammar_from_lark(grammar)
        fresh = llguidance.LLMatcher(self.tokenizer, text, log_level=0)
        made = LlguidanceMatcher(fresh, fresh, self.size)
        made.check()
        return made


class LlguidanceFiller:
    """Fills the masks of many matchers."""

    def __init__(self, threads: int | None) -> None:
        self._executor = llguidance.LLExecutor(threads)

    def fill(self, rows: list[tuple[LlguidanceMatcher, int]], address: int, size: int, count: int) -> None:
        if all(matcher.bytes == size for matcher, _ in rows):
            inner = [(matcher._inner, row) for matcher, row in rows]
            self._executor.unsafe_compute_mask_ptr(inner, address, size, count)
        else:
            for matcher, row in rows:
                allow_none(address + row * size, size)
                matcher.fill(address + row * size)
        for matcher, _ in rows:
            matcher.check()


class LlguidanceMatcher:
    """The state of an answer in llguidance. ``fresh``: the state before the first id."""

    __slots__ = ("_fresh", "_inner", "bytes", "forced", "size", "take")

    filler = LlguidanceFiller

    def __init__(self, fresh: Any, inner: Any, size: int) -> None:
        self._fresh = fresh
        self.size = size
        self.bytes = (size + 31) // 32 * 4
        self._set(inner)

    def _set(self, inner: Any) -> None:
        self._inner = inner
        self.take = inner.consume_token
        self.forced = inner.compute_ff_tokens

    def mend(self, ids: Sequence[int]) -> None:
        if self._inner.is_error():
            self._set(self._fresh.deep_copy())
            self._inner.consume_tokens(list(ids))

    def accepts(self, ids: Sequence[int]) -> int:
        return int(self._inner.validate_tokens(list(ids)))

    def rollback(self, count: int) -> None:
        self._inner.rollback(count)

    def copy(self) -> LlguidanceMatcher:
        return LlguidanceMatcher(self._fresh, self._inner.deep_copy(), self.size)

    def fill(self, address: int) -> None:
        self._inner.unsafe_compute_mask_ptr(address, self.bytes)
        self.check()

    def check(self) -> None:
        """Raises `RequestError` if llguidance gave up."""
        if self._inner.is_error():
            raise RequestError(f"grammar: llguidance gives up: {self._inner.get_error()}")
