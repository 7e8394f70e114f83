"""Draws random texts from a grammar, from the tree that all dialects are written from.

The texts are short: a walk prefers few repeats, and at some depth the first option that ends. A text is a list of
parts, so that a special token can be told from its letters.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from random import Random

from ..grammar import ir
from ..grammar.ir import Ir, Ranges
from ..grammar.reading.read import Reading
from ..grammar.regular.automaton import Dfa, TooLarge, build

_DEEP, _STEPS = 60, 40
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEXYZ0123456789 .,-é永"


def drawn(reading: Reading, random: Random) -> list[ir.Text | ir.TokenRef]:
    """A random text of the grammar, in parts. Raises `TooLarge` if one of its automata is too large."""
    return list(_GrammarWalk(reading, random).through(reading.root, 0))


class _GrammarWalk:
    def __init__(self, reading: Reading, random: Random) -> None:
        self.rules = reading.rules
        self.random = random

    def through(self, node: Ir, depth: int) -> Iterator[ir.Text | ir.TokenRef]:
        if isinstance(node, (ir.Text, ir.TokenRef)):
            yield node
        elif isinstance(node, ir.Chars):
            yield ir.Text(self._letter(node.ranges))
        elif isinstance(node, ir.Blank):
            yield ir.Text(self.random.choice(("", " ")))
        elif isinstance(node, ir.Seq):
            for item in node.items:
                yield from self.through(item, depth + 1)
        elif isinstance(node, ir.Alt):
            options = sorted(node.options, key=_size) if depth > _DEEP else [self.random.choice(node.options)]
            yield from self.through(options[0], depth + 1)
        elif isinstance(node, ir.Rep):
            most = node.least + 2 if node.most is None else min(node.most, node.least + 2)
            for _ in range(node.least if depth > _DEEP else self.random.randint(node.least, most)):
                yield from self.through(node.node, depth + 1)
        elif isinstance(node, ir.Shared):
            yield from self.through(node.node, depth)
        elif isinstance(node, ir.Ref):
            yield from self.through(self.rules[node.name], depth + 1)
        elif isinstance(node, ir.Order):
            yield from self.through(node.unfold(), depth + 1)
        elif isinstance(node, ir.Lang):
            yield from self._string(node)
        else:
            assert isinstance(node, ir.Free)
            yield from self.through(node.calls, depth + 1)

    def _letter(self, ranges: Ranges) -> str:
        usual = [letter for letter in _LETTERS if _inside(ranges, letter)]
        return self.random.choice(usual) if usual else chr(self.random.choice(ranges)[0])

    def _string(self, node: ir.Lang) -> Iterator[ir.Text | ir.TokenRef]:
        if not node.parts and not node.stops and node.encoding != "raw":
            most = node.least + 8 if node.most is None else min(node.most, node.least + 8)
            text = "".join(self.random.choices(_LETTERS, k=self.random.randint(node.least, most)))
        else:
            text = self._by_automaton(_automaton(node))
        if node.encoding == "raw":
            end = node.end_text
            yield ir.Text(text.removesuffix(end) if end else text)
            yield from node.end
        else:
            yield ir.Text(json.dumps(text, ensure_ascii=False) if node.encoding == "json" else repr(text))

    def _by_automaton(self, dfa: Dfa) -> str:
        """A walk through the automaton, which after some steps takes the shortest way to an end."""
        left, state, text = _distances(dfa), 0, ""
        steps = self.random.randint(0, _STEPS)
        while True:
            if state in dfa.accepting and (len(text) >= steps or not dfa.edges[state]):
                return text
            edges = dfa.edges[state]
            if len(text) >= steps:
                edges = (min(edges, key=lambda edge: left[edge[1]]),)
            ranges, state = self.random.choice(edges)
            text += self._letter(ranges)


def _inside(ranges: Ranges, letter: str) -> bool:
    return any(low <= ord(letter) <= high for low, high in ranges)


def _size(node: Ir) -> int:
    """About how large what a node writes is."""
    if isinstance(node, (ir.Seq, ir.Alt)):
        return 1 + len(node.items if isinstance(node, ir.Seq) else node.options)
    return 9 if isinstance(node, (ir.Ref, ir.Order)) else 1


@lru_cache(maxsize=64)
def _automaton(node: ir.Lang) -> Dfa:
    found = build(node)
    if found is None:
        raise TooLarge
    return found


@lru_cache(maxsize=64)
def _distances(dfa: Dfa) -> dict[int, int]:
    """From each state, the fewest steps to an end."""
    left = dict.fromkeys(dfa.accepting, 0)
    changed = True
    while changed:
        changed = False
        for state, edges in enumerate(dfa.edges):
            nearest = min((left[to] + 1 for _, to in edges if to in left), default=None)
            if nearest is not None and nearest < left.get(state, nearest + 1):
                left[state], changed = nearest, True
    return left
