"""The error of a definition: it names the node in the words of the builder, says what is wrong and what to write."""

from __future__ import annotations

import re
import sys
import warnings
from typing import NoReturn, Protocol

from ..errors import DefinitionError

_SHOWN = 60
"""The most characters of a node that an error shows."""


class _Shown(Protocol):
    def shown(self) -> str: ...


def wrong(node: _Shown | str, what: str, mend: str) -> NoReturn:
    """Raises `DefinitionError`. ``what`` says what is wrong with ``node``, ``mend`` what to do about it."""
    error = DefinitionError(f"{node if isinstance(node, str) else described(node)}: {what}; {mend}")
    error.node = node
    raise error


def described(node: _Shown) -> str:
    """The builder's calls that make ``node``, shortened."""
    text = node.shown()
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def check_characters(node: _Shown | str, *texts: str) -> None:
    """Raises `DefinitionError` for a lone surrogate: in the parser's text, it stands for a special token."""
    for text in texts:
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            wrong(node, "a lone surrogate is no character", "write the character that it is a half of")


def check_texts(what: str, given: object) -> None:
    """Raises `DefinitionError` if ``given`` is not a tuple of texts, or holds an empty text."""
    if isinstance(given, str):
        wrong(what, f"expected a tuple of texts, found the text {given!r}", f"write ({given!r},)")
    if not isinstance(given, tuple) or not all(isinstance(text, str) and text for text in given):
        wrong(what, f"expected a tuple of texts that are not empty, found {given!r}", 'write ("…",)')


def check_regex(node: _Shown, pattern: str) -> re.Pattern[str]:
    """``pattern``, compiled. Raises `DefinitionError` if it is no regular expression."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return re.compile(pattern)
        except (re.error, Warning, TypeError, RecursionError, OverflowError) as error:
            mend = "write one that Python's re reads, with a backslash before what is meant as text"
            wrong(node, f"{pattern!r} is no regular expression: {error}", mend)


def matches_any(one: re.Pattern[str]) -> bool:
    """Whether ``one`` matches a character."""
    return any(map(one.fullmatch, map(chr, range(sys.maxunicode + 1))))
