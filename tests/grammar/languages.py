"""A grammar and its parser, walked side by side: all that the grammar generates, and what is read of it.

Strategy: where tools and schemas allow one value each, a grammar is a regular language. It becomes an automaton
(`Automaton`); a mark stands after each call. The parser's machine has few places, too, once its positions in the text
are left out (`standing`). So the pairs of the two that one text reaches are few, and a `Walk` visits each of them once.
A pair also knows what a request asks of a text (`Seen`). Where the grammar may end, a copy of the machine ends.

So what holds for all pairs holds for every text, however long. The characters that neither the grammar nor the format
tells apart are one class. Two things bound the walk. White space in JSON is one space. And where the grammar has any
text while the machine holds it as the beginning of something, so many characters of it are walked (`MOST_HELD`).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from chatparsers.core.machine import instructions as m
from chatparsers.core.machine.fences import after
from chatparsers.core.machine.instructions import Item, Line
from chatparsers.core.machine.machine import Machine
from chatparsers.core.machine.value import Transcoder
from chatparsers.grammar import ir
from chatparsers.grammar.ir import Ir
from chatparsers.grammar.reading.residual import residual
from chatparsers.grammar.regular.automaton import build
from chatparsers.grammar.regular.classes import Classes

CALL_OVER = "\ue000"
"""The mark after each call. It is no text."""
OVER = ir.Chars(((ord(CALL_OVER), ord(CALL_OVER)),))
ORDINARY = ' \n"{[`x7é'
"""What formats of any kind tell apart, and a letter, a digit and a letter beyond ASCII."""
MOST_HELD = 2
_MOST_AHEAD = 2


class Way(NamedTuple):
    """A character of an automaton, and the state after it. ``any``: most other characters lead there, too."""

    char: str
    then: int
    any: bool


class Automaton:
    """A grammar as places, with moves on characters and moves on nothing. ``more``: characters that are classes of
    their own."""

    def __init__(self, root: Ir, rules: Mapping[str, Ir], more: str) -> None:
        self.rules = rules
        self.nothing: list[list[int]] = []
        self.moves: list[list[tuple[ir.Ranges, int]]] = []
        self.named: dict[tuple[str, int], int] = {}
        begin, self.end = self.place(), self.place()
        self.add(root, begin, self.end)
        sets = {ranges for moves in self.moves for ranges, _ in moves} | {OVER.ranges}
        sets.update(((ord(char), ord(char)),) for char in more)
        classes = Classes(sets, lambda steps: None)
        self.chars = [chr(point) for point in classes.samples]
        self.over = self.chars.index(CALL_OVER)
        self.numbers = {ranges: [*classes.of(ranges)] for ranges in sets}
        self.states: dict[frozenset[int], int] = {}
        self.sets: list[frozenset[int]] = []
        self.rows: list[list[Way] | None] = []
        self.start = self.state({begin})

    def place(self) -> int:
        self.nothing.append([])
        self.moves.append([])
        return len(self.moves) - 1

    def add(self, node: Ir, at: int, to: int) -> None:
        """The ways from one place to another that spell a text of ``node``."""
        if isinstance(node, (ir.Text, ir.TokenRef)):
            for char in node.text:
                then = self.place()
                self.moves[at].append((((ord(char), ord(char)),), then))
                at = then
            self.nothing[at].append(to)
        elif isinstance(node, ir.Chars):
            self.moves[at].append((node.ranges, to))
        elif isinstance(node, ir.Seq):
            self.nothing[self.one_by_one(node.items, at)].append(to)
        elif isinstance(node, ir.Alt):
            for option in node.options:
                self.add(option, at, to)
        elif isinstance(node, ir.Rep):
            self.repeated(node, at, to)
        elif isinstance(node, ir.Shared):
            self.add(node.node, at, to)
        elif isinstance(node, ir.Blank):
            self.add(ir.Text(" "), at, to)
        elif isinstance(node, ir.Order):
            self.add(node.unfold(), at, to)
        elif isinstance(node, ir.Ref):
            begin = self.named.get((node.name, to))
            if begin is None:
                begin = self.named[node.name, to] = self.place()
                self.add(self.rules[node.name], begin, to)
            self.nothing[at].append(begin)
        elif isinstance(node, ir.Lang):
            self.text(node, at, to)
        elif isinstance(node, ir.Free):
            self.nothing[at].append(self.free(node, to, {}))
        else:
            raise TypeError(f"no automaton of {type(node).__name__}")

    def one_by_one(self, items: tuple[Ir, ...], at: int) -> int:
        """The place after the items."""
        for item in items:
            then = self.place()
            self.add(item, at, then)
            at = then
        return at

    def repeated(self, node: ir.Rep, at: int, to: int) -> None:
        at = self.one_by_one((node.node,) * node.least, at)
        if node.most is None:
            loop = self.place()
            self.nothing[at].append(loop)
            self.add(node.node, loop, loop)
            at = loop
        for _ in range((node.most or 0) - node.least):
            self.nothing[at].append(to)
            at = self.one_by_one((node.node,), at)
        self.nothing[at].append(to)

    def text(self, node: ir.Lang, at: int, to: int) -> None:
        assert node.encoding == "raw", "a JSON string of more than one value"
        made = build(node)
        if made is None:
            return
        places = [self.place() for _ in made.edges]
        self.nothing[at].append(places[0])
        for place, edges in zip(places, made.edges, strict=True):
            self.moves[place] += [(ranges, places[then]) for ranges, then in edges]
        for place in made.accepting:
            self.nothing[places[place]].append(to)

    def free(self, node: Ir, to: int, begun: dict[tuple[int | None, bool], int]) -> int:
        """Where text begins, in which calls follow wherever a trigger begins."""
        if not isinstance(node, ir.Free):
            begin = self.place()
            self.add(node, begin, to)
            return begin
        key = node.most, node.left
        if key not in begun:
            begun[key] = begin = self.place()
            self.add(node.last, begin, to)
            for trigger in node.triggers:
                rest = residual(node.calls, trigger)
                if rest is not None:
                    then = self.place()
                    self.add(ir.seq(replace(node.text, end=(ir.Text(trigger),)), rest), begin, then)
                    self.nothing[then].append(self.free(node.after, to, begun))
        return begun[key]

    def state(self, places: set[int]) -> int:
        """The number of the state that stands for these places, and those reached from them on nothing."""
        todo = list(places)
        while todo:
            for then in self.nothing[todo.pop()]:
                if then not in places:
                    places.add(then)
                    todo.append(then)
        key = frozenset(place for place in places if self.moves[place] or place == self.end)
        if key not in self.states:
            self.states[key] = len(self.sets)
            self.sets.append(key)
            self.rows.append(None)
        return self.states[key]

    def ends(self, state: int) -> bool:
        return self.end in self.sets[state]

    def ways(self, state: int) -> list[Way]:
        """Each character that may come."""
        row = self.rows[state]
        if row is None:
            then: dict[int, set[int]] = {}
            for place in self.sets[state]:
                for ranges, to in self.moves[place]:
                    for number in self.numbers[ranges]:
                        if number != self.over or ranges == OVER.ranges:
                            then.setdefault(number, set()).add(to)
            found = [(self.chars[number], self.state(places)) for number, places in sorted(then.items())]
            (usual, count), *_ = Counter(to for _, to in found).most_common(1) or [(-1, 0)]
            row = self.rows[state] = [Way(char, to, to == usual and count > 8) for char, to in found]
        return row


def standing(machine: Machine) -> Hashable:
    """Where a machine is, but for how far it is in the text."""
    first = machine.base - sum(len(raw) for _, raw, _ in machine.trail)
    places = (machine.furthest, machine.drafted, machine.section)
    header = machine.tool, machine.arg, machine.nth, machine.left
    return (
        machine.ip, machine.text, tuple(machine.stack), machine.floor, machine.flags, tuple(machine.trail),
        machine.live, machine.text_region, machine.calling,
        header if machine.calling or machine.trail else None,
        tuple(place - machine.base if place >= first else None for place in places), _state(machine.value),
    )  # fmt: skip


def _state(found: Any) -> Hashable:
    """The state of a value's reader, without what its last scan gave."""
    if isinstance(found, Transcoder):
        slots = found.__getstate__()[1]
        return type(found), *(_state(slots[name]) for name in slots if name not in ("out", "plain"))
    if isinstance(found, (list, tuple)):
        return tuple(map(_state, found))
    return found if isinstance(found, (str, int, frozenset, type(None))) else id(found)


