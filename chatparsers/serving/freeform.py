"""The text of a freeform tool's call, out of the arguments of the function that it became, while they arrive."""

from __future__ import annotations

import json
import re

from ..values import StringScanner
from .tools import INPUT

_OPENS = re.compile(rf'\s*\{{\s*"{INPUT}"\s*:\s*"')


class FreeText:
    """Decodes the one text as it arrives. What is no such object passes unchanged at the end."""

    __slots__ = ("_held", "_string")

    def __init__(self) -> None:
        self._held = ""
        self._string: StringScanner | None = None

    def take(self, piece: str) -> str:
        """The part of the text that is known now."""
        self._held += piece
        string = self._string
        if string is None:
            opened = _OPENS.match(self._held)
            if opened is None:
                return ""
            string = self._string = StringScanner()
            self._held = self._held[opened.end() - 1 :]
        if string.done:
            return ""
        self._held = self._held[string.scan(self._held, 0, False) :]
        return string.out

    def finish(self) -> str:
        """What is left: the arguments of a call that is no such object, or the end of one that was cut off."""
        held, self._held = self._held, ""
        return held if self._string is None else ""


def arguments_of(text: str, *, begun: bool = False) -> str:
    """The arguments of the function for a freeform call of the history. ``begun``: the model is to go on with it."""
    whole = json.dumps({INPUT: text}, ensure_ascii=False)
    return whole.removesuffix('"}') if begun else whole
