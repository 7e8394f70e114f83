"""Content parts other than text: which kind a part is, and whether a template has a place for that kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...errors import TemplateError

_TEXTUAL = ("text", "thinking", "reasoning", "input_text", "output_text", "refusal")
_NEEDLE = "needlepart"


def part_kind(part: object) -> str | None:
    """The type of a part other than text, such as ``image_url``; None for text."""
    if not isinstance(part, Mapping) or isinstance(part.get("text"), str):
        return None
    kind = str(part.get("type", "object"))
    return None if kind in _TEXTUAL else kind


def part_kinds(messages: Iterable[Mapping[str, Any]]) -> set[tuple[str, str]]:
    """The types of all parts other than text, each with the role of its message."""
    return {
        (kind, str(message.get("role")))
        for message in messages
        if isinstance(content := message.get("content"), (list, tuple))
        for part in content
        if (kind := part_kind(part)) is not None
    }


def short_kind(kind: str) -> str:
    """The type without what OpenAI's APIs add to it: ``image`` for ``image_url`` and ``input_image``."""
    return kind.removesuffix("_url").removeprefix("input_")


def shows_part(render: Any, kind: str) -> bool:
    """Whether a part of this type changes the rendering by more than its printed data.

    ``render(content)`` is the rendering of a message with this content; it raises `TemplateError`.
    """
    text = {"type": "text", "text": _NEEDLE}
    part = (
        {"type": kind, kind: {"url": "needle://part"}}
        if kind.endswith("_url")
        else {"type": kind, kind: "needle://part"}
    )
    try:
        shown, plain = render([text, part]), render([text])
    except TemplateError:
        return False
    return bool(
        shown != plain
        and _NEEDLE in shown
        and not any(f in shown for f in ("needle://", f"'{kind}'", f'"{kind}"'))
    )
