"""Finite automata over code points. A `Lang` becomes one if an engine has no words for its constraints.

Strategy: every constraint becomes a small lazy machine (a start state, a row of next states, a test for acceptance)
over one shared partition of the characters (classes.py). `build` explores their product, drops the states that never
lead to acceptance, and merges equal states (Hopcroft). It gives up past a limit of states, and takes each step from the
budget before it is done. That text holds no stop before its end is one more constraint. Texts that are excluded one by
one need no product (listed.py), and are taken away at the end.

Invariants: the transitions of a state are disjoint. Every state of a `Dfa` leads to acceptance.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

from ...kept import Kept
from ..budget import Budget
from ..ir import ANY, ANYTHING, Alt, Chars, Ir, Lang, Part, Ranges, Rep, Seq, Shared, Text, children
from .classes import Classes, sets_of
from .counted import counted
from .dfa import Dfa, TooLarge, spend
from .listed import listed_texts, most_states, without_texts

__all__ = ["Dfa", "Matcher", "TooLarge", "build", "states"]

_MOST_POSITIONS = 60_000


class _Machine(Protocol):
    start: Hashable

    def row(self, state: Hashable) -> Sequence[Hashable | None]:
        """The next state for each class of characters."""
        ...

    def accepts(self, state: Hashable) -> bool: ...


class _Positions:
    """A regular grammar by Thompson's construction: positions, the moves between them, and those without a character.

    Texts that stand for one another share their beginnings: a thousand words would else be a thousand places at once.
    """

    def __init__(self, node: Ir, budget: Budget | None = None) -> None:
        self.budget = budget
        self.empty: list[list[int]] = []
        self.moves: list[list[tuple[Ranges, int]]] = []
        first = self._new()
        self.last = self._add(node, first)
        spend(budget, len(self.moves))
        self.start = self.closed([first])

    def _new(self) -> int:
        self.empty.append([])
        self.moves.append([])
        if len(self.moves) > _MOST_POSITIONS:
            raise TooLarge
        return len(self.moves) - 1

    def _add(self, node: Ir, at: int) -> int:
        if isinstance(node, Text):
            for char in node.text:
                then = self._new()
                self.moves[at].append((((ord(char), ord(char)),), then))
                at = then
            return at
        if isinstance(node, Chars):
            then = self._new()
            self.moves[at].append((node.ranges, then))
            return then
        if isinstance(node, Seq):
            for item in node.items:
                at = self._add(item, at)
            return at
        if isinstance(node, Alt):
            return self._choice(node.options, at)
        if isinstance(node, Rep):
            for _ in range(node.least):
                at = self._add(node.node, at)
            if node.most is None:
                loop = self._new()
                self.empty[at].append(loop)
                self.empty[self._add(node.node, loop)].append(loop)
                then = self._new()
                self.empty[loop].append(then)
                return then
            then = self._new()
            for _ in range(node.most - node.least):
                self.empty[at].append(then)
                at = self._add(node.node, at)
            self.empty[at].append(then)
            return then
        if isinstance(node, Shared):
            return self._add(node.node, at)
        raise TypeError(f"not regular: {type(node).__name__}")

    def _choice(self, options: tuple[Ir, ...], at: int) -> int:
        then, words = self._new(), self._new()
        self.empty[at].append(words)
        after: dict[tuple[int, str], int] = {}
        for option in options:
            if isinstance(option, Text):
                end = words
                for char in option.text:
                    begin, end = end, after.get((end, char), -1)
                    if end < 0:
                        end = after[begin, char] = self._add(Text(char), begin)
            else:
                begin = self._new()
                self.empty[at].append(begin)
                end = self._add(option, begin)
            self.empty[end].append(then)
        return then

    def closed(self, positions: Iterable[int]) -> frozenset[int]:
        """The positions that are reached without a character. Only those are kept that have a move on a character, and
        the last."""
        seen = set(positions)
        todo = list(seen)
        for place in todo:
            for then in self.empty[place]:
                if then not in seen:
                    seen.add(then)
                    todo.append(then)
        spend(self.budget, len(todo))
        return frozenset([place for place in todo if self.moves[place] or place == self.last])

    def always(self, end: str = "") -> frozenset[int]:
        """The positions from which every text is in the grammar; none if a text may come there within ``end``, which
        follows it and is no part of it."""
        found = frozenset(
            place
            for place, moves in enumerate(self.moves)
            if any(ranges == ANY and place in self.closed([then]) for ranges, then in moves)
            and self.last in self.closed([place])
        )
        here = frozenset(range(len(self.moves))) - found if found else found
        for point in map(ord, end):
            here = self.closed(
                then
                for place in here
                for ranges, then in self.moves[place]
                if any(low <= point <= high for low, high in ranges)
            )
            if here & found:
                return frozenset()
        return found


State: TypeAlias = frozenset[int]
"""The positions that a text reaches."""


class Matcher:
    """Tests texts by a regular grammar. The time grows only with the length of the text."""

    def __init__(self, node: Ir) -> None:
        self.positions = _Positions(node)
        self.known: dict[tuple[State, str], State] = {}

    @property
    def start(self) -> State:
        """The state before any text."""
        return self.positions.start

    def matches(self, text: str) -> bool:
        """Whether the whole text is in the grammar."""
        return self.positions.last in self.after(self.start, text)

    def after(self, state: State, text: str) -> State:
        """The state after ``text``; empty if no text that begins so is in the grammar."""
        for char in text:
            key = (state, char)
            then = self.known.get(key)
            if then is None:
                point = ord(char)
                then = self.positions.closed(
                    target
                    for position in state
                    for ranges, target in self.positions.moves[position]
                    if any(low <= point <= high for low, high in ranges)
                )
                if len(self.known) < _MOST_POSITIONS:
                    self.known[key] = then
            state = then
        return state


class _Nfa:
    """A regular grammar. Its sets of positions are computed when the walk meets them."""

    def __init__(
        self, node: Ir, positive: bool, classes: Classes, end: str = "", budget: Budget | None = None
    ) -> None:
        self.positions = _Positions(Seq((node, Text(end))) if end else node, budget)
        self.positive = positive
        self.budget = budget
        self.start: Hashable = self.positions.start
        self.count = len(classes.samples)
        self.moves = [
            [(classes.of(ranges), then) for ranges, then in moves] for moves in self.positions.moves
        ]
        self.steps = [1 + sum(len(of) for of, _ in moves) for moves in self.moves]
        self.closed: dict[frozenset[int], frozenset[int]] = {}
        # Text that has come here is refused, whatever follows. The positions of `node` have the same numbers alone.
        self.always = frozenset() if positive else _Positions(node, budget).always(end)
        self.rows: dict[Hashable, Sequence[Hashable | None]] = {}

    def row(self, state: Hashable) -> Sequence[Hashable | None]:
        found = self.rows.get(state)
        if found is None:
            found = self.rows[state] = self._row(state)
        return found

    def _row(self, state: Hashable) -> Sequence[Hashable | None]:
        assert isinstance(state, frozenset)
        spend(self.budget, sum(self.steps[position] for position in state) >> 2)
        targets: list[set[int] | None] = [None] * self.count
        for position in state:
            for classes, then in self.moves[position]:
                for number in classes:
                    found = targets[number]
                    if found is None:
                        targets[number] = {then}
                    else:
                        found.add(then)
        nothing = None if self.positive else _NOWHERE
        row = [nothing if found is None else self._closed(frozenset(found)) for found in targets]
        return [None if then and then & self.always else then for then in row] if self.always else row

    def _closed(self, positions: frozenset[int]) -> frozenset[int]:
        found = self.closed.get(positions)
        if found is None:
            found = self.closed[positions] = self.positions.closed(positions)
        return found

    def accepts(self, state: Hashable) -> bool:
        assert isinstance(state, frozenset)
        return (self.positions.last in state) is self.positive


_NOWHERE: frozenset[int] = frozenset()


class _Divisible:
    """Decimal integers, perhaps negative, that ``divisor`` divides. ``begun``: the digits that were written before."""

    def __init__(self, divisor: int, samples: list[int], begun: str) -> None:
        self.divisor = divisor
        self.samples = samples
        self.start: Hashable = int(begun.lstrip("-") or "0") % divisor

    def row(self, state: Hashable) -> Sequence[Hashable | None]:
        assert isinstance(state, int)
        return [
            state if point == 45 else (state * 10 + point - 48) % self.divisor if 48 <= point <= 57 else None
            for point in self.samples
        ]

    def accepts(self, state: Hashable) -> bool:
        return state == 0


def build(lang: Lang, limit: int = 2_000, budget: Budget | None = None) -> Dfa | None:
    """The automaton of a language and its end; None if the language is empty. Raises `TooLarge` past ``limit`` states,
    or if ``budget`` has too little work left."""
    found, texts = _but_texts(lang, limit, budget)
    return without_texts(found, texts, limit, budget) if found is not None and texts else found


def states(lang: Lang, limit: int, budget: Budget) -> int:
    """About how many states that automaton has, 0 if the language is empty. Raises `TooLarge` where `build` does. No
    text is taken away for that, as a dialect may write none of the automata."""
    found, texts = _but_texts(lang, limit, budget)
    if found is None:
        return 0
    return most_states(found, texts, limit, budget) if texts else len(found.edges)


def _but_texts(lang: Lang, limit: int, budget: Budget | None) -> tuple[Dfa | None, list[str]]:
    """The automaton of a language before texts are taken away, and the texts that it excludes one by one. Listed names
    are new in each request."""
    texts: list[str] = []
    parts: list[Part] = []
    for part in lang.parts:
        excluded = None if part.positive else listed_texts(part)
        if excluded is None:
            parts.append(part)
        else:
            texts += [text + lang.end_text for text in excluded]
    if texts and not parts and not (lang.least or lang.stops or lang.end) and lang.most is None:
        return _ANY_TEXT, texts
    return _known(replace(lang, parts=tuple(parts)) if texts else lang, limit, budget), texts


_ANY_TEXT = Dfa(frozenset([0]), (((ANY, 0),),))
_KEPT: Kept[tuple[Lang, int, int, Dfa | None, bool]] = Kept(16_000_000)
"""Automata, each with its language, whose nodes are kept for as long as their identities are in the key, with the limit
that it was made within, with the work to make it, and with whether it is past the limit."""


def _bytes_of(lang: Lang) -> int:
    """About the bytes of a language and its nodes."""
    nodes = [part.node for part in lang.parts]
    for node in nodes:
        nodes += children(node)
    return 300 * (8 + len(nodes))


def _known(lang: Lang, limit: int, budget: Budget | None) -> Dfa | None:
    """As `build`, once for each language: first the schemas' compiler asks how large it is, then a writer for it."""
    parts = tuple([(id(part.node), part.positive, part.divisor, part.begun) for part in lang.parts])
    key = parts, lang.least, lang.most, lang.stops, lang.end_text
    known = _KEPT.get(key)
    if known is not None:
        _, within, work, found, past = known
        if limit <= within if past else limit >= within or found is None or len(found.edges) <= limit:
            spend(budget, work)
            if past:
                raise TooLarge
            return found
    budget = budget or Budget(work=sys.maxsize)
    before = budget.work
    found, past = None, False
    try:
        parted = lang.parts or lang.stops or lang.end
        found = _finish(*_explored(lang, limit, budget)) if parted else _ANY_TEXT
        if found is not None and (lang.least or lang.most is not None):
            end = len(lang.end_text)
            most = None if lang.most is None else lang.most + end
            found = counted(found, lang.least + end, most, limit, budget)
    except TooLarge:
        past = True
        if budget.work < 0:  # another request may have enough
            raise
    size = _bytes_of(lang) + (found.bytes if found else 0)
    _KEPT.add(key, (lang, limit, before - budget.work, found, past), size)
    if past:
        raise TooLarge
    return found


