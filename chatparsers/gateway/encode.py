"""Encodes a prompt piece by piece, so that a long one takes little memory and can be given up between pieces.

`tokenizers` keeps up to 360 bytes for each character while it encodes a text, and cannot be stopped. So a long text is
cut where no token can cross: before a single space between two small letters of ASCII. All known pre-tokenizers cut
there too, or leave it to a vocabulary without a token such as ``"x y"``. Each tokenizer is tried once: if it encodes
the pieces of a trial in another way than the whole (such as one that puts a space before every text), it gets whole
texts alone. Then, and where a text has no place to cut, `LONGEST` bounds it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..serving import ApiError
from ..tokens.growing import GrowingIds

Span = tuple[int, int]
PIECE = 65_536
"""How many characters a piece has at least, if a longer text can be cut."""
LONGEST = 250_000
"""How many characters are encoded at once at most."""
_CUT = re.compile(r"(?<=[a-z])(?= [a-z])")
_TRIAL = "The weather in  Oslo\n is wet, isn't it 12 and\ta  b c <|x|> d\r\n\r\ne's f\n\n g <b> h i"


class Encoder:
    """Encodes prompts with one tokenizer, without adding special tokens."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._cuts: bool | None = None

    def encode(self, text: str, quoted: Sequence[Span] = ()) -> list[int]:
        """The ids of a text. ``quoted``: the spans of special tokens that are text. Raises `ApiError` if more than
        `LONGEST` characters of it must be encoded at once."""
        if len(text) <= PIECE:
            return self._ids(text, quoted)
        if self._cuts is None:
            self._cuts = self._agrees()
        ids: list[int] = []
        begin = 0
        while begin < len(text):
            end = self._end(text, begin)
            if end - begin > LONGEST:
                said = (
                    f"{end - begin:,} characters of the prompt must be encoded at once, more than {LONGEST:,}"
                )
                raise ApiError(
                    f"{said}: send less, or put spaces between words", status=413, code="prompt_too_long"
                )
            inner = [
                (first - begin, last - begin) for first, last in quoted if begin <= first and last <= end
            ]
            ids += self._ids(text[begin:end], inner)
            begin = end
        return ids

    def _end(self, text: str, begin: int) -> int:
        if not self._cuts or len(text) - begin <= PIECE:
            return len(text)
        found = _CUT.search(text, begin + PIECE)
        return len(text) if found is None else found.start()

    def _ids(self, text: str, quoted: Sequence[Span] = ()) -> list[int]:
        if quoted:
            return GrowingIds(self._tokenizer).update(text, 0, quoted)
        fast = getattr(self._tokenizer, "encode_batch_fast", None)  # it keeps no places in the text
        if fast is None:
            found: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        else:
            found = fast([text], add_special_tokens=False)[0].ids
        return found

    def _agrees(self) -> bool:
        added = self._tokenizer.get_added_tokens_decoder().values()
        if any(_CUT.search(token.content) for token in added):
            return False
        pieces = _CUT.split(_TRIAL)
        return self._ids(_TRIAL) == [id for piece in pieces for id in self._ids(piece)]
