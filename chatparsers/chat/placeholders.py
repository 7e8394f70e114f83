"""Where a rendering has the placeholders of images and other parts that are no text.

Strategy. What a template writes for a part of its type is found once, between two texts (`Rendered.parts`). The trace
says which characters are words, so the placeholders are the occurrences of that text outside of words, in the order of
the parts: a template may put a message's pictures before its texts, but not one picture before another. A part whose
place is not known is left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import TemplateError
from ..public import public
from ..templates.probe.parts import part_kind
from ..templates.probe.stand_ins import answer, answered, question
from ..templates.trace import Trace
from .around import Rendered


@public
class Placeholder(NamedTuple):
    """What stands for a part in a sample's ids, from ``start`` to ``end``. ``message``, ``part``: the indices of the
    message and of the part in its content. ``kind``: the part's type, such as ``image_url``."""

    start: int
    end: int
    message: int
    part: int
    kind: str


def showing(kind: str, role: str) -> Sequence[Mapping[str, Any]]:
    """Stand-ins of which the last, of this role, has a part of this type between two texts."""
    source: Any = "data:image/png;base64,AAAA"
    part = {"type": kind, kind: {"url": source} if kind.endswith("_url") else source}
    texts = [{"type": "text", "text": text} for text in ("Some words", "The next words")]
    *history, last = answered() if role == "tool" else [question(), answer(), {"role": role}]
    return [*history, {**last, "content": [texts[0], part, texts[1]]}]


def shown_by(trace: Trace) -> str:
    """What their rendering has for the part; ``""`` if it does not show both texts."""
    spans = list(trace.of(2, "content"))
    return trace.text[spans[0].end : spans[1].start].strip() if len(spans) > 1 else ""


def all_placeholders(shown: Rendered, messages: Sequence[Mapping[str, Any]]) -> list[Placeholder]:
    """The placeholders in the rendering of ``messages``, in characters, in their order there.

    Raises `TemplateError` for a part that has none."""
    found = sorted(find_placeholders(shown, enumerate(messages)))
    known = {(one.message, one.part) for one in found}
    for index, message in enumerate(messages):
        content = message.get("content")
        for number, part in enumerate(content if isinstance(content, (list, tuple)) else ()):
            if part_kind(part) is not None and (index, number) not in known:
                raise TemplateError(
                    f"messages[{index}], content[{number}]: the template has no place for a part of type "
                    f"{part_kind(part)!r} there (put what the part says into text)"
                )
    return found


def find_placeholders(
    shown: Rendered, messages: Iterable[tuple[int, Mapping[str, Any]]]
) -> Iterator[Placeholder]:
    """The placeholders in a rendering, in characters. ``messages``: those that are there, with their indices."""
    if not shown.parts:
        return
    trace = shown.trace
    words = sorted((span.start, span.end) for span in trace.spans)
    at = 0
    for index, message in _in_order(trace, messages):
        content = message.get("content")
        kinds = [*map(part_kind, content)] if isinstance(content, (list, tuple)) else []
        for number, kind in enumerate(kinds):
            text = "" if kind is None else shown.parts.get((kind, str(message.get("role"))), "")
            found = _outside(trace.text, text, at, words) if text else -1
            if kind is not None and found >= 0:
                at = found + len(text)
                yield Placeholder(found, at, index, number, kind)
        if not any(kinds):
            at = max([at, *(span.end for span in trace.of(index, "content"))])


def _in_order(
    trace: Trace, messages: Iterable[tuple[int, Mapping[str, Any]]]
) -> list[tuple[int, Mapping[str, Any]]]:
    """The messages in the order of their texts in the rendering: templates and polyfills may put each result after its
    call."""
    placed: list[tuple[int, int, Mapping[str, Any]]] = []
    at = -1
    for index, message in messages:
        at = next((span.start for span in trace.of(index, "content")), at)
        placed.append((at, index, message))
    return [(index, message) for _, index, message in sorted(placed, key=lambda one: one[:2])]


def _outside(text: str, shown: str, at: int, words: list[tuple[int, int]]) -> int:
    """Where ``shown`` is in ``text`` from ``at`` on, outside of the words; -1 if it is not."""
    while (at := text.find(shown, at)) >= 0:
        after = bisect_left(words, (at + len(shown),))
        if not after or words[after - 1][1] <= at:
            break
        at = words[after - 1][1]
    return at
