"""Checks whether a grammar generates a text. It uses the tree from which all dialects are written.

A set of positions goes through the tree: each node replaces it by the positions at which the node can end. Recursive
rules are entered once for each position, so the work is bounded by the size of the tree and of the text.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

from ...answers.format import Turn
from ...errors import RequestError
from ...grammar import ir
from ...grammar.ir import Ir
from ...grammar.reading.read import Reading, Request, read
from ...grammar.regular.automaton import Dfa, build

_SIGNS = 0xF1000
"""From here on, a private character stands for each marker's id."""
_BLANK = re.compile(r"(?: |\r?\n[ \t]*)?")
_STRINGS = {
    "json": re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"'),
    "python": re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\""),
}


def accepts(turn: Turn, *texts: str) -> bool:
    """Whether the turn's grammar generates exactly one of these texts; True if nothing is constrained. A prefix that no
    grammar goes on after, such as a header that was taken for the answer's beginning, counts for nothing."""
    try:
        reading = reading_of(turn)
    except RequestError:
        reading = reading_of(turn._replace(prefix=""))
    return _takes(reading, texts, {})


def accepts_ids(turn: Turn, *texts: str) -> bool:
    """As `accepts`, for a turn with a tokenizer: a marker that is one token matches only where the text has its sign
    (`marked`), as an engine takes only its id."""
    signs = {marker: chr(_SIGNS + number) for number, marker in enumerate(turn.marker_ids)}
    return _takes(reading_of(turn, turn.marker_ids), texts, signs)


def without_ends(wire: str, stops: Iterable[str]) -> Iterator[str]:
    """The text, and the text without its stops and the space before them: the grammar ends where a stop begins."""
    ends = [stop.strip() for stop in stops if stop.strip()]
    for _ in range(3):
        yield from (wire, wire.rstrip())
        wire = wire.rstrip()
        stop = next((stop for stop in ends if wire.endswith(stop)), None)
        if stop is None:
            return
        wire = wire.removesuffix(stop)
    yield from (wire, wire.rstrip())


def marked(turn: Turn, ids: Sequence[int], texts: Sequence[str]) -> str:
    """The texts of ids, with a sign for each id of a marker."""
    signs = {id: chr(_SIGNS + number) for number, id in enumerate(turn.marker_ids.values())}
    return "".join(signs.get(id, text) for id, text in zip(ids, texts, strict=True))


def reading_of(turn: Turn, marker_ids: Mapping[str, int] | None = None) -> Reading | None:
    """The tree from which all dialects of the turn's grammar are written; None if nothing is constrained."""
    return read(Request(turn, marker_ids or {}))


def _takes(reading: Reading | None, texts: Iterable[str], signs: Mapping[str, str]) -> bool:
    return reading is None or any(
        len(text) in _Matcher(reading, text, signs).after(reading.root, 0) for text in texts
    )


class _Matcher:
    def __init__(self, reading: Reading, text: str, signs: Mapping[str, str]) -> None:
        self.rules = reading.rules
        self.text = text
        self.signs = signs
        self.known: dict[tuple[int, int], set[int]] = {}

    def after(self, node: Ir, at: int) -> set[int]:
        """The positions at which ``node`` can end if it begins at ``at``."""
        if isinstance(node, (ir.Text, ir.TokenRef)):
            text = self._spelt(node)
            return {at + len(text)} if self.text.startswith(text, at) else set()
        if isinstance(node, ir.Chars):
            inside = at < len(self.text) and any(
                low <= ord(self.text[at]) <= high for low, high in node.ranges
            )
            return {at + 1} if inside else set()
        if isinstance(node, ir.Blank):
            found = _BLANK.match(self.text, at)
            return {at, at + 1, found.end()} & set(range(at, found.end() + 1)) if found else {at}
        key = (id(node), at)
        if key not in self.known:
            self.known[key] = set()  # what calls itself at the same place adds nothing
            self.known[key] = self._after(node, at)
        return self.known[key]

    def _spelt(self, node: ir.Text | ir.TokenRef) -> str:
        return self.signs.get(node.text, node.text) if isinstance(node, ir.TokenRef) else node.text

    def _after(self, node: Ir, at: int) -> set[int]:
        if isinstance(node, ir.Seq):
            places = {at}
            for item in node.items:
                places = {end for place in places for end in self.after(item, place)}
            return places
        if isinstance(node, ir.Alt):
            return {end for option in node.options for end in self.after(option, at)}
        if isinstance(node, ir.Rep):
            return self._repeated(node, at)
        if isinstance(node, ir.Shared):
            return self.after(node.node, at)
        if isinstance(node, ir.Ref):
            return self.after(self.rules[node.name], at)
        if isinstance(node, ir.Order):
            return self.after(_unfolded(node), at)
        if isinstance(node, ir.Lang):
            return self._string(node, at)
        assert isinstance(node, ir.Free)
        return set(range(at, len(self.text) + 1))

    def _repeated(self, node: ir.Rep, at: int) -> set[int]:
        places, found, count = {at}, {at} if node.least == 0 else set(), 0
        seen = set(places)
        while places and (node.most is None or count < node.most):
            count += 1
            places = {end for place in places for end in self.after(node.node, place)}
            if count >= node.least:
                found |= places
            if count > node.least:
                places -= seen
            seen |= places
        return found

    def _string(self, node: ir.Lang, at: int) -> set[int]:
        dfa = _dfa(node)
        if dfa is None:
            return set()
        if node.encoding == "raw":
            end = "".join(map(self._spelt, node.end))
            places = (at + count for count in self._accepted(dfa, self.text[at:]))
            return {place for place in places if self.text.endswith(end, at, place)}
        literal = _STRINGS[node.encoding].match(self.text, at)
        if literal is None:
            return set()
        inside = (
            json.loads(literal[0], strict=False) if node.encoding == "json" else ast.literal_eval(literal[0])
        )
        return {literal.end()} if len(inside) in _accepted(dfa, inside) else set()

    def _accepted(self, dfa: Dfa, text: str) -> set[int]:
        """As `_accepted`, where the automaton has the text of each sign."""
        if not self.signs:
            return _accepted(dfa, text)
        spelt = {sign: marker for marker, sign in self.signs.items()}
        parts = [spelt.get(letter, letter) for letter in text]
        found = _accepted(dfa, "".join(parts))
        ends = accumulate(map(len, parts), initial=0)
        return {count for count, end in enumerate(ends) if end in found}


def _accepted(dfa: Dfa, text: str) -> set[int]:
    """After how many characters the automaton accepts."""
    state, found = 0, {0} if 0 in dfa.accepting else set()
    for count, character in enumerate(text, 1):
        code = ord(character)
        following = (
            to for ranges, to in dfa.edges[state] if any(low <= code <= high for low, high in ranges)
        )
        state = next(following, -1)
        if state < 0:
            break
        if state in dfa.accepting:
            found.add(count)
    return found


@lru_cache(maxsize=256)
def _dfa(node: ir.Lang) -> Dfa | None:
    return build(node)


@lru_cache(maxsize=256)
def _unfolded(node: ir.Order) -> Ir:
    return node.unfold()
