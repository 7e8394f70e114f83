"""The images of a request in its prompt: where they are, and the prompt as a text that no word of it can forge.

Most engines encode a prompt with images themselves, so it goes to them as text. There a word that spells a special
token would become that token, and one that spells a placeholder would stand for an image. So a word joiner, which
nobody sees, parts such words after their first character.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..chat.chat import Chat
from ..errors import ChatParsersError
from ..serving import ApiError, Image, Request, image_number

JOINER = "\u2060"
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Picture:
    """An image, and where the prompt's text has what stands for it, from ``start`` to ``end``."""

    start: int
    end: int
    image: Image


def pictures(chat: Chat, request: Request) -> list[Picture]:
    """The images of a request in the order of the prompt. Raises `ApiError` for one that the template has no place
    for."""
    try:
        found = chat.placeholders(**request.prepare)
    except ChatParsersError as error:
        raise ApiError(str(error), code="image_not_supported") from error
    placed = []
    for one in found:
        part = request.messages[one.message]["content"][one.part]
        placed.append(Picture(one.start, one.end, request.images[image_number(part)]))
    return placed


def as_text(prompt: str, placed: Sequence[Picture], quoted: Iterable[Span]) -> tuple[str, list[Picture]]:
    """The prompt without special tokens that words spell (``quoted``), and the images in it."""
    starts = sorted(start + 1 for start, _ in quoted)
    pieces: list[str] = []
    at = 0
    for start in starts:
        pieces += (prompt[at:start], JOINER)
        at = start
    moved = [
        Picture(one.start + before, one.end + before, one.image)
        for one in placed
        for before in [sum(start <= one.start for start in starts)]
    ]
    return "".join([*pieces, prompt[at:]]), moved


def marked(prompt: str, placed: Sequence[Picture], marker: str) -> str:
    """The prompt with ``marker`` in the place of each image, and nowhere else."""
    pieces: list[str] = []
    at = 0
    for one in placed:
        pieces.append(prompt[at : one.start])
        at = one.end
    pieces.append(prompt[at:])
    parted = f"{marker[0]}{JOINER}{marker[1:]}"
    return marker.join(piece.replace(marker, parted) for piece in pieces)