def _explored(lang: Lang, limit: int, budget: Budget | None) -> tuple[list[list[int]], set[int], Classes]:
    """The states that are reached: where each class of characters leads (-1: nowhere), and which are accepting."""
    end = lang.end_text
    sets: dict[Ranges, None] = {}
    for part in lang.parts:
        sets_of(part.node, sets)
        if part.divisor:
            sets.update(dict.fromkeys(((point, point),) for point in range(45, 59)))
    for text in (*lang.stops, end):
        sets_of(Text(text), sets)
    classes = Classes(sets, lambda steps: spend(budget, steps >> 2))
    machines: list[_Machine] = []
    for part in lang.parts:
        machines.append(
            _Divisible(part.divisor, classes.samples, part.begun)
            if part.divisor
            else _Nfa(part.node, part.positive, classes, end, budget)
        )
    if lang.stops or end:  # no stop ends before the end, which is one of them
        ends = Alt(tuple(map(Text, (*lang.stops, end) if end else lang.stops)))
        more = (Chars(ANY),) if end else ()
        machines.append(_Nfa(Seq((ANYTHING, ends, *more, ANYTHING)), False, classes, "", budget))
    if end and not any(part.positive for part in lang.parts):
        machines.append(_Nfa(ANYTHING, True, classes, end, budget))
    start = tuple(machine.start for machine in machines)
    numbers: dict[tuple[Hashable, ...], int] = {start: 0}
    table: list[list[int]] = []
    for state in (states := [start]):
        row: list[int] = []
        spend(budget, len(classes.samples))
        for key in zip(
            *(machine.row(part) for machine, part in zip(machines, state, strict=True)), strict=True
        ):
            if None in key:
                row.append(-1)
                continue
            number = numbers.get(key)
            if number is None:
                number = numbers[key] = len(states)
                if number >= limit:
                    raise TooLarge
                states.append(key)
            row.append(number)
        table.append(row)
    accepting = {
        number
        for number, state in enumerate(states)
        if all(machine.accepts(part) for machine, part in zip(machines, state, strict=True))
    }
    return table, accepting, classes


