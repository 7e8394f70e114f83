"""Places of JSON: what a short text does at one follows from the state, the open brackets and the text. So it is
remembered there, and the next time one look-up takes a scanner to the next place. The tokens of a call's structure are
few, and they come in each call.

Invariant: what is remembered is bounded, whoever writes. Places know one another, so none would go alone: once there
are too many, all forget all, and a place that is left in a scanner alone learns nothing more.
"""

from __future__ import annotations

import re
from typing import Any

from ..compiled import ACCELERATOR
from ..core.machine.value import Search

SHORT_TEXT = 8 if ACCELERATOR else -1
"""The longest text that a place remembers."""
_MOST_TEXTS, _MOST_PLACES, _DEEPEST = 64, 512, 8
"""How many texts a place remembers, how many places there are, and how many brackets are open in one."""
_digits = re.compile(r"(?<=[.eE+])[0-9]+|(?<=[eE]-)[0-9]+|[1-9][0-9]*").sub
"""With "1" for what it finds, a number becomes the shortest one that goes on as it."""


class Place:
    """A place within brackets. ``goes``: what a scanner did here with a text: its next place, `odd`, `plain`, whether
    the value is over, what it put out, and how much it took. ``stays``: it may learn more."""

    __slots__ = ("comma", "goes", "number", "stack", "state", "stays")

    def __init__(self, state: int, stack: str, comma: str, number: str) -> None:
        self.state, self.stack, self.comma, self.number = state, stack, comma, number
        self.goes: dict[str, tuple[Place | None, Search | None, Search | None, bool, str, int]] = {}
        self.stays = True

    def __reduce__(self) -> Any:
        return place_of, (self.state, self.stack, self.comma, self.number)

    def learn(
        self, text: str, gone: tuple[Place | None, Search | None, Search | None, bool, str, int]
    ) -> None:
        """Remembers what a scanner did here with ``text``."""
        if self.stays and len(self.goes) < _MOST_TEXTS:
            self.goes[text] = gone


_places: dict[tuple[int, str, str, str], Place] = {}


def place_of(state: int, stack: str, comma: str, number: str) -> Place | None:
    """The place of a scanner in this ``state``, with these open brackets, comma and number. None: it is not remembered,
    as it is in no brackets or in many, or after much white space."""
    if not 0 < len(stack) <= _DEEPEST or len(comma) > SHORT_TEXT:
        return None
    key = state, stack, comma, _digits("1", number)
    found = _places.get(key)
    if found is None:
        if len(_places) >= _MOST_PLACES:
            for gone in _places.values():
                gone.stays = False
                gone.goes.clear()
            _places.clear()
        found = _places[key] = Place(*key)
    return found
