"""A call that is being read, and the id of one whose model writes none."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

from ..values.so_far import Reader

_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_PAIRS = [second + first for first in _ALPHABET for second in _ALPHABET]
_SQUARE = len(_PAIRS)
_FOURTH = _SQUARE * _SQUARE


def call_id(seed: str, index: int) -> str:
    """The id of the call at ``index`` if the model writes no id: nine letters and digits, the same for the same
    ``seed``."""
    digest = blake2b(f"{seed}\0{index}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest, "big")
    low, high, number = number % _FOURTH, number // _FOURTH % _FOURTH, number // _FOURTH // _FOURTH
    pairs = (
        f"{_PAIRS[low % _SQUARE]}{_PAIRS[low // _SQUARE]}{_PAIRS[high % _SQUARE]}{_PAIRS[high // _SQUARE]}"
    )
    return pairs + _ALPHABET[number % len(_ALPHABET)]


class Call:
    """A call that is being read.

    ``members``: how many arguments have begun, -1 if they come as one object. ``sink``: what becomes of a piece of them
    (`Transcript.sink`), once its `CallStart` has gone out. ``made``: the id, if the model writes none. ``broken``: the
    object of its arguments is not JSON, so the text that follows is kept unchanged. ``other``: its arguments are a
    whole JSON value, but no object. ``given``: the names of the arguments so far; ``again``: the present one was given
    before. ``noted``: how many notes there were before it.
    """

    __slots__ = (
        "again", "arguments", "broken", "complete", "end", "given", "id", "index", "lent", "made", "members", "name",
        "noted", "other", "reader", "seen", "sink", "start",
    )  # fmt: skip

    def __init__(self, index: int, start: int, noted: int) -> None:
        self.index = index
        self.start = start
        self.noted = noted
        self.end = -1
        self.id: str | None = None
        self.name: str | None = None
        self.arguments: list[str] = []
        self.members = -1
        self.given: set[str] = set()
        self.again = False
        self.sink: tuple[Any, list[str]] | None = None
        self.broken = self.other = False
        self.complete = False
        self.made = ""
        self.reader: Reader | None = None
        self.seen = 0
        self.lent = False

    def copy(self) -> Call:
        other = Call.__new__(Call)
        other.index, other.start, other.end, other.noted = self.index, self.start, self.end, self.noted
        other.id, other.name, other.made = self.id, self.name, self.made
        other.members, other.again = self.members, self.again
        other.broken, other.other, other.complete = self.broken, self.other, self.complete
        other.arguments = arguments = self.arguments[:]
        other.sink = None if self.sink is None else (self.sink[0], arguments)
        other.given, other.reader, other.seen = self.given, self.reader, self.seen
        other.lent = self.lent = True
        return other

    def give(self, name: str) -> None:
        """Notes the name of the next argument."""
        self.again = name in self.given
        if self.lent:
            self._own()
        self.given.add(name)

    def _own(self) -> None:
        """Takes what a copy has, too, for its own."""
        self.given, self.lent = self.given.copy(), False
        self.reader = None if self.reader is None else self.reader.copy()

    def read(self) -> Reader:
        """The arguments so far as Python values. Reads what has come since the last time."""
        if self.sink is None:
            return Reader()
        texts = self.arguments[self.seen :]
        if texts and self.lent:
            self._own()
        reader = self.reader = self.reader or Reader()
        if texts:
            reader.read("".join(texts))
            self.seen += len(texts)
        return reader

    def shorten(self, length: int) -> None:
        """Takes ``length`` characters off the arguments, all of them plain text of a string."""
        read = length - sum(map(len, self.arguments[self.seen :]))
        shorten(self.arguments, length)
        self.seen = min(self.seen, len(self.arguments))
        if read > 0 and self.reader is not None:
            if self.lent:
                self._own()
            if not self.reader.shorten(read):
                self.reader, self.seen = None, 0

    def text(self) -> str:
        """The JSON text of the arguments so far."""
        if self.reader is not None:
            self.read()
        text = joined(self.arguments)
        if self.reader is not None:
            self.seen = len(self.arguments)
        return text


def shorten(texts: list[str], length: int) -> None:
    """Takes the last ``length`` characters off the texts."""
    while length and texts:
        last = texts.pop()
        if len(last) > length:
            texts.append(last[:-length])
        length -= min(length, len(last))


def joined(texts: list[str]) -> str:
    """Joins the texts, and puts the joined text in the list in their place."""
    if len(texts) > 1:
        texts[:] = ["".join(texts)]
    return texts[0] if texts else ""
