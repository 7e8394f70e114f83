"""Markup with runs: what the filter ``safe`` makes of a traced text. This module imports markupsafe."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup


class TracedMarkup(Markup):
    """Markup that knows from which source each run of its characters came."""

    __slots__ = ("_runs",)
    _runs: tuple[tuple[int, int, int, int, int], ...]

    def __new__(
        cls, text: Any = "", *args: Any, runs: tuple[tuple[int, int, int, int, int], ...] = ()
    ) -> TracedMarkup:
        self = super().__new__(cls, text, *args)
        self._runs = runs
        return self
