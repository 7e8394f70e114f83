"""Where a rendering has the placeholders of images and other parts that are no text.

Strategy. The trace says where the texts of a content stand, so a part stands between its neighbours. What a template
writes for a part of its type is found once, between two texts (`Around.part`). A part whose place is not known is left
out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from ..public import public
from ..templates.probe.parts import part_kind
from ..templates.trace import Trace
from .around import Around


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
    trace: Trace, messages: Iterable[tuple[int, Mapping[str, Any]]], around: Around
) -> Iterator[Placeholder]:
    """The placeholders in a rendering, in characters. ``messages``: those that stand there, with their indices."""
    at = 0
    for index, message in messages:
        content = message.get("content")
        ends = {span.part: span.end for span in trace.of(index, "content")}
        for number, part in enumerate(content if isinstance(content, (list, tuple)) else [content]):
            kind = part_kind(part)
            if kind is None:
                at = max(at, ends.get(number, at))
                continue
            shown = around.part(kind, str(message.get("role")))
            found = trace.text.find(shown, at) if shown else -1
            if found >= 0:
                at = found + len(shown)
                yield Placeholder(found, at, index, number, kind)
