"""What an automaton is, and what making one may cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..budget import Budget
from ..ir import Ranges


class TooLarge(Exception):
    """The automaton would have more states than the limit, or take more work than is left."""


Edges: TypeAlias = tuple[tuple[Ranges, int], ...]
"""(characters, next state), for each set of characters."""
State: TypeAlias = tuple[bool, Edges]
"""Whether a text may end in a state, and where it leads."""


@dataclass(frozen=True, slots=True)
class Dfa:
    """States are numbered from 0, the start."""

    accepting: frozenset[int]
    edges: tuple[Edges, ...]

    @property
    def bytes(self) -> int:
        """About the memory that it takes. Several moves may share a set of characters."""
        spans = {id(ranges): len(ranges) for edges in self.edges for ranges, _ in edges}
        return 120 * (1 + sum(map(len, self.edges))) + 150 * sum(spans.values())

    @property
    def endless(self) -> bool:
        """Whether it has texts of any length, as each state leads to acceptance: then some state leads back."""
        before = [0] * len(self.edges)
        for edges in self.edges:
            for _, then in edges:
                before[then] += 1
        first = [state for state, count in enumerate(before) if not count]
        for state in first:
            for _, then in self.edges[state]:
                before[then] -= 1
                if not before[then]:
                    first.append(then)
        return len(first) < len(self.edges)

    def runs(self, longest: int) -> dict[int, tuple[int, list[int]]]:
        """The runs of more than ``longest`` states that differ only in the next one, by their first states; with the
        place of the edge that leads to it."""
        if len(self.edges) <= longest:
            return {}
        entries = Counter(then for edges in self.edges for _, then in edges)
        after: dict[int, tuple[int, int]] = {}
        for state, edges in enumerate(self.edges):
            for place, (ranges, then) in enumerate(edges):
                if not then or entries[then] > 1 or (state in self.accepting) is not (then in self.accepting):
                    continue
                more = self.edges[then]
                if len(more) == len(edges) and more == (
                    *edges[:place],
                    (ranges, more[place][1]),
                    *edges[place + 1 :],
                ):
                    after[state] = place, then
        found: dict[int, tuple[int, list[int]]] = {}
        for first in after.keys() - {then for _, then in after.values()}:
            run, place = [first], after[first][0]
            while after.get(run[-1], (-1,))[0] == place:
                run.append(after[run[-1]][1])
            if len(run) > longest:
                found[first] = place, run
        return found


def reached(states: Sequence[State], start: int, limit: int) -> Dfa:
    """The automaton of the states that are reached from one of them. Raises `TooLarge` if they are more than
    ``limit``."""
    order = {start: 0}
    chosen = [start]
    for number in chosen:
        for _, then in states[number][1]:
            if then not in order:
                order[then] = len(chosen)
                chosen.append(then)
                if len(chosen) > limit:
                    raise TooLarge
    return Dfa(
        frozenset(order[number] for number in chosen if states[number][0]),
        tuple(tuple((ranges, order[then]) for ranges, then in states[number][1]) for number in chosen),
    )


def spend(budget: Budget | None, steps: int) -> None:
    """Takes steps of work from a budget before they are done. Raises `TooLarge` if too few are left."""
    if budget is not None:
        budget.work -= steps
        if budget.work < 0:
            raise TooLarge
