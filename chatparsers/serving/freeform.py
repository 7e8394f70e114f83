"""The text of a freeform tool's call, out of the arguments of the function that it became, while they arrive."""

from __future__ import annotations

import json
import re

from .tools import INPUT

_OPENS = re.compile(rf'\s*\{{\s*"{INPUT}"\s*:\s*"')
_HALF = re.compile(r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}(?:\\(?:u[0-9a-fA-F]{0,3})?)?|u[0-9a-fA-F]{0,3})?$")
_END = re.compile(r'(?:[^"\\]|\\.)*', re.DOTALL)


class FreeText:
    """Decodes the one text as it arrives. What is no such object passes unchanged at the end."""

    __slots__ = ("_held", "_inside", "_over")

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self._over = False

    def take(self, piece: str) -> str:
        """The part of the text that is known now."""
        if self._over:
            return ""
        self._held += piece
        if not self._inside:
            opened = _OPENS.match(self._held)
            if opened is None:
                return ""
            self._inside = True
            self._held = self._held[opened.end() :]
        found = _END.match(self._held)
        text = found.group() if found is not None else ""
        self._over = len(text) < len(self._held) and self._held[len(text)] == '"'
        if not self._over:
            half = _HALF.search(text)
            text = text if half is None or _escaped(text, half.start()) else text[: half.start()]
        self._held = self._held[len(text) :]
        return _decoded(text)

    def finish(self) -> str:
        """What is left: the arguments of a call that is no such object, or the end of one that was cut off."""
        held, self._held = self._held, ""
        return "" if self._over or self._inside else held


def _escaped(text: str, place: int) -> bool:
    """Whether the backslash at ``place`` is itself escaped."""
    before = len(text[:place]) - len(text[:place].rstrip("\\"))
    return before % 2 == 1


def _decoded(text: str) -> str:
    try:
        return str(json.loads(f'"{text}"', strict=False))
    except ValueError:
        return text


def arguments_of(text: str, *, begun: bool = False) -> str:
    """The arguments of the function for a freeform call of the history. ``begun``: the model is to go on with it."""
    whole = json.dumps({INPUT: text}, ensure_ascii=False)
    return whole.removesuffix('"}') if begun else whole
