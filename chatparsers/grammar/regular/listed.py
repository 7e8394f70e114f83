"""All texts of an automaton but some, such as the names that no schema lists.

The texts part from the automaton in a tree of their beginnings, which is read from its ends so that equal branches are
one. A product with a grammar of the texts would be the same automaton, at a hundred times the work.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import chain

from ..budget import Budget
from ..ir import EMPTY, LAST, Alt, Part, Ranges, Text, charset, complement, literal_text, overlap
from .dfa import Dfa, Edges, State, TooLarge, reached, spend


def listed_texts(part: Part) -> list[str] | None:
    """The texts, if a constraint names some texts and nothing else; else None."""
    options = part.node.options if isinstance(part.node, Alt) else (part.node,)
    if part.divisor or not all(isinstance(one, Text) or one is EMPTY for one in options):
        return None
    return [literal_text((one,)) for one in options]


def without_texts(dfa: Dfa, texts: list[str], limit: int, budget: Budget | None) -> Dfa | None:
    """The smallest automaton of the same texts but these, if ``dfa`` is the smallest one; None if no text is left.
    Raises `TooLarge` as `build` does."""
    spend(budget, sum(map(len, texts)))
    tree: list[dict[str, int]] = [{}]
    beside = [0]
    """The state of ``dfa`` at each node of the tree."""
    words: set[int] = set()
    for text in texts:
        at = 0
        for char in text:
            node = tree[at].get(char)
            if node is None:
                then = _after(dfa.edges[beside[at]], char)
                if then is None:
                    break
                node = tree[at][char] = len(tree)
                tree.append({})
                beside.append(then)
                if len(tree) > limit:
                    raise TooLarge
            at = node
        else:
            words.add(at)
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
