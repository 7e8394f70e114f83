"""The automaton of all texts but some, such as the names that no schema lists.

It is the tree of their beginnings, read from the ends so that equal branches are one, and a state for all that left it.
A product with a grammar of the texts would be the same automaton, at a hundred times the work.
"""

from __future__ import annotations

from ..budget import Budget
from ..ir import ANY, Alt, Lang, Ranges, Seq, Text, charset, complement
from .dfa import Dfa, TooLarge, spend


def excluded_texts(lang: Lang) -> list[str] | None:
    """The texts, if a language has all texts but these; else None."""
    if len(lang.parts) != 1 or lang.parts[0].positive or lang.parts[0].divisor:
        return None
    if lang.least or lang.most is not None or lang.stops or lang.end:
        return None
    node = lang.parts[0].node
    found = []
    for option in node.options if isinstance(node, Alt) else (node,):
        if isinstance(option, Text):
            found.append(option.text)
        elif isinstance(option, Seq) and not option.items:
            found.append("")
        else:
            return None
    return found


def not_listed(texts: list[str], limit: int, budget: Budget | None) -> Dfa:
    """The smallest automaton of all texts but these. Raises `TooLarge` as `build` does."""
    spend(budget, sum(map(len, texts)))
    tree: list[dict[str, int]] = [{}]
    words: set[int] = set()
    for text in texts:
        at = 0
        for char in text:
            if char not in tree[at]:
                tree[at][char] = len(tree)
                tree.append({})
                if len(tree) > limit:
                    raise TooLarge
            at = tree[at][char]
        words.add(at)
    # A node comes after its parent. So from the last one on, what a node leads to is known.
    known: dict[tuple[bool, tuple[tuple[Ranges, int], ...]], int] = {(True, ((ANY, 0),)): 0}
    same = [0] * len(tree)
    for node in range(len(tree) - 1, -1, -1):
        to: dict[int, list[str]] = {}
        for char, then in tree[node].items():
            to.setdefault(same[then], []).append(char)
        listed = [(charset(chars), then) for then, chars in sorted(to.items())]
        left = complement(charset(tree[node])) if tree[node] else ANY
        key = node not in words, (*listed, (left, 0))
        same[node] = known.setdefault(key, len(known))
    states = list(known)
    start = same[0]
    place = {start: 0, 0: start}  # the start comes first
    states[0], states[start] = states[start], states[0]
    return Dfa(
        frozenset(number for number, (accepting, _) in enumerate(states) if accepting),
        tuple(tuple((ranges, place.get(then, then)) for ranges, then in edges) for _, edges in states),
    )
