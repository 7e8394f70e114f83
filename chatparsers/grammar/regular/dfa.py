"""What an automaton is, and what making one may cost."""

from __future__ import annotations

from dataclasses import dataclass

from ..budget import Budget
from ..ir import Ranges


class TooLarge(Exception):
    """The automaton would have more states than the limit, or take more work than is left."""


@dataclass(frozen=True, slots=True)
class Dfa:
    """States are numbered from 0, the start; ``edges[state]`` are (characters, next state)."""

    accepting: frozenset[int]
    edges: tuple[tuple[tuple[Ranges, int], ...], ...]


def spend(budget: Budget | None, steps: int) -> None:
    """Takes steps of work from a budget before they are done. Raises `TooLarge` if too few are left."""
    if budget is not None:
        budget.work -= steps
        if budget.work < 0:
            raise TooLarge
