"""A tokenizer that keeps what it encoded: system texts and tools are the same in many rows, and encoding is the cost.

A text is cut before each added token. A tokenizer reads its added tokens first and each stretch between two of them by
itself, so the ids of the parts are the ids of the whole. Where a tokenizer has a token that takes white space from its
neighbours, the text is not cut.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import Any

from ..tokens.markers import marker_pattern

_SEEN = 8192
"""So many parts are remembered by their hash. A part is kept when it comes again: an answer comes once."""
_KEPT = 2_000_000
"""The kept parts have so many characters together, then they are forgotten."""


class Encoded:
    """The ids of a text, put together from the encodings of its parts; the span of a token is found when it is asked
    for."""

    __slots__ = ("_begins", "_firsts", "_parts", "ids")

    def __init__(self) -> None:
        self.ids: list[int] = []
        self._firsts: list[int] = []
        self._begins: list[int] = []
        self._parts: list[Any] = []

    def add(self, begin: int, ids: list[int], part: Any) -> None:
        """A further part, which begins at ``begin`` in the text: its ids and its encoding."""
        self._firsts.append(len(self.ids))
        self._begins.append(begin)
        self._parts.append(part)
        self.ids += ids

    def __len__(self) -> int:
        return len(self.ids)

    def token_to_chars(self, place: int) -> tuple[int, int]:
        """The span of a token in the text."""
        number = bisect_right(self._firsts, place) - 1
        begin = self._begins[number]
        first, last = self._parts[number].token_to_chars(place - self._firsts[number])
        return begin + first, begin + last

    @property
    def offsets(self) -> list[tuple[int, int]]:
        """The spans of all tokens."""
        return [
            (begin + first, begin + last)
            for begin, part in zip(self._begins, self._parts, strict=True)
            for first, last in part.offsets
        ]


class CachedTokenizer:
    """A ``tokenizers.Tokenizer`` whose ``encode`` keeps the parts of texts; all else is the tokenizer's own."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.get_added_tokens_decoder().values()
        cut = [token.content for token in added]
        plain = not any(token.lstrip or token.rstrip or token.single_word for token in added)
        self._cuts = marker_pattern(cut) if plain else None
        self._parts: dict[str, tuple[list[int], Any]] = {}
        self._size = 0
        self._seen: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def encode(self, text: str, *, add_special_tokens: bool = True) -> Any:
        """As the tokenizer's."""
        if add_special_tokens or self._cuts is None:
            return self._tokenizer.encode(text, add_special_tokens=add_special_tokens)
        starts = [match.start() for match in self._cuts.finditer(text)]
        encoded = Encoded()
        bounds = [0, *(start for start in starts if start), len(text)]
        for begin, end in pairwise(bounds):
            part = text[begin:end]
            found = self._parts.get(part)
            if found is None:
                made = self._tokenizer.encode(part, add_special_tokens=False)
                found = made.ids, made
                self._keep(part, found)
            encoded.add(begin, *found)
        return encoded

    def _keep(self, part: str, found: tuple[list[int], Any]) -> None:
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
