"""Content parts other than text, under the type that the template reads. What it cannot show is refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import TemplateError
from ..jinja.failure import place
from ..probe.parts import part_kind, short_kind
from ..render import Template


def shown_parts(
    template: Template,
    messages: Sequence[Mapping[str, Any]],
    *,
    results_as: str = "tool",
    moves: bool = False,
) -> tuple[Sequence[Mapping[str, Any]], bool]:
    """The messages, with each part other than text under the type that the template reads: OpenAI's ``image_url``
    becomes ``image`` if the template reads only that. And whether parts of results have to move into a user's message.

    ``results_as``: the role under which results are written. ``moves``: whether a part of a result may move. Raises
    `TemplateError` for the first part of a type that the template drops or prints as data in messages of its role.
    """
    out: list[Mapping[str, Any]] | None = None
    moved = False
    for index, message in enumerate(messages):
        content = message.get("content")
        if not isinstance(content, list) or not any(map(part_kind, content)):
            continue
        given = str(message.get("role"))
        role = results_as if given == "tool" else given
        parts = []
        for number, part in enumerate(content):
            kind = part_kind(part)
            if kind is None:
                parts.append(part)
                continue
            shown = _shown_as(template, kind, role)
            if shown is None and given == "tool" and moves:
                shown = _shown_as(template, kind, "user")
                moved = moved or shown is not None
            if shown is None:
                raise TemplateError(
                    f"{place(template.name, index=index)}, content[{number}]: the template has no place for parts of "
                    f"type {kind!r} in messages of the role {given!r} (put what the part says into text)"
                )
            parts.append(part if shown == kind else {**part, "type": shown})
        out = out or list(messages)
        out[index] = {**message, "content": parts}
    return (messages if out is None else out), moved


def _shown_as(template: Template, kind: str, role: str) -> str | None:
    """The type under which the template shows a part in messages of ``role``; None if it has no place for it."""
    return next((name for name in (kind, short_kind(kind)) if template.shows_part(name, role)), None)
