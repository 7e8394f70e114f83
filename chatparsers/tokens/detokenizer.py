"""Decodes ids to text one at a time, without losing anything.

``tokenizers.decoders.DecodeStream`` loses its held bytes when the stream ends, and raises on byte-fallback
vocabularies after a broken run of bytes. Here each id is looked up (vocabulary.py). Only the bytes of an
incomplete character are held: at most three.
"""

from __future__ import annotations

from codecs import register_error, utf_8_decode
from collections.abc import Iterable

from .vocabulary import Pieces, Vocabulary

_EACH_BYTE = "chatparsers.each_byte"


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


register_error(_EACH_BYTE, _replace_each_byte)


class Detokenizer:
    """Decodes a stream of ids. It never takes back text that it has returned.

    The joined text equals ``tokenizer.decode(ids, skip_special_tokens=False)``, with two exceptions. The
    tokenizer may strip a space at the start of a text; this class keeps it. If a run of byte-fallback ids is
    partly broken, ``decode`` replaces the whole run; this class keeps its whole characters. Broken bytes become
    U+FFFD as in ``decode``: one for each incomplete sequence (ByteLevel), or one for each byte (byte-fallback).
    """

    __slots__ = ("_errors", "_pieces", "held", "vocabulary")

    def __init__(self, vocabulary: Vocabulary, held: bytes = b"") -> None:
        self.vocabulary = vocabulary
        self._pieces: Pieces = vocabulary.pieces
        self._errors = _EACH_BYTE if vocabulary.bytewise else "replace"
        self.held = held
        """The held bytes of an incomplete character."""

    @property
    def pending(self) -> int:
        """The number of held bytes of an incomplete character."""
        return len(self.held)

    def decode(self, id: int) -> str:
        """The text that ``id`` completes; ``""`` while a character is incomplete, and for an unknown id.

        Raises TypeError if ``id`` is not an integer.
        """
        piece = self._pieces[id]
        if isinstance(piece, str) and not self.held:
            return piece
        return self._mend(piece)

    def decode_all(self, ids: Iterable[int]) -> str:
        """The text that ``ids`` complete, as if decoded one by one."""
        return "".join([self.decode(id) for id in ids])

    def flush(self) -> str:
        """Returns the held bytes as U+FFFD, ``""`` if nothing is held. The next id starts anew."""
        held, self.held = self.held, b""
        return utf_8_decode(held, self._errors, True)[0] if held else ""

    def copy(self) -> Detokenizer:
        """An independent detokenizer at this point of the stream."""
        return Detokenizer(self.vocabulary, self.held)

    def _mend(self, piece: str | bytes) -> str:
        """Decodes ``piece`` after the held bytes; holds bytes that end inside a character."""
        if isinstance(piece, str):
            return self.flush() + piece if piece else ""
        data = self.held + piece
        text, used = utf_8_decode(data, self._errors, False)
        self.held = data[used:]
        return text

    def __reduce__(self) -> tuple[object, ...]:
        return Detokenizer, (self.vocabulary, self.held)
