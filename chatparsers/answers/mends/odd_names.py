"""``<function=my tool!>``: a declared name is read whole, whatever characters it holds; the classes of names tell only
undeclared ones."""

from __future__ import annotations

from ...core.machine.names import JSON_INSIDE
from ..nodes import Tag


def odd_names(tag: Tag, chars: str, tokens: bool) -> bool:
    """Whether a declared name is tried before a run of ``chars``. ``tokens``: the machine's text has special tokens;
    without them, a run of JSON holds every name that JSON can spell."""
    return tag is not Tag.ID and (chars != JSON_INSIDE or tokens)
