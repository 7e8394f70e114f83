"""Where a rendering has the placeholders of images and other parts that are no text.

Strategy. What a template writes for a part of its type is found once, between two texts (`_part`). The trace
says which characters are words, so the placeholders are the occurrences of that text outside of words, in the order of
the parts: a template may put a message's pictures before its texts, but not one picture before another. A part whose
place is not known is left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import ChatParsersError, TemplateError
from ..public import public
from ..templates.probe.parts import part_kind
from ..templates.probe.stand_ins import answer, answered, question
from ..templates.trace import Trace
from .request import Request


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


def prompt_placeholders(request: Request, messages: Sequence[Mapping[str, Any]]) -> list[Placeholder]:
    """The placeholders in the prompt for ``messages``, in characters, in their order there.

    Raises `TemplateError` for a part that has none."""
    if not has_parts(messages):
        return []
    trace = request.traced(messages).trace
    found = sorted(find_placeholders(trace, enumerate(messages), request))
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
    trace: Trace, messages: Iterable[tuple[int, Mapping[str, Any]]], request: Request
) -> Iterator[Placeholder]:
    """The placeholders in a rendering, in characters. ``messages``: those that are there, with their indices."""
    messages = list(messages)
    if not has_parts(message for _, message in messages):
        return
    words = sorted((span.start, span.end) for span in trace.spans)
    at = 0
    for index, message in _in_order(trace, messages):
        content = message.get("content")
        for number, part in enumerate(content if isinstance(content, (list, tuple)) else ()):
            kind = part_kind(part)
            shown = None if kind is None else _part(request, kind, str(message.get("role")))
            found = _outside(trace.text, shown, at, words) if shown else -1
            if kind is not None and shown and found >= 0:
                at = found + len(shown)
                yield Placeholder(found, at, index, number, kind)
        at = max([at, *(span.end for span in trace.of(index, "content") if not has_parts([message]))])


def _part(request: Request, kind: str, role: str) -> str:
    """What the template writes for a part of this type in a message of ``role``; ``""`` if that is not known."""

    def found() -> str:
        source: Any = "data:image/png;base64,AAAA"
        part = {"type": kind, kind: {"url": source} if kind.endswith("_url") else source}
        texts = [{"type": "text", "text": text} for text in ("Some words", "The next words")]
        *history, last = answered() if role == "tool" else [question(), answer(), {"role": role}]
        messages = [*history, {**last, "content": [texts[0], part, texts[1]]}]
        try:
            turn, trace = request.traced(messages, add_generation_prompt=False, continue_final_message=False)
        except ChatParsersError:
            return ""
        if "result_parts" in turn.polyfills:
            return _part(request, kind, "user")
        spans = list(trace.of(2, "content"))
        return trace.text[spans[0].end : spans[1].start].strip() if len(spans) > 1 else ""

    return request.fact(("part", kind, role), found)


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
