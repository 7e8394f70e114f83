"""The ids that llama-server leaves out of its events.

It sends an event for each token. But it sends none for a token that ends inside a character: its text comes with the
token that completes the character, and that event has the last id alone. Fed with these ids, a stream would lose the
character. So the text of each event is compared with the text of its ids, and what the ids do not spell is spelt anew
with ids of bytes. The number of ids may differ then, the text does not.

A text may also come late: while the engine's text may become a stop, it sends ids without text. Ids whose text has not
come are ``silent``. If an id that begins inside a character comes without text, nothing tells yet what was left out
before it: it is ``held`` until the text comes.
"""

from __future__ import annotations

from typing import Any

from ..kept import cached
from ..tokens import Vocabulary


class Spelling:
    """What the ids of a tokenizer spell. One serves all answers."""

    def __init__(self, tokenizer: Any) -> None:
        self.pieces = Vocabulary.of(tokenizer).pieces
        self._all = tokenizer.get_vocab

    @cached
    def parts(self) -> dict[bytes, int]:
        """The ids that spell one byte, or no whole characters, by their bytes. It is made when the first is needed."""
        pieces = {_bytes(self.pieces[id]): id for id in sorted(self._all(True).values(), reverse=True)}
        return {piece: id for piece, id in pieces.items() if len(piece) == 1 or not _whole(piece)}

    def ids(self, data: bytes) -> list[int]:
        """Ids that spell ``data``, the longest first. A byte that no id spells is left out."""
        longest = max(map(len, self.parts), default=0)
        found = []
        while data:
            sizes = range(min(longest, len(data)), 0, -1)
            size = next((size for size in sizes if data[:size] in self.parts), 0)
            if size:
                found.append(self.parts[data[:size]])
            data = data[size or 1 :]
        return found


class LostIds:
    """Completes the ids of one answer."""

    __slots__ = ("_held", "_pieces", "_silent", "_spelling")

    def __init__(self, spelling: Spelling) -> None:
        self._spelling = spelling
        self._pieces = spelling.pieces
        self._silent = b""
        self._held: list[int] = []

    def complete(self, text: str, ids: list[int]) -> list[int]:
        """All ids of an event, those included that the engine left out before it."""
        if len(ids) != 1:
            return ids
        (id,) = ids
        piece = self._pieces[id]
        if piece == text and not (self._silent or self._held):
            return ids
        if not text:
            if self._held or _begins_inside(piece):
                self._held.append(id)
                return []
            self._silent += _bytes(piece)
            return ids
        silent, held = self._silent, self._held
        self._silent, self._held = b"", []
        ids = [*held, id]
        found, tail = text.encode(), b"".join([_bytes(self._pieces[id]) for id in ids])
        if not found.endswith(tail):  # more was left out between those that are held
            ids, tail = [id], _bytes(piece)
            if not found.endswith(tail):
                return [*held, id]
        lost = found[: len(found) - len(tail)]
        if lost.startswith(silent):
            lost = lost[len(silent) :]
        elif lost.endswith(silent):  # broken bytes were left out before
            lost = lost[: len(lost) - len(silent)]
        return [*self._spelling.ids(lost), *ids] if lost else ids

    def flush(self) -> list[int]:
        """The ids that are held at the end of the answer."""
        held, self._held = self._held, []
        return held


def _begins_inside(piece: str | bytes) -> bool:
    """Whether a piece begins with a byte that is not the first of its character."""
    return isinstance(piece, bytes) and 0x80 <= piece[0] < 0xC0


def _whole(piece: bytes) -> bool:
    try:
        return bool(piece.decode())
    except UnicodeDecodeError:
        return False


def _bytes(piece: str | bytes) -> bytes:
    return piece if isinstance(piece, bytes) else piece.encode()