def _finish(table: list[list[int]], accepting: set[int], classes: Classes) -> Dfa | None:
    """The automaton without dead states, with equal states merged."""
    before: list[list[int]] = [[] for _ in table]
    for state, row in enumerate(table):
        for then in set(row):
            if then >= 0:
                before[then].append(state)
    live = set(accepting)
    todo = list(accepting)
    while todo:
        for state in before[todo.pop()]:
            if state not in live:
                live.add(state)
                todo.append(state)
    if 0 not in live:
        return None
    if len(live) < len(table):
        table = [[then if then in live else -1 for then in row] for row in table]
    group = _merged(table, live, accepting)
    order: dict[int, int] = {}
    chosen: list[int] = []
    todo = [0]
    while todo:
        state = todo.pop()
        if group[state] in order:
            continue
        order[group[state]] = len(chosen)
        chosen.append(state)
        todo.extend(then for then in reversed(table[state]) if then >= 0)
    edges = []
    for state in chosen:
        to: dict[int, list[int]] = {}
        for number, then in enumerate(table[state]):
            if then >= 0:
                to.setdefault(order[group[then]], []).append(number)
        edges.append(tuple((classes.union(tuple(numbers)), then) for then, numbers in to.items()))
    return Dfa(frozenset(order[group[state]] for state in chosen if state in accepting), tuple(edges))


