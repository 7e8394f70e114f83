"""The ids of a text that grows, without encoding it again from its start.

A tokenizer splits a text at added tokens first. So the ids before an added token do not depend on the text after it.
The ids up to the last added token of the unchanged part are kept, and encoding begins at that token.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .pieces import as_text, encoded
from .vocabulary import Vocabulary


class GrowingIds:
    """Keeps ``ids`` equal to ``tokenizer.encode(text, add_special_tokens=False).ids``, but for quoted markers.

    ``tokenizer``: a ``tokenizers.Tokenizer``. ``before``: the stop that the text follows, ``""`` if it follows
    other text; None at the beginning of all.
    """

    def __init__(self, tokenizer: Any, before: str | None = None) -> None:
        self._tokenizer = tokenizer
        self._before = before
        self._added = Vocabulary.of(tokenizer).added
        self._cuts: list[tuple[int, int, int]] = []
        """Of each added token: its first character, the one after it, its place in ids."""
        self.text = ""
        self.ids: list[int] = []

    def update(self, text: str, kept: int, quoted: Sequence[tuple[int, int]] = ()) -> list[int]:
        """The ids of ``text``, whose first ``kept`` characters are those of the last text. ``quoted``: the spans of
        markers that are encoded as text."""
        while self._cuts and self._cuts[-1][1] > kept:
            self._cuts.pop()
        start, _, place = self._cuts[-1] if self._cuts else (0, 0, 0)
        ids, spans = encoded(self._tokenizer, text[start:], None if start else self._before)
        inner = [(first - start, last - start) for first, last in quoted if first >= start]
        if inner:
            ids, spans = as_text(self._tokenizer, text[start:], ids, spans, inner)
        if self._cuts:
            self._cuts.pop()  # it is found again
        for number, (id, (first, last)) in enumerate(zip(ids, spans, strict=True)):
            if id in self._added:
                self._cuts.append((start + first, start + last, place + number))
        self.text, self.ids = text, self.ids[:place] + ids
        return self.ids


def common_ids(a: list[int], b: list[int]) -> int:
    """The number of leading ids that ``a`` and ``b`` share."""
    limit = min(len(a), len(b))
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if a[low:middle] == b[low:middle] else (low, middle - 1)
    return low
