"""The strip: a text as chips, each with its kind; diagnostics below, and the loss mask of a sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import groupby
from typing import Any

from ..chat.marks import answer_runs
from ..chat.sample import Kind, Sample
from ..core.message import Message
from ..core.public import public
from .drawing import drawn_chips
from .looks import LOOKS, MOST, coloured, cut, for_html, for_terminal
from .picture import Picture

__all__ = ["Chip", "Strip", "strip"]

_LONG, _SEEN = 2_000, 600
"""The middle of a longer text is folded; so many characters before and after it are shown."""
_ROWS = 500
"""How many parts the table has."""
_IDS = 12
"""How many ids a tip lists."""


@public
@dataclass(frozen=True, slots=True)
class Chip:
    """A stretch of one kind. ``span``: its characters, or its tokens with ``unit`` ``"token"``. ``counted``: whether a
    loss counts it, None where there is no loss mask. ``ids``: those of its tokens."""

    text: str
    kind: Kind
    span: tuple[int, int]
    unit: str = "character"
    counted: bool | None = None
    ids: tuple[int, ...] = ()

    @property
    def tip(self) -> str:
        """What hovering over it says."""
        mask = {None: "", True: ", counted by a loss", False: ", not counted"}[self.counted]
        listed = ", ".join(map(str, self.ids[:_IDS])) + ", …" * (len(self.ids) > _IDS)
        ids = f", ids {listed}" if self.ids else ""
        return f"{LOOKS[self.kind].name}, {self.unit}s {self.span[0]:,} to {self.span[1]:,}{mask}{ids}"


@public
@dataclass(frozen=True, slots=True)
class Strip(Picture):
    """A text as chips. ``notes``: the diagnostics, each with its place in characters. ``rest``: what is not shown."""

    chips: tuple[Chip, ...]
    notes: tuple[tuple[int, str], ...] = ()
    rest: str = ""

    def text(self, *, colour: bool = False) -> str:
        """A line a chip: its letter, its kind, its text; with a loss mask, 1 or 0 before them."""
        lines = []
        for chip in self.chips:
            look = LOOKS[chip.kind]
            mask = "" if chip.counted is None else f"{int(chip.counted)} "
            lines.append(
                f"{mask}{look.letter} {look.name:<9} {coloured(for_terminal(chip.text), chip.kind, colour)}"
            )
        lines += [f"! character {place}: {for_terminal(note)}" for place, note in self.notes]
        return "\n".join([*lines, *([self.rest] if self.rest else [])])

    def body(self) -> str:
        kinds = dict.fromkeys(chip.kind for chip in self.chips)
        legend = "".join(
            f'<span><span class="chip k{int(kind)}" data-l="{LOOKS[kind].letter}">{LOOKS[kind].name}</span></span>'
            for kind in kinds
        )
        chips = "".join(map(_chip, self.chips))
        notes = "".join(
            f'<div class="note">character {place}: {for_html(note)}</div>' for place, note in self.notes
        )
        rest = f"<p>{for_html(self.rest)}</p>" if self.rest else ""
        parts = f"<details><summary>every part in a table</summary>{self._table()}</details>"
        return f'<div class="legend">{legend}</div><div class="chips">{chips}</div>{notes}{rest}{parts}'

    def svg(self, title: str = "What each part of a text is") -> str:
        """The strip as a drawing of its own."""
        return drawn_chips([(chip.text, chip.kind) for chip in self.chips], title)

    def _table(self) -> str:
        """What the tips say, for those who point at nothing."""
        rows = "".join(
            f"<tr><td>{LOOKS[chip.kind].letter}</td><td>{chip.tip}</td><td>{for_html(_begun(chip.text))}</td></tr>"
            for chip in self.chips[:_ROWS]
        )
        left = f"<p>… {len(self.chips) - _ROWS:,} more</p>" if len(self.chips) > _ROWS else ""
        head = "<tr><th>letter</th><th>part</th><th>begins</th></tr>"
        return f"<table><thead>{head}</thead><tbody>{rows}</tbody></table>{left}"


def _begun(text: str) -> str:
    return text if len(text) <= 40 else text[:40] + "…"


def _chip(chip: Chip) -> str:
    """The chip; its letter stands behind leading line breaks, so that it is beside the text."""
    uncounted = " uncounted" if chip.counted is False else ""
    words = chip.text.lstrip("\n")
    breaks = chip.text[: len(chip.text) - len(words)]
    letter = f'<span data-l="{LOOKS[chip.kind].letter}"></span>' if words.strip() else ""
    return (
        f'<span class="chip k{int(chip.kind)}{uncounted}" title="{chip.tip}">'
        f"{for_html(breaks)}{letter}{_folded(words)}</span>"
    )


def _folded(text: str) -> str:
    """The text as HTML; the middle of a long one is folded away."""
    if len(text) <= _LONG:
        return for_html(text)
    begin, middle, end = text[:_SEEN], text[_SEEN:-_SEEN], text[-_SEEN:]
    return (
        f"{for_html(begin)}<details><summary>{len(middle):,} more characters</summary>{for_html(middle)}</details>"
        f"{for_html(end)}"
    )


@singledispatch
def strip(reading: Any, **options: Any) -> Strip:
    """The strip of a `Message` or of a `Sample`.

    A sample of tokens needs ``decode``, a function from ids to text, such as ``chat.tokenizer.decode``: without it the
    ids themselves are shown. Text beyond 200,000 characters is cut, with a note. Raises TypeError for anything else.

    >>> from chatparsers import get_format
    >>> print(strip(get_format("qwen3").bind(prefix="<think>").parse("Hm.</think>Hi.")))
    R reasoning Hm.
    m markup    </think>
    C content   Hi.
    """
    raise TypeError(f"strip: expected a Message or a Sample, found {type(reading).__name__}")


@strip.register
def _(reading: Message) -> Strip:
    shown, rest = cut(reading.text)
    chips = tuple(
        Chip(shown[start:end], Kind(kind), (start, end))
        for start, end, kind in answer_runs(reading)
        if shown[start:end]
    )
    notes = tuple((note.position, str(note)) for note in reading.diagnostics)
    return Strip(chips, notes, rest)


@strip.register
def _(reading: Sample, *, decode: Callable[[Sequence[int]], str] | None = None) -> Strip:
    text_of = decode or (_characters if reading.unit == "character" else _numbers)
    chips: list[Chip] = []
    size = 0
    for (kind, counted), start, end in _runs(reading):
        text = text_of(reading.ids[start:end])
        size += len(text)
        shown, rest = cut(text, max(MOST - (size - len(text)), 0))
        ids = tuple(reading.ids[start:end]) if reading.unit == "token" else ()
        chips.append(Chip(shown, Kind(kind), (start, end), reading.unit, bool(counted), ids))
        if rest:
            return Strip(tuple(chips), (), f"… {len(reading.ids) - end:,} more {reading.unit}s are not shown")
    return Strip(tuple(chips))


def _runs(sample: Sample) -> Iterator[tuple[tuple[int, int], int, int]]:
    at = 0
    for marks, run in groupby(zip(sample.kinds, sample.loss_mask, strict=True)):
        length = sum(1 for _ in run)
        yield marks, at, at + length
        at += length


def _characters(ids: Sequence[int]) -> str:
    return "".join(map(chr, ids))


def _numbers(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids)) + " "