def _merged(table: list[list[int]], live: set[int], accepting: set[int]) -> list[int]:
    """The class of each live state; -1 for the others. Equal states share a class (Hopcroft: n log n)."""
    columns = {
        tuple(column): None for column in zip(*table, strict=True)
    }  # classes of characters that act alike
    into: list[dict[int, list[int]]] = []
    for column in columns:
        sources: dict[int, list[int]] = {}
        for state, then in enumerate(column):
            if then >= 0 and state in live:
                sources.setdefault(then, []).append(state)
        into.append(sources)
    dead = [state for state in live if -1 in table[state]]
    if dead:  # missing moves lead to a state of their own
        for sources, column in zip(into, columns, strict=True):
            sources[-1] = [state for state in dead if column[state] < 0]
    blocks: list[set[int]] = [block for block in (live & accepting, live - accepting, {-1}) if block]
    place = {state: number for number, block in enumerate(blocks) for state in block}
    waiting = set(range(len(blocks)))
    while waiting:
        splitter = list(blocks[waiting.pop()])
        for sources in into:
            touched: dict[int, set[int]] = {}
            for then in splitter:
                for state in sources.get(then, ()):
                    touched.setdefault(place[state], set()).add(state)
            for number, part in touched.items():
                block = blocks[number]
                if len(part) == len(block):
                    continue
                block -= part
                new = len(blocks)
                blocks.append(part)
                for state in part:
                    place[state] = new
                waiting.add(new if number in waiting or len(part) <= len(block) else number)
    return [place[state] if state in live else -1 for state in range(len(table))]
