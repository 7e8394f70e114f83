"""The ids of a text that follows others, and of one that quotes markers.

Some tokenizers write a space at the beginning of a text that no text inside has. So a piece is encoded after an added
token, which is then taken off: a tokenizer splits a text at added tokens first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, overload

from .vocabulary import Vocabulary, forgotten_with_tokenizers

Spans = list[tuple[int, int]]


class Offsets(Sequence[tuple[int, int]]):
    """The spans of an encoding's tokens, each made when it is asked for: a search needs few of them. All are made at
    once."""

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

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(self._encoding.offsets)


def encode_after(tokenizer: Any, text: str, before: str = "") -> tuple[list[int], Spans]:
    """The ids of ``text`` after other text, without a merge over the border, and the span of each.

    ``before``: the added token that is there; then its flags decide what becomes of white space after it.
    """
    if not text:
        return [], []
    vocabulary = Vocabulary.bare(tokenizer)
    anchor = before if before and vocabulary.id_of(before) is not None else _anchor(vocabulary)
    encoded = tokenizer.encode(anchor + text, add_special_tokens=False)
    ids: list[int] = encoded.ids
    if not anchor:
        return ids, encoded.offsets
    ids, spans = _after(encoded, len(anchor))
    if ids and not text.startswith(" ") and str(vocabulary.pieces[ids[0]]).startswith(" "):
        # The tokenizer writes a space after each added token; after a line break it writes none.
        other, places = _after(tokenizer.encode("\n" + text, add_special_tokens=False), 1)
        if other and not str(vocabulary.pieces[other[0]]).startswith(" "):
            return other, places
    return ids, spans


def encoded(tokenizer: Any, text: str, before: str | None) -> tuple[list[int], Sequence[tuple[int, int]]]:
    """The ids of a text and their spans. ``before``: as in `encode_after`; None at the beginning of all."""
    if before is not None:
        return encode_after(tokenizer, text, before)
    found = tokenizer.encode(text, add_special_tokens=False)
    return found.ids, Offsets(found)


def as_text(
    tokenizer: Any,
    text: str,
    ids: Sequence[int],
    spans: Sequence[tuple[int, int]],
    quoted: Sequence[tuple[int, int]],
) -> tuple[list[int], Spans]:
    """The ids of ``text`` and their spans, in which the added tokens at ``quoted`` spans are encoded as text."""
    ids, spans = list(ids), list(spans)
    added = Vocabulary.bare(tokenizer).added
    for start, end in sorted(quoted, reverse=True):
        place = bisect_right(spans, start, key=lambda span: span[0]) - 1
        if place >= 0 and ids[place] in added and spans[place][1] >= end:
            ids[place : place + 1], spans[place : place + 1] = _apart(
                tokenizer, text, spans[place], start + 1
            )
    return ids, spans


def _apart(tokenizer: Any, text: str, span: tuple[int, int], cut: int) -> tuple[list[int], Spans]:
    """The ids of an added token's text, encoded in two pieces, or in single characters if a piece is one too."""
    added = Vocabulary.bare(tokenizer).added
    ids: list[int] = []
    spans: Spans = []
    for borders in ((span[0], cut, span[1]), range(span[0], span[1] + 1)):
        ids, spans = [], []
        for first, last in pairwise(borders):
            some, places = encode_after(tokenizer, text[first:last])
            ids += some
            spans += ((first + start, first + end) for start, end in places)
        if not any(id in added and text[slice(*where)].strip() for id, where in zip(ids, spans, strict=True)):
            break
    return ids, spans


def _after(encoded: Any, size: int) -> tuple[list[int], Spans]:
    """The ids after the first characters, and their spans from there on."""
    spans: Spans = encoded.offsets
    first = next((place for place, (_, end) in enumerate(spans) if end > size), len(spans))
    moved = [(start - size, end - size) for start, end in spans[first:]]
    if moved and moved[0][0] < 0:  # it begins before
        moved[0] = 0, moved[0][1]
    return encoded.ids[first:], moved


@forgotten_with_tokenizers(64)
def _anchor(vocabulary: Vocabulary) -> str:
    """A special token that takes no white space beside it; ``""`` if there is none."""
    texts = (token.text for token in vocabulary.added.values() if token.special)
    return next((text for text in texts if text.strip() == text), "")
