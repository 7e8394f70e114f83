"""Variables that nobody gives, and whether a template writes them: jinja writes nothing in their place.

This module imports jinja2, so it is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Iterable

from jinja2 import Undefined

from .environment import environment


def watched(names: Iterable[str], written: set[str]) -> dict[str, Undefined]:
    """Undefined values for the variables of these names that no function has. When a template writes one as text, its
    name goes into ``written``."""

    class Watched(Undefined):
        def __str__(self) -> str:
            written.add(str(self._undefined_name))
            return ""

    return {name: Watched(name=name) for name in names if name not in environment().globals}
