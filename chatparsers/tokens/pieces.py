"""The ids of a text that stands behind others.

Some tokenizers write a space at the beginning of a text that no text inside has. So a piece is encoded behind an added
token, which is then taken off: a tokenizer splits a text at added tokens first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, overload

from .vocabulary import Vocabulary

__all__ = ["Offsets", "Spans", "encode_behind", "encoded"]


Spans = list[tuple[int, int]]


class Offsets(Sequence[tuple[int, int]]):
    """The spans of an encoding's tokens, each made when it is asked for: a search needs few of them."""

    __slots__ = ("_encoding", "_length")

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding
        self._length = len(encoding)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, place: int) -> tuple[int, int]: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[tuple[int, int]]: ...
    def __getitem__(self, place: int | slice) -> tuple[int, int] | Sequence[tuple[int, int]]:
        if isinstance(place, slice):
            spans: Spans = self._encoding.offsets
            return spans[place]
        if not 0 <= place < self._length:
            raise IndexError(f"offsets: no token {place}, there are {self._length}")
        span: tuple[int, int] = self._encoding.token_to_chars(place)
        return span


def encode_behind(tokenizer: Any, text: str, before: str = "") -> tuple[list[int], Spans]:
    """The ids of ``text`` behind other text, without a merge over the border, and the span of each.

    ``before``: the added token that stands there; then its flags decide what becomes of white space behind it.
    """
    if not text:
        return [], []
    vocabulary = Vocabulary.of(tokenizer)
    anchor = before if before and vocabulary.id_of(before) is not None else _anchor(vocabulary)
    encoded = tokenizer.encode(anchor + text, add_special_tokens=False)
    ids: list[int] = encoded.ids
    if not anchor:
        return ids, encoded.offsets
    ids, spans = _behind(encoded, len(anchor))
    if ids and not text.startswith(" ") and str(vocabulary.pieces[ids[0]]).startswith(" "):
        # The tokenizer writes a space behind each added token; behind a line break it writes none.
        other, places = _behind(tokenizer.encode("\n" + text, add_special_tokens=False), 1)
        if other and not str(vocabulary.pieces[other[0]]).startswith(" "):
            return other, places
    return ids, spans


def encoded(tokenizer: Any, text: str, before: str | None) -> tuple[list[int], Spans]:
    """The ids of a text and their spans. ``before``: as in `encode_behind`; None at the beginning of all."""
    if before is not None:
        return encode_behind(tokenizer, text, before)
    found = tokenizer.encode(text, add_special_tokens=False)
    return found.ids, found.offsets


def _behind(encoded: Any, size: int) -> tuple[list[int], Spans]:
    """The ids behind the first characters, and their spans from there on."""
    first = next((place for place, (_, end) in enumerate(encoded.offsets) if end > size), len(encoded.ids))
    return encoded.ids[first:], [(max(start - size, 0), end - size) for start, end in encoded.offsets[first:]]


@lru_cache(maxsize=64)
def _anchor(vocabulary: Vocabulary) -> str:
    """A special token that takes no white space beside it; ``""`` if there is none."""
    texts = (token.text for token in vocabulary.added.values() if token.special)
    return next((text for text in texts if text.strip() == text), "")
