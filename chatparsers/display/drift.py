"""The drift: where the text that an engine holds parts from the text that a template renders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..public import public
from ..templates.probe.turns import common
from ..tokens.growing import common_ids
from .looks import for_html, for_terminal
from .picture import Picture

_AROUND = 120


@public
@dataclass(frozen=True, slots=True)
class Drift(Picture):
    """Two texts, or two lists of ids. ``at``: the first place at which they differ, None if they do not."""

    held: str | tuple[int, ...]
    rendered: str | tuple[int, ...]
    at: int | None

    def text(self, *, colour: bool = False) -> str:
        """Both texts around the first place at which they differ, which is marked."""
        if self.at is None:
            return f"no drift in {len(self.held):,} {self._unit}"
        parts = []
        for name, text in (("held", self.held), ("rendered", self.rendered)):
            before, after = self._cut(text)
            mark = "\x1b[7m" if colour else "⟪"
            end = "\x1b[0m" if colour else "⟫"
            parts.append(f"{name:>8}  {for_terminal(before)}{mark}{for_terminal(after)}{end}")
        return "\n".join([f"drift at {self._unit[:-1]} {self.at:,}", *parts])

    def body(self) -> str:
        if self.at is None:
            return f"<p>no drift in {len(self.held):,} {self._unit}</p>"
        rows = ""
        for name, text in (("held", self.held), ("rendered", self.rendered)):
            before, after = self._cut(text)
            rows += f'<tr><th>{name}</th><td class="chips">{for_html(before)}<mark>{for_html(after)}</mark></td></tr>'
        return f"<p>drift at {self._unit[:-1]} {self.at:,}</p><table>{rows}</table>"

    @property
    def _unit(self) -> str:
        return "characters" if isinstance(self.held, str) else "ids"

    def _cut(self, text: str | tuple[int, ...]) -> tuple[str, str]:
        at = self.at or 0
        before, after = text[max(at - _AROUND, 0) : at], text[at : at + _AROUND]
        if isinstance(before, str) and isinstance(after, str):
            return before, after
        return " ".join(map(str, before)) + " ", " ".join(map(str, after))


def drift(held: str | Sequence[int], rendered: str | Sequence[int]) -> Drift:
    """Where what an engine holds (text or ids) parts from what a template renders.

    >>> print(drift("Hi there", "Hi you"))
    drift at character 3
        held  Hi ⟪there⟫
    rendered  Hi ⟪you⟫
    """
    if isinstance(held, str) and isinstance(rendered, str):
        return _parted(held, rendered, common(held, rendered))
    one: list[Any] = list(held)
    other: list[Any] = list(rendered)
    return _parted(tuple(one), tuple(other), common_ids(one, other))


def _parted(held: Any, rendered: Any, at: int) -> Drift:
    return Drift(held, rendered, None if at == len(held) == len(rendered) else at)
