"""Ids to text, one at a time, nothing lost.

``tokenizers.decoders.DecodeStream`` loses the bytes it holds when the stream ends and raises on byte-fallback
vocabularies once a run of bytes turns out broken. Here an id is looked up (vocabulary.py) and only the bytes
of a character that is not yet whole are held: at most three.
"""

from __future__ import annotations

from codecs import register_error, utf_8_decode
from collections.abc import Iterable

from .vocabulary import Pieces, Vocabulary

__all__ = ["Detokenizer"]

_EACH_BYTE = "chatparsers.each_byte"


def _replace_each_byte(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\ufffd" * (error.end - error.start), error.end


register_error(_EACH_BYTE, _replace_each_byte)


class Detokenizer:
    """Decodes a stream of ids; what it gives out is never taken back.

    All the text it gives is ``tokenizer.decode(ids, skip_special_tokens=False)``, but for a space that the
    tokenizer strips at the start of a text, and for a run of byte-fallback ids that is broken in part: there
    the whole characters of the run are kept, where ``decode`` replaces the run altogether. Broken bytes are
    U+FFFD: one for each incomplete sequence (ByteLevel), or for each byte (byte-fallback), as ``decode`` has
    them.
    """

    __slots__ = ("_errors", "_held", "_pieces", "vocabulary")

    def __init__(self, vocabulary: Vocabulary, held: bytes = b"") -> None:
        self.vocabulary = vocabulary
        self._pieces: Pieces = vocabulary.pieces
        self._errors = _EACH_BYTE if vocabulary.bytewise else "replace"
        self._held = held

    @property
    def pending(self) -> int:
        """The number of bytes held, of a character that is not yet whole."""
        return len(self._held)

    @property
    def held(self) -> bytes:
        """The bytes of a character that is not yet whole."""
        return self._held

    def decode(self, id: int) -> str:
        """The text that ``id`` completes, ``""`` while a character is not yet whole; an unknown id spells
        nothing.

        Raises TypeError for what is not an integer.
        """
        piece = self._pieces[id]
        if isinstance(piece, str) and not self._held:
            return piece
        return self._mend(piece)

    def decode_all(self, ids: Iterable[int]) -> str:
        """The text that ``ids`` complete, as if decoded one by one."""
        return "".join([self.decode(id) for id in ids])

    def flush(self) -> str:
        """The held bytes as U+FFFD, ``""`` if there are none; the next id starts anew."""
        held, self._held = self._held, b""
        return utf_8_decode(held, self._errors, True)[0] if held else ""

    def copy(self) -> Detokenizer:
        """An independent detokenizer at this point of the stream."""
        return Detokenizer(self.vocabulary, self._held)

    def _mend(self, piece: str | bytes) -> str:
        """``piece`` after held bytes, or bytes that begin or end inside a character."""
        if isinstance(piece, str):
            return self.flush() + piece if piece else ""
        data = self._held + piece
        text, used = utf_8_decode(data, self._errors, False)
        self._held = data[used:]
        return text

    def __reduce__(self) -> tuple[object, ...]:
        return Detokenizer, (self.vocabulary, self._held)
