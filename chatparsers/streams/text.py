"""The model's text: what the machine's characters spell, and where its positions are in it."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Any

from ..core.machine.alphabet import FIRST_HIDDEN, HIDDEN
from .call import joined

_characters = re.compile("[\ud800-\udfff]")
_runs = re.compile(f"([{HIDDEN}]+)")


class TokenTexts:
    """The texts of the characters that stand for tokens. ``skip``: leaves special tokens that are no markers out of
    content and reasoning."""

    __slots__ = ("skip", "texts")

    def __init__(self, texts: dict[str, str], skip: bool) -> None:
        self.texts = texts
        self.skip = skip

    def full(self, text: str) -> str:
        """The whole of ``text``, as the tokenizer spells it."""
        return text if text.isascii() else _characters.sub(lambda found: self.texts[found.group()], text)

    def text(self, text: str) -> str:
        """The part of ``text`` that is content or reasoning."""
        return text if text.isascii() else _characters.sub(self._shown, text)

    def json(self, text: str) -> str:
        """The whole of ``text``, inside a JSON string. Nothing is left out of an argument."""
        if text.isascii():
            return text
        return _characters.sub(
            lambda found: json.dumps(self.texts[found.group()], ensure_ascii=False)[1:-1], text
        )

    def runs(self, text: str) -> Iterator[tuple[bool, str]]:
        """Splits ``text`` into runs; yields for each whether it is left out, and its characters."""
        if not self.skip or text.isascii():
            yield False, text
            return
        for place, run in enumerate(_runs.split(text)):
            if run:
                yield place % 2 == 1, run

    def _shown(self, found: re.Match[str]) -> str:
        character = found.group()
        return "" if self.skip and ord(character) >= FIRST_HIDDEN else self.texts[character]


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
