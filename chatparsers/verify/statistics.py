"""Rates with their intervals, and the two tests by which servers are compared."""

from __future__ import annotations

from collections.abc import Iterable
from math import comb, sqrt
from typing import NamedTuple

_Z = 1.959963984540054
"""Of the normal distribution, for 95 %."""


def interval(hits: int, of: int) -> tuple[float, float]:
    """Wilson's interval of 95 % for a rate."""
    if not of:
        return 0.0, 1.0
    rate, square = hits / of, _Z**2
    middle = (rate + square / (2 * of)) / (1 + square / of)
    half = _Z * sqrt(rate * (1 - rate) / of + square / (4 * of**2)) / (1 + square / of)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def sign_test(better: int, worse: int) -> float:
    """How likely it is that of so many pairs that differ, by chance as many or more are on one side."""
    of = better + worse
    if not of:
        return 1.0
    tail = sum(comb(of, k) for k in range(max(better, worse), of + 1))
    return min(2 * tail / float(2**of), 1.0)


class Trigger(NamedTuple):
    """K2VV's count: whether there is a call where the other server has one."""

    both: int
    only_this: int
    only_other: int
    neither: int

    @property
    def f1(self) -> float:
        """The F1 of calling, with the other server as what is right; 1 if neither ever calls."""
        wrong = self.only_this + self.only_other
        return 2 * self.both / (2 * self.both + wrong) if self.both or wrong else 1.0


def trigger(pairs: Iterable[tuple[bool, bool]]) -> Trigger:
    """Counts pairs of this server's answer and the other's: whether each has a call."""
    found = list(pairs)
    return Trigger(
        found.count((True, True)),
        found.count((True, False)),
        found.count((False, True)),
        found.count((False, False)),
    )
