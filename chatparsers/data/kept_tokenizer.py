"""A tokenizer that keeps what it encoded: system texts and tools are the same in many rows, and encoding is the cost.

A text is cut before each added token. A tokenizer reads its added tokens first and each stretch between two of them by
itself, so the ids of the parts are the ids of the whole. Where a tokenizer has a token that takes white space from its
neighbours, the text is not cut.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

__all__ = ["Encoded", "KeptTokenizer"]

_SEEN = 8192
"""So many parts are remembered by their hash. A part is kept when it comes again: an answer comes once."""
_KEPT = 2_000_000
"""The kept parts have so many characters together, then they are forgotten."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """The ids of a text and their spans in it."""

    ids: list[int]
    offsets: list[tuple[int, int]]


class KeptTokenizer:
    """A ``tokenizers.Tokenizer`` whose ``encode`` keeps the parts of texts; all else is the tokenizer's own."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.get_added_tokens_decoder().values()
        cut = [token.content for token in added if token.content]
        plain = not any(token.lstrip or token.rstrip or token.single_word for token in added)
        spelt = "|".join(re.escape(text) for text in sorted(cut, key=len, reverse=True))
        self._cuts = re.compile(spelt) if cut and plain else None
        self._parts: dict[str, tuple[list[int], list[tuple[int, int]]]] = {}
        self._size = 0
        self._seen: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def encode(self, text: str, *, add_special_tokens: bool = True) -> Any:
        """As the tokenizer's."""
        if add_special_tokens or self._cuts is None:
            return self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        starts = [match.start() for match in self._cuts.finditer(text)]
        ids: list[int] = []
        offsets: list[tuple[int, int]] = []
        bounds = [0, *(start for start in starts if start), len(text)]
        for begin, end in pairwise(bounds):
            part = text[begin:end]
            found = self._parts.get(part)
            if found is None:
                encoded = self._tokenizer.encode(part, add_special_tokens=False)
                found = encoded.ids, encoded.offsets
                self._keep(part, found)
            ids += found[0]
            offsets += [(begin + first, begin + last) for first, last in found[1]] if begin else found[1]
        return Encoded(ids, offsets)

    def _keep(self, part: str, found: tuple[list[int], list[tuple[int, int]]]) -> None:
        key = hash(part)
        if key not in self._seen:
            if len(self._seen) >= _SEEN:
                self._seen.clear()
            self._seen.add(key)
            return
        if self._size + len(part) > _KEPT:
            self._parts.clear()
            self._size = 0
        self._parts[part] = found
        self._size += len(part)
