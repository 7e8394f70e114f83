"""The machine's alphabet: one character for each special token that a format names and the tokenizer has.

If ids are fed, such a token is one character in the machine's text, and the program matches that character. The
characters are lone surrogates from U+D800 on. No decoded text contains one, so a marker that the model spells out in
ordinary tokens never matches.
"""

from __future__ import annotations

from collections.abc import Iterable

_FIRST = 0xD800
FIRST_HIDDEN, LAST_HIDDEN = 0xDC00, 0xDFFF
"""The characters of all other special tokens (tokens/feed.py)."""
HIDDEN = rf"\u{FIRST_HIDDEN:x}-\u{LAST_HIDDEN:x}"
"""The same, as a class of `re` has them."""

AlphabetKey = tuple[tuple[str, ...], bool, tuple[str, ...]]
"""All that an alphabet depends on."""


class Alphabet:
    """The special tokens ``texts`` and the character of each.

    ``also_text``: their spelt-out text matches too. ``unspellable``: the texts that the tokenizer marks as special, so
    that no text is read as one of them.
    """

    __slots__ = ("_longest_first", "also_text", "chars", "key", "unspellable")

    def __init__(
        self, texts: Iterable[str] = (), also_text: bool = False, unspellable: Iterable[str] = ()
    ) -> None:
        self.chars = {text: chr(_FIRST + index) for index, text in enumerate(sorted(set(texts)))}
        self.also_text = also_text
        self.unspellable = frozenset(unspellable)
        self.key: AlphabetKey = tuple(self.chars), also_text, tuple(sorted(self.unspellable))
        """All that this alphabet depends on: `Alphabet(*key)` makes an equal one."""
        self._longest_first = sorted(self.chars, key=len, reverse=True)

    @property
    def no_token(self) -> str:
        """A pattern to put before a character, so that it matches no token."""
        return "(?![\ud800-\udfff])" if self.chars else ""

    def encode(self, text: str) -> str:
        """``text`` with each special token as its one character. Longer tokens go first."""
        for token in self._longest_first if text else ():
            text = text.replace(token, self.chars[token])
        return text

    def decode(self, text: str) -> str:
        """``text`` with each token as it is written: the opposite of `encode`."""
        for token, char in self.chars.items():
            text = text.replace(char, token)
        return text

    def written(self, text: str) -> tuple[str, ...]:
        """The forms in which the machine's text has ``text``, if it is written as it is."""
        encoded = self.encode(text)
        return (encoded, text) if self.also_text and encoded != text else (encoded,)
