"""Content parts other than text. They are shown if the template can show them, else refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...core.errors import TemplateError
from ..jinja.failure import place

if TYPE_CHECKING:
    from ..render import Template

__all__ = ["part_kind", "shown_parts", "shows_part"]

_TEXTUAL = ("text", "thinking", "reasoning", "input_text", "output_text", "refusal")
_NEEDLE = "needlepart"


def part_kind(part: object) -> str | None:
    """The type of a part other than text, such as ``image_url``; None for text."""
    if not isinstance(part, Mapping) or isinstance(part.get("text"), str):
        return None
    kind = str(part.get("type", "object"))
    return None if kind in _TEXTUAL else kind


def shown_parts(template: Template, messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The messages, with each part other than text under the type that the template reads: OpenAI's ``image_url``
    becomes ``image`` if the template reads only that.

    Raises `TemplateError` for the first part of a type that the template drops or prints as data.
    """
    out: list[Mapping[str, Any]] | None = None
    for index, message in enumerate(messages):
        content = message.get("content")
        if not isinstance(content, list) or not any(map(part_kind, content)):
            continue
        parts = []
        for number, part in enumerate(content):
            kind = part_kind(part)
            short = kind.removesuffix("_url").removeprefix("input_") if kind else ""
            if kind is None or template.shows_part(kind):
                parts.append(part)
            elif short != kind and template.shows_part(short):
                parts.append({**part, "type": short})
            else:
                raise TemplateError(
                    f"{place(template.name, index=index)}, content[{number}]: the template has no place for parts of "
                    f"type {kind!r} (put what the part says into text)"
                )
        out = out or list(messages)
        out[index] = {**message, "content": parts}
    return messages if out is None else out


def shows_part(render: Any, kind: str) -> bool:
    """Whether a part of this type changes the rendering by more than its printed data.

    ``render(content)`` is the rendering of a user message; it raises `TemplateError`.
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