class Place:
    """Where a machine is, and where in a ``line`` the text. ``then``: what it makes of a character there; ``over``: of
    the end."""

    def __init__(self, machine: Machine, line: Line) -> None:
        self.machine, self.line = machine, line
        self.then: dict[str, tuple[list[Item], Place]] = {}
        self.over: list[Item] | None = None


class Reading:
    """The places of the machines of one program."""

    def __init__(self, machine: Machine) -> None:
        self.places: dict[Hashable, Place] = {}
        self.start = self.at(machine, ("", ""))

    def at(self, machine: Machine, line: Line) -> Place:
        return self.places.setdefault((standing(machine), line), Place(machine, line))

    def after(self, place: Place, char: str) -> tuple[list[Item], Place]:
        found = place.then.get(char)
        if found is None:
            machine = place.machine.copy()
            items = machine.feed(char, line=lambda: place.line)
            found = place.then[char] = items, self.at(machine, after(place.line, items))
        return found

    def over(self, place: Place) -> list[Item]:
        if place.over is None:
            place.over = place.machine.copy().finish(line=lambda: place.line)
        return place.over


class Seen(NamedTuple):
    """What was read of a text: ``calls`` (two count as many), how many of them are ``ahead`` of the grammar's marks,
    whether there was content and a thought, and the ``arguments`` of the open call. ``held``: how many characters of
    any text the machine holds."""

    calls: int = 0
    ahead: int = 0
    content: bool = False
    thought: bool = False
    arguments: str = ""
    held: int = 0


