"""What the characters that stand for tokens spell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from ..core.machine.alphabet import FIRST_HIDDEN, HIDDEN

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
