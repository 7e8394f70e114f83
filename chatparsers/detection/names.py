"""Finds a model's format by the model's name, for models whose template does not show it.

A format says in its ``models`` which names its models have. Here are only the families that were taught no calls,
with the built-in template to serve each with. A format is served with the built-in template of its own name.

Patterns are searched in the name in lower case, with ``-`` for every run of other signs. Of all that are found, the one
furthest to the left decides, and of two at the same place the longer one: so Qwen3-Coder is no Qwen3, and
Hermes-3-Llama-3.1 is a Hermes. A family counts if no format is found. As in look-ups by format, registered replacements
come first, then the built-in formats and the families, then all other formats.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..registry import by_precedence
from ..templates.builtins import UNKNOWN, builtin_names

_LONGEST = 256
"""The characters of a name that are looked at."""


@dataclass(frozen=True, slots=True)
class Known:
    """``name`` was found by a pattern. ``format`` is ``""`` for models that were taught no calls."""

    name: str
    format: str
    template: str


_FAMILIES: tuple[tuple[str, str], ...] = (
    ("deepseek", "deepseek"),
    ("mistral", "mistral"),
    ("mixtral", "mistral"),
    ("qwen", "chatml"),
    ("llama-?3", "llama-3"),
    ("llama-?2", "llama-2"),
    ("glm-?4", "glm-4"),
    ("granite-?3", "granite"),
    ("gemma", "gemma"),
    ("phi-?4(?!-mini)", "phi-4"),
    ("phi-?[34]", "phi"),
    ("yi-", "chatml"),
)


def known(names: Iterable[str]) -> Known | None:
    """What is known of the first of these names that is known; None if all are unknown."""
    for name in names:
        key = re.sub(r"[^a-z0-9]+", "-", name[:_LONGEST].lower())
        for rows in _groups():
            found = [
                (not format, match.start(), -len(match[0]), place)
                for place, (pattern, format, _) in enumerate(rows)
                if (match := re.search(rf"(?<![a-z0-9])(?:{pattern})", key))
            ]
            if found:
                _, format, template = rows[min(found)[-1]]
                return Known(name, format, template)
    return None


def _groups() -> Iterator[list[tuple[str, str, str]]]:
    """Patterns, each with its format and template; a group comes before the next."""
    for builtin, infos in by_precedence():
        rows = [
            (pattern, info.name, info.name if info.name in builtin_names() else UNKNOWN)
            for info in infos
            for pattern in info.models
        ]
        if builtin:
            rows += [(pattern, "", template) for pattern, template in _FAMILIES]
        yield rows