_Pair: TypeAlias = tuple[int, Place, Seen]


class Walk:
    """A walk over the pairs of a grammar and its parser. ``wanted``: the arguments of each call; ``wrong``: what a text
    that ends so is not, as the request asks for it. ``limit``: the most pairs."""

    def __init__(
        self, grammar: Automaton, reading: Reading, wanted: str, wrong: Callable[[Seen], str], limit: int
    ) -> None:
        self.grammar, self.reading, self.wanted, self.wrong = grammar, reading, wanted, wrong
        self.before: dict[_Pair, tuple[_Pair, str] | None] = {}
        self.faults: dict[str, str] = {}
        """Where a text is not read as it is written: what is wrong, and such a text."""
        self.whole = self._walked(limit)
        """Whether all pairs were visited."""

    def _walked(self, limit: int) -> bool:
        begin = self.grammar.start, self.reading.start, Seen()
        self.before[begin] = None
        todo = deque([begin])
        while todo:
            pair = todo.popleft()
            state, place, seen = pair
            if self.grammar.ends(state):
                last = self.seen(seen, self.reading.over(place), pair, "", "at the end, ")
                if last is not None and (why := "a call more or less" if last.ahead else self.wrong(last)):
                    self.tell(why, pair)
            for char, then, any in self.grammar.ways(state):
                if char == CALL_OVER:
                    after: _Pair | None = (then, place, seen._replace(ahead=seen.ahead - 1))
                else:
                    after = self.step(pair, char, then, any)
                if after is None or after in self.before:
                    continue
                if abs(after[2].ahead) > _MOST_AHEAD:
                    self.tell("calls that are read as something else, or the contrary", pair, char)
                    continue
                self.before[after] = pair, char
                todo.append(after)
                if len(self.before) > limit:
                    return False
        return True

    def step(self, pair: _Pair, char: str, then: int, any: bool) -> _Pair | None:
        """The pair after a character; None if it is not walked."""
        _, place, before = pair
        items, next = self.reading.after(place, char)
        seen = self.seen(before, items, pair, char) if items else before
        if seen is None:
            return None
        machine = next.machine
        held = 0
        if machine.trail or machine.text:
            held = seen.held + (any and bool(machine.trail or char.isspace()))
        return None if held > MOST_HELD else (then, next, seen._replace(held=held))

    def seen(self, before: Seen, items: list[Item], pair: _Pair, char: str, when: str = "") -> Seen | None:
        """What was read with these items, too. Tells of their diagnostics, and of other arguments than the grammar's:
        then None, as nothing follows from that."""
        calls, ahead, content, thought, arguments, held = before
        for kind, raw, value in items:
            if kind == m.NOTE:
                self.tell(f"{when}{value[0]}", pair, char)
            elif kind == m.CALL_BEGIN:
                calls, ahead, arguments = min(calls + 1, 2), ahead + 1, ""
            elif kind == m.ARGUMENT:
                arguments += "".join((raw if value is None else value).split())
            elif kind == m.ARG_NAME:
                arguments += f'"{value}":'
            elif kind == m.CALL_END:
                if arguments.strip("{}") != self.wanted:
                    self.tell(f"{when}the arguments {arguments}", pair, char)
                    return None
                arguments = ""
            elif raw.strip():
                content = content or kind == m.CONTENT
                thought = thought or kind == m.REASONING
        return Seen(calls, ahead, content, thought, arguments, held)

    def tell(self, why: str, pair: _Pair, char: str = "") -> None:
        if why not in self.faults:
            self.faults[why] = self.spelt(pair) + char

    def spelt(self, pair: _Pair) -> str:
        """A text that comes to a pair."""
        chars: list[str] = []
        while (step := self.before[pair]) is not None:
            pair, char = step
            chars.append(char)
        return "".join(reversed(chars)).replace(CALL_OVER, "")
