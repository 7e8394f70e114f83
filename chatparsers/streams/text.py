"""The model's text: what the machine's characters spell, and where its positions are in it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from .call import joined


class Spelling(Protocol):
    """What the characters that stand for tokens spell (`chatparsers.tokens.token_texts.TokenTexts`)."""

    def full(self, text: str) -> str: ...
    def text(self, text: str) -> str: ...
    def json(self, text: str) -> str: ...
    def runs(self, text: str) -> Iterator[tuple[bool, str]]: ...


class Text:
    """The model's text, and the way from the machine's positions to positions in it.

    ``marks`` are the positions of the characters that stand for special tokens. ``grown`` says how much longer the
    model's text before each mark is than the machine's; its last entry is for the text after the last mark.
    ``written`` has the first ``read`` characters as the model writes them, in pieces.
    """

    __slots__ = ("grown", "marks", "origin", "read", "written")

    def __init__(self, origin: int) -> None:
        self.origin = origin
        self.read = 0
        self.marks: list[int] = []
        self.grown: list[int] = [0]
        self.written: list[str] = []

    def whole(self, encoded: str, ids: Any) -> str:
        """All that was fed, which is ``encoded``, as the model writes it."""
        if ids is None:
            return encoded
        texts, marks = ids.spelling.texts, ids.marks
        grown = self.grown[-1]
        for mark in marks[len(self.marks) :]:
            at = mark - self.origin
            text = texts[encoded[at]]
            self.marks.append(at)
            grown += len(text) - 1
            self.grown.append(grown)
            self.written += encoded[self.read : at], text
            self.read = at + 1
        self.written.append(encoded[self.read :])
        self.read = len(encoded)
        return joined(self.written)

    def position(self, at: int) -> int:
        """The machine's position ``at`` as a position in the model's text."""
        at = at - self.origin if at > self.origin else 0
        return at + self.grown[bisect_left(self.marks, at)] if self.marks else at


def holding(offsets: Sequence[int], first: int, start: int) -> int:
    """The token that holds the character ``start``. ``offsets`` has the start of each token, and ``first`` is the first
    token that does not begin before ``start``."""
    return first if first < len(offsets) and offsets[first] == start else max(first - 1, 0)
