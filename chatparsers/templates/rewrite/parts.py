"""Content parts other than text, under the type that the template reads. What it cannot show is refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...errors import TemplateError
from ..jinja.failure import place
from ..probe.parts import part_kind
from ..render import Template


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
