"""The machine's alphabet: one character for each special token that a format names and the tokenizer has.

If ids are fed, such a token is one character in the machine's text, and the program matches that character. The
characters are lone surrogates from U+D800 on. No decoded text contains one, so a marker that the model spells out in
ordinary tokens never matches.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_FIRST = 0xD800
FIRST_HIDDEN, LAST_HIDDEN = 0xDC00, 0xDFFF
"""The characters of all other special tokens (tokens/feed.py)."""
HIDDEN = rf"\u{FIRST_HIDDEN:x}-\u{LAST_HIDDEN:x}"
"""The same, as a class of `re` has them."""


_BARS = ("|", "｜｜", "||", "‖")  # what models write in place of a wide bar
_SPACED = ("｜", "|", "｜｜", "| |")  # with white space around a name between bars (``<｜DSML｜``)
_named = re.compile("｜([A-Z]+)｜")

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

    def spellings(self, text: str) -> tuple[str, ...]:
        """The forms in which ``text`` may be in the machine's text. Models that spell a marker with wide bars out
        also write the usual ones, or double them, or write white space around them."""
        forms = self.written(text)
        return (*forms, *(other for form in forms if "｜" in form for other in _respelt(form)))


@lru_cache(maxsize=4096)
def _respelt(text: str) -> tuple[str, ...]:
    """``text`` with other bars, and with white space around the name that is between them."""
    found = [text.replace("｜", bars) for bars in _BARS]
    named = _named.search(text)
    if named is not None:
        spaced = [f"{bars} {named[1]} {bars}" for bars in _SPACED]
        found += [
            text.replace(named[0], space + one) for one in spaced for space in ("", " ")[: named.start() + 1]
        ]
    return tuple(found)
