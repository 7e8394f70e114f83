"""Where a rendering has the placeholders of images and other parts that are no text.

Strategy. What a template writes for a part is found once, by a needle before and behind it (`Frames.part`). One walk
through the messages then looks for texts and parts in their order. A part whose place is not known is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..core.public import public
from ..templates.probe.parts import part_kind
from .frames import Frames

__all__ = ["Placeholder", "find_placeholders", "has_parts"]


@public
class Placeholder(NamedTuple):
    """What stands for a part in a sample's ids, from ``start`` to ``end``. ``message``, ``part``: the indices of the
    message and of the part in its content. ``kind``: the part's type, such as ``image_url``."""

    start: int
    end: int
    message: int
    part: int
    kind: str


def has_parts(messages: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a message has a part that is no text."""
    return any(
        part_kind(part) is not None
        for message in messages
        if isinstance(content := message.get("content"), (list, tuple))
        for part in content
    )


def find_placeholders(
    text: str, messages: Iterable[tuple[int, Mapping[str, Any]]], frames: Frames
) -> Iterator[Placeholder]:
    """The placeholders in ``text``, in characters. ``messages``: those whose words stand there, with their indices."""
    at = 0
    for index, message in messages:
        content = message.get("content")
        parts = content if isinstance(content, (list, tuple)) else [content]
        for place, part in enumerate(parts):
            kind = part_kind(part)
            if kind is None:
                words = part.get("text") if isinstance(part, Mapping) else part
                shown = words.strip() if isinstance(words, str) else ""
            else:
                shown = frames.part(kind, str(message.get("role")))
            found = text.find(shown, at) if shown else -1
            if found < 0:
                continue
            at = found + len(shown)
            if kind is not None:
                yield Placeholder(found, at, index, place, kind)
