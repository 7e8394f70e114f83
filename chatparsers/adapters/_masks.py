"""Masks: which ids the grammar of a turn allows next, from the engine that is installed.

An engine is xgrammar (which needs torch) or llguidance. Both are asked for one grammar of text and calls, so a mask
holds from the first token, whatever the ``tool_choice``. An engine prepares a tokenizer once, for as long as it lives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from ..core.format import Turn
from ..errors import RequestError
from ._answer import end_ids

__all__ = ["Engine", "Mask", "Rows", "mask_maker"]

Engine: TypeAlias = Literal["xgrammar", "llguidance"]


class Mask(Protocol):
    """The state of one answer in the engine."""

    def allowed(self) -> Any:
        """A numpy array with a boolean for each id: whether it may come next."""

    def accept(self, id: int) -> bool:
        """Takes the next id. False if the grammar does not allow it."""


def mask_maker(turn: Turn, size: int, engine: Engine | None = None) -> Callable[[], Mask] | None:
    """Makes new masks for ``turn``; None if the turn constrains nothing.

    ``size``: how many ids the model has a logit for. ``engine``: None takes xgrammar if it is installed, else
    llguidance. Raises `RequestError` if there is no engine, or if the turn has no tokenizer.
    """
    ends = end_ids(turn)
    if engine not in (None, "xgrammar", "llguidance"):
        raise RequestError(f"engine: expected 'xgrammar' or 'llguidance', found {engine!r}")
    if engine != "llguidance":
        try:
            from ._xgrammar import xgrammar_masks

            return xgrammar_masks(turn, size, ends)
        except ImportError as error:
            if engine == "xgrammar":
                raise RequestError(f"engine: xgrammar cannot be imported: {error}") from error
    try:
        from ._llguidance import llguidance_masks
    except ImportError as error:
        raise RequestError(
            "engine: expected xgrammar or llguidance, found neither: pip install llguidance"
        ) from error
    return llguidance_masks(turn, size, ends)


class Rows:
    """The masks of a batch: a row of ids for each turn. Rows may change places, as in a beam search."""

    def __init__(self, turns: Sequence[Turn], engine: Engine | None) -> None:
        self.turns = turns
        self._engine = engine
        self._makers: list[Callable[[], Mask] | None] = []
        self._rows: list[tuple[list[int], Mask | None]] = []
        self._begin: int | None = None

    def masks(self, ids: Sequence[Sequence[int]], size: int) -> list[Any]:
        """For each row of ``ids`` (the prompt and what follows it) an array of what may come next. It is None for a row
        that is not constrained or has ended. The first call has the prompts alone."""
        if self._begin is None:
            self._begin = len(ids[0])
            if len(ids) % len(self.turns):
                raise RequestError(
                    f"turns: expected one, or one for each of {len(ids)} rows, found {len(self.turns)}"
                )
            self._makers = [mask_maker(turn, size, self._engine) for turn in self.turns]
            copies = len(ids) // len(self.turns)
            self._makers = [maker for maker in self._makers for _ in range(copies)]
            self._rows = [([], None if maker is None else maker()) for maker in self._makers]
        self._rows = [self._follow(place, list(row[self._begin :])) for place, row in enumerate(ids)]
        return [None if mask is None else mask.allowed() for _, mask in self._rows]

    def _follow(self, place: int, ids: list[int]) -> tuple[list[int], Mask | None]:
        known, mask = self._rows[place]
        maker = self._makers[place]
        if maker is None:
            return ids, None
        ends = set(self.turns[place * len(self.turns) // len(self._makers)].stop_ids)
        if ends & set(ids):
            return ids, None
        if mask is None or ids[: len(known)] != known:
            known, mask = [], maker()
        for id in ids[len(known) :]:
            if not mask.accept(id):
                raise RequestError(
                    f"grammar: the mask does not allow token {id}, which was sampled: let no other processor "
                    "after this one raise its logit"
                )
        return ids, mask
