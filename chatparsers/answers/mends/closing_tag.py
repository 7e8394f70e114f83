"""``<parameter=html><p></parameter></p></parameter>``: a value that spells its own closing tag goes on, where what
follows the tag could not follow it. Off, the first closing tag ends a value."""

from __future__ import annotations

from collections.abc import Iterable

from ...values.closers import AfterTag
from ..follows import Follows, Spell
from ..nodes import Node


def closing_tag(on: bool, after: Iterable[Node], spell: Spell, stops: Iterable[str]) -> Follows:
    """What may follow the closing tag of a value where ``after`` come next."""
    return (Follows if on else _Anything)(after, spell, stops)


class _Anything(Follows):
    def near(self, closer: str) -> tuple[str, ...]:
        return ()

    def far(self, closer: str) -> AfterTag:
        return AfterTag((), ())
