"""The token ids that a stream is fed, as plain integers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import SupportsIndex, TypeAlias

from ..errors import RequestError

Piece: TypeAlias = str | SupportsIndex | Iterable[SupportsIndex]
"""What `Stream.feed` takes: text, a token id, or several ids (a list, or an array of numpy or torch)."""

_NO_IDS = (bool, bytes, bytearray, memoryview, Mapping)


def read_ids(piece: object, expected: str = "feed: expected text, a token id or a list of ids") -> list[int]:
    """A token id, or several, as plain integers. ``expected`` begins the error for what is neither."""
    if type(piece) is list and {*map(type, piece)} == {int}:
        return piece
    if not isinstance(piece, _NO_IDS):
        if hasattr(piece, "__index__"):
            try:
                return [index(piece)]
            except TypeError:  # an array of several
                pass
        found = piece.tolist() if hasattr(piece, "tolist") else piece
        if isinstance(found, Iterable):
            return [_one_id(id) for id in found]
    raise RequestError(f"{expected}, found {type(piece).__name__}")


def _one_id(id: object) -> int:
    if not isinstance(id, bool):
        try:
            return index(id)  # type: ignore[arg-type]
        except TypeError:
            pass
    raise RequestError(f"feed: expected token ids, which are integers, found {type(id).__name__}")
