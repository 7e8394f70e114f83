"""The texts of an automaton that have a certain number of characters."""

from __future__ import annotations

from functools import cache

from ..budget import Budget
from ..ir import Ranges, charset
from .dfa import Dfa, State, TooLarge, reached, spend

Layer = frozenset[int]
"""The states that texts of one length reach."""


def _layers(dfa: Dfa, least: int, most: int | None, limit: int, budget: Budget | None) -> list[Layer]:
    """The states of ``dfa`` by the number of characters before them, up to ``most``, or ``least`` without it; none if
    no text has so many characters. Raises `TooLarge` if counting them surely takes more than ``limit`` states."""
    top = least if most is None else most
    after: dict[Layer, tuple[Layer, int]] = {}
    layers = [Layer([0])]
    while len(layers) <= top:
        layer = layers[-1]
        if layer not in after:
            reached_next = Layer(then for state in layer for _, then in dfa.edges[state])
            after[layer] = reached_next, sum(1 + len(dfa.edges[state]) for state in layer)
        following, steps = after[layer]
        spend(budget, steps >> 1)
        if not following:
            break
        layers.append(following)
        # Each state leads to an end in fewer characters than there are states. All beginnings of that text differ.
        if len(layers) > limit + len(dfa.edges) < top:
            raise TooLarge
    if most is None:
        return layers if len(layers) > least else []
    return layers if any(layer & dfa.accepting for layer in layers[least:]) else []


def counted(dfa: Dfa, least: int, most: int | None, limit: int, budget: Budget | None) -> Dfa | None:
    """An automaton of the texts of ``dfa`` that have ``least`` to ``most`` characters; None if there are none.

    There is one layer of states for each count. The last one is made first, so the states that a new state leads to
    are known, and equal states are found at once. A set of characters, which may be large, stands as its number.
    """
    layers = _layers(dfa, least, most, limit, budget)
    if not layers:
        return None
    sets: dict[Ranges, int] = {}
    moves = [[(sets.setdefault(ranges, len(sets)), then) for ranges, then in edges] for edges in dfa.edges]
    listed = [*sets]
    known: dict[tuple[bool, tuple[tuple[int, int], ...]], int] = {}

    @cache
    def union(every: tuple[int, ...]) -> int:
        if len(every) == 1:
            return every[0]
        ranges = charset(span for number in every for span in listed[number])
        if ranges not in sets:
            sets[ranges] = len(listed)
            listed.append(ranges)
        return sets[ranges]

    following: dict[int, int] = {}
    """The number of each state in the layer after this one."""
    if most is None:
        layers.pop()
        known.update(((number in dfa.accepting, tuple(edges)), number) for number, edges in enumerate(moves))
        following = {number: number for number in range(len(moves))}
    for count in range(len(layers) - 1, -1, -1):
        made: dict[int, int] = {}
        for number in layers[count]:
            to: dict[int, list[int]] = {}
            for characters, then in moves[number]:
                if then in following:
                    to.setdefault(following[then], []).append(characters)
            accepting = count >= least and number in dfa.accepting
            if accepting or to:
                edges = tuple([(union(tuple(every)), then) for then, every in to.items()])
                made[number] = known.setdefault((accepting, edges), len(known))
        following = made
        if len(known) > limit + len(dfa.edges):
            raise TooLarge
    states: list[State] = [
        (accepting, tuple([(listed[characters], then) for characters, then in edges]))
        for accepting, edges in known
    ]
    return reached(states, following[0], limit)
