"""Plain text as xgrammar compiles it fast: which states of an automaton become ``TagDispatch``.

Strategy: when xgrammar compiles a rule, it reads the whole vocabulary in each of its states: 40 ms with 150,000 tokens.
In a ``TagDispatch`` it does so once for each text that the rule looks for. So a state to which nearly every character
leads back, the *home* of plain text, is written as one: texts that lead nowhere from there are excluded, and those that
lead to a state unlike home are triggers, with the rule of that state after them.

Another rule may lead into the midst of such a text, as a word that opens a call and then ``<|`` do. That state becomes
a ``TagDispatch`` too, which also looks for the rest of the text (``tool_call>``), wherever it comes. So it takes less
than the state does: the rest of a marker, without its beginning, is left out of the text after such a place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...kept import Kept
from ..ir import ANY, Ranges, charset, complement, overlap
from ..regular.dfa import Dfa, Edges

_FEW = 4
"""So many characters that lead to one state each begin a text of their own. More, as a tool's name has, are a state
unlike home."""
_IN_PROSE = re.compile(r".{1,3}|[^<>|\]]{1,8}", re.DOTALL).fullmatch
"""The rest of a text that prose may well have without its beginning, such as `name"` of a key."""
_UNLIKE_HOME = 16
"""The most characters that do not lead from home to itself."""
_MOST = 64
"""The most texts that one rule looks for."""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """What plain text is from one state on. ``excluded``: the texts that it has none of. ``triggers``: the texts that
    lead to another state, with its number."""

    excluded: tuple[str, ...]
    triggers: tuple[tuple[str, int], ...]


class Dispatcher:
    """The states of an automaton that take plain text, but for a few texts."""

    def __init__(self, dfa: Dfa) -> None:
        self.dfa = dfa
        self.rows = [(*edges, (complement(charset(_ranges(edges))), -1)) for edges in dfa.edges]
        """The moves of each state, one for each character; to -1: the text is refused."""
        self.inside: dict[int, int] = {}
        """The states in the midst of a text that is looked for, each with its home."""
        self.homes = {state for state in dfa.accepting if self._is_home(state)}
        self.found: dict[int, Dispatch] = {}
        """The homes, as far as they look for a few texts."""
        for home in self.homes:
            found = self._dispatch(home, home)
            if found is not None:
                self.found[home] = found
        self.entered: dict[int, int] = {}
        """The states inside that other rules lead to, each with its home."""
        self.rests: dict[int, list[Dispatch]] = {}
        """What is looked for after these, by their homes; and ``joined``, with what is looked for from home."""
        if self.found:
            self._enter()
        self.joined = {home: _joined(rests, self.found[home]) for home, rests in self.rests.items()}

    def _enter(self) -> None:
        """Finds the states inside that rules lead to: first those that any text may lead to, then those that a word
        which opens calls must come before. There the rest of any text may be looked for."""
        todo, rare = [0], list[int]()
        seen = {0}
        begun = 0 in self.inside and 0 not in self.homes
        """Whether the text was begun before, in the midst of one that is looked for: rules tell exactly how it goes
        on."""
        for states, common in ((todo, True), (rare, False)):
            for state in states:
                for text, then in self._leads_to(state, common, begun and common):
                    if then not in seen:
                        (rare if len(text) > _FEW else states).append(then)
                        seen.add(then)

    def _leads_to(self, state: int, common: bool, exact: bool) -> Iterator[tuple[str, int]]:
        """The texts and states to which a state leads, as it is written."""
        home = self.inside.get(state, -1)
        rest = self._dispatch(state, home) if home in self.found and not exact else None
        if rest is not None and not (common and any(map(_IN_PROSE, rest.excluded))):
            self.entered[state] = home
            self.rests.setdefault(home, []).append(rest)
        elif state not in self.found:
            yield from (("", then) for _, then in self.dfa.edges[state])
            return
        for found in (rest, self.found.get(home if state in self.entered else state)):
            if found is not None:
                yield from found.triggers

    def known_as(self, state: int) -> int:
        """The same number for states that are written alike."""
        home = self.entered.get(state)
        return state if home is None else -1 - home

    def plain(self, state: int) -> Dispatch | None:
        """The state as plain text; None if it must be a rule. Equal for all states inside the texts of one home."""
        home = self.entered.get(state)
        return self.found.get(state) if home is None else self.joined[home]

    def _is_home(self, state: int) -> bool:
        return any(
            then == state and _size(complement(ranges)) <= _UNLIKE_HOME for ranges, then in self.rows[state]
        )

    def _dispatch(self, start: int, home: int) -> Dispatch | None:
        """The texts that lead from ``start`` elsewhere than from ``home``, or from home elsewhere than home; None if
        there are others than a few texts."""
        ends = {text for text, _ in self.found[home].triggers} if home in self.found else set()
        excluded: list[str] = []
        triggers: dict[str, int] = {}
        places = [("", start, home)]
        """Texts, each with the states where it leads from ``start`` and from home."""
        for text, state, before in places:
            moves = self._other_moves(state, before, start == home and not text)
            if (
                state not in self.dfa.accepting
                or any(
                    then == state
                    or _size(ranges) > (1 if self._loops(then, usually) else _FEW)
                    or (start != home and not self._within(then, usually))
                    for ranges, then, usually in moves
                )
                or any(text[at:] in ends for at in range(len(text)))
            ):
                if not text:
                    return None
                triggers[text] = state
                ends.add(text)
                continue
            if start == home and (len(text) > 1 or not state):
                self.inside.setdefault(state, home)
            for ranges, then, usually in moves:
                for char in _characters(ranges):
                    if then < 0:
                        excluded.append(text + char)
                    elif then in self.homes:
                        triggers[text + char] = then
                        ends.add(text + char)
                    else:
                        places.append((text + char, then, usually))
            if len(triggers) + len(excluded) > _MOST or len(places) > _MOST * _MOST:
                return None
        return Dispatch(tuple(excluded), tuple(triggers.items()))

    def _loops(self, state: int, before: int) -> bool:
        """Whether a state leads to itself where ``before`` leads elsewhere."""
        return state >= 0 and any(then == state for _, then, _ in self._other_moves(state, before, False))

    def _other_moves(self, state: int, before: int, home: bool) -> list[tuple[Ranges, int, int]]:
        """The moves of a state that lead elsewhere than those of ``before``, each with where that one leads."""
        usual = ((ANY, before),) if home else self.rows[before]
        return [
            (both, then, usually)
            for ranges, then in self.rows[state]
            for others, usually in usual
            if then != usually and (both := overlap(ranges, others))
        ]

    def _within(self, state: int, other: int) -> bool:
        """Whether ``other`` takes every text that ``state`` takes."""
        pairs = [(state, other)]
        seen = set(pairs)
        for one, two in pairs:
            if one < 0 or one == two:
                continue
            if two < 0 or (one in self.dfa.accepting and two not in self.dfa.accepting):
                return False
            for _, then, usually in self._other_moves(one, two, False):
                if (then, usually) not in seen:
                    seen.add((then, usually))
                    pairs.append((then, usually))
        return True


_KNOWN: Kept[tuple[Dfa, Dispatcher]] = Kept(8_000_000)
"""By the identities of the automata, which are kept with them."""


def states_of(dfa: Dfa) -> Dispatcher:
    """The states of an automaton, found once."""
    known = _KNOWN.get(id(dfa))
    if known is None:
        known = dfa, Dispatcher(dfa)
        _KNOWN.add(id(dfa), known, 2 * dfa.bytes)
    return known[1]


def _joined(rests: list[Dispatch], home: Dispatch) -> Dispatch:
    """Plain text that has none of the texts of all. A trigger that is part of another text is excluded, unless it ends
    a trigger that leads to the same state."""
    triggers: dict[str, int] = {}
    excluded = {text for found in (*rests, home) for text in found.excluded}
    for found in (*rests, home):
        for text, then in found.triggers:
            if triggers.setdefault(text, then) != then:
                excluded.add(text)
    texts = {*excluded, *triggers}
    for trigger, then in triggers.items():
        more = [text for text in texts if trigger in text and text != trigger]
        if not all(text.endswith(trigger) and triggers.get(text) == then for text in more):
            excluded.add(trigger)
    left = {*excluded, *triggers}
    least = sorted(text for text in left if not any(part in text and part != text for part in left))
    return Dispatch(
        tuple(text for text in least if text in excluded),
        tuple((text, triggers[text]) for text in least if text not in excluded),
    )


def _ranges(edges: Edges) -> Iterator[tuple[int, int]]:
    return (span for ranges, _ in edges for span in ranges)


def _size(ranges: Ranges) -> int:
    return sum(high - low + 1 for low, high in ranges)


def _characters(ranges: Ranges) -> Iterator[str]:
    return (chr(code) for low, high in ranges for code in range(low, high + 1))
