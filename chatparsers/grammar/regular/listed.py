"""All texts of an automaton but some, such as the names that no schema lists.

The texts part from the automaton in a tree of their beginnings, which is read from its ends so that equal branches are
one. A product with a grammar of the texts would be the same automaton, at a hundred times the work.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import chain
from typing import NamedTuple

from ..budget import Budget
from ..ir import EMPTY, LAST, Alt, Part, Ranges, Text, charset, complement, overlap
from .dfa import Dfa, Edges, State, TooLarge, reached, spend


def listed_texts(part: Part) -> list[str] | None:
    """The texts, if a constraint names some texts and nothing else; else None."""
    options = part.node.options if isinstance(part.node, Alt) else (part.node,)
    found: list[str] = []
    for one in options:
        if not isinstance(one, Text) and one is not EMPTY:
            return None
        found.append(one.text if isinstance(one, Text) else "")
    return None if part.divisor else found


class _Tree(NamedTuple):
    """The beginnings of texts, as far as an automaton has them, from the empty one on; each comes after its own
    beginnings."""

    after: list[dict[str, int]]
    """The characters that follow each."""
    beside: list[int]
    """The state of the automaton at each."""
    words: set[int]
    """The whole texts."""


def _tree(dfa: Dfa, texts: list[str], limit: int, budget: Budget | None) -> _Tree:
    """The beginnings that an automaton has of the texts. Raises `TooLarge` as `build` does."""
    spend(budget, sum(map(len, texts)))
    after: list[dict[str, int]] = [{}]
    beside = [0]
    words: set[int] = set()
    moves: dict[tuple[int, str], int | None] = {}
    for text in texts:
        at = 0
        for char in text:
            node = after[at].get(char)
            if node is None:
                move = beside[at], char
                if move not in moves:
                    moves[move] = _after(dfa.edges[move[0]], char)
                then = moves[move]
                if then is None:
                    break
                node = after[at][char] = len(after)
                after.append({})
                beside.append(then)
                if len(after) > limit:
                    raise TooLarge
            at = node
        else:
            words.add(at)
    return _Tree(after, beside, words)


def most_states(dfa: Dfa, texts: list[str], limit: int, budget: Budget | None) -> int:
    """At least as many states as `without_texts` leaves, 0 if it leaves none. Raises `TooLarge` as it does."""
    if not dfa.endless:
        found = without_texts(dfa, texts, limit, budget)
        return 0 if found is None else len(found.edges)
    size = 1 + sum(map(len, texts))
    if size <= limit:  # a tree has no more
        spend(budget, size - 1)
    else:
        size = len(_tree(dfa, texts, limit, budget).after)
    return len(dfa.edges) + size


def without_texts(dfa: Dfa, texts: list[str], limit: int, budget: Budget | None) -> Dfa | None:
    """The smallest automaton of the same texts but these, if ``dfa`` is the smallest one; None if no text is left.
    Raises `TooLarge` as `build` does."""
    tree, beside, words = _tree(dfa, texts, limit, budget)
    # A node comes after its parent. So from the last one on, what a node leads to is known.
    states: list[State] = [(number in dfa.accepting, edges) for number, edges in enumerate(dfa.edges)]
    known = {(accepting, frozenset(edges)): number for number, (accepting, edges) in enumerate(states)}
    same = [0] * len(tree)
    rests: dict[tuple[int, str], list[tuple[Ranges, int]]] = {}
    """What is left of a state's edges without some characters. Most nodes are followed by one of few."""
    for node in range(len(tree) - 1, -1, -1):
        to: dict[int, list[Ranges]] = {}
        for char, then in tree[node].items():
            if same[then] >= 0:
                to.setdefault(same[then], []).append(((ord(char), ord(char)),))
        place = beside[node], "".join(tree[node])
        rest = rests.get(place)
        if rest is None:
            others = complement(charset(place[1]))
            left = [(overlap(ranges, others), then) for ranges, then in dfa.edges[place[0]]]
            rest = rests[place] = [(ranges, then) for ranges, then in left if ranges]
        for ranges, then in rest:
            to.setdefault(then, []).append(ranges)
        edges = tuple(
            [(sets[0] if len(sets) == 1 else charset(chain(*sets)), then) for then, sets in to.items()]
        )
        accepting = node not in words and beside[node] in dfa.accepting
        key = accepting, frozenset(edges)
        if key not in known and (accepting or edges):
            known[key] = len(states)
            states.append((accepting, edges))
        same[node] = known.get(key, -1)
    return None if same[0] < 0 else reached(states, same[0], limit)


def _after(edges: Edges, char: str) -> int | None:
    """The state after a character; None if it leads nowhere."""
    code = ord(char)
    for ranges, then in edges:
        place = bisect_right(ranges, (code, LAST)) - 1
        if place >= 0 and code <= ranges[place][1]:
            return then
    return None
