"""Masks: which ids may come next in each row of a batch, from a guide for each row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..answers.format import Turn
from ..errors import RequestError
from ..guide import Guide
from ..tokens.growing import common_ids

__all__ = ["Rows", "Steered", "allowed"]

Steered: TypeAlias = "Turn | Guide"
"""What steers an answer: a guide, or the guide of a turn without limits."""


def allowed(guide: Guide, size: int) -> Any:
    """A numpy array with a boolean for each of ``size`` ids: whether it may come next. None if all may."""
    mask = np.zeros((max(size, guide.size) + 31) // 32, dtype=np.int32)
    if not guide.fill(mask):
        return None
    return np.unpackbits(mask.view(np.uint8), bitorder="little")[:size].astype(bool)


class Rows:
    """The guides of a batch: one for each row. A row may go on as another did, as in a beam search, or take ids back,
    as after a draft."""

    def __init__(self, steered: Steered | Iterable[Steered]) -> None:
        several = [steered] if isinstance(steered, (Turn, Guide)) else steered
        self._guides = [one if isinstance(one, Guide) else one.guide() for one in several]
        self._rows: list[tuple[list[int], Guide]] = []
        self._begin: int | None = None

    def masks(self, ids: Sequence[Sequence[int]], size: int) -> list[Any]:
        """For each row of ``ids`` (the prompt and what follows it) an array of what may come next. It is None for a row
        that has ended, or that nothing constrains. The first call has the prompts alone."""
        if self._begin is None:
            self._begin = len(ids[0])
            copies, rest = divmod(len(ids), len(self._guides))
            if rest:
                found = f"{len(ids)} rows, found {len(self._guides)}"
                raise RequestError(f"turns: expected one, or one for each of {found}")
            self._rows = [([], guide.fork()) for guide in self._guides for _ in range(copies)]
        written = [list(row[self._begin :]) for row in ids]
        self._rows = [self._begun(place, row) for place, row in enumerate(written)]
        self._rows = [
            _gone_on(known, guide, row) for (known, guide), row in zip(self._rows, written, strict=True)
        ]
        return [allowed(guide, size) for _, guide in self._rows]

    def _begun(self, place: int, ids: list[int]) -> tuple[list[int], Guide]:
        """The guide of a row at the longest beginning of ``ids`` that a guide has read."""
        known, guide = self._rows[place]
        if ids[: len(known)] == known:
            return known, guide
        known, guide = max(self._rows, key=lambda row: common_ids(row[0], ids))
        same = common_ids(known, ids)
        guide = guide.fork()
        guide.rollback(len(known) - same)
        return ids[:same], guide


def _gone_on(known: list[int], guide: Guide, ids: list[int]) -> tuple[list[int], Guide]:
    try:
        guide.feed(ids[len(known) :])
    except RequestError as error:
        raise RequestError(
            f"{error}. It was sampled: let no processor after this one raise its logit"
        ) from None
    return ids, guide
