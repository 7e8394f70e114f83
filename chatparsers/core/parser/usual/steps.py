"""What usually follows in a call, read in one step: `USUAL` of the machine's table.

A call's markup is nearly always what its template writes: the opener, the name, the way to the next value, the end.
Read one by one, these are a hundred small instructions. `USUAL` compares the window with such a text and does at once
what they would do; if the window holds only its beginning, the machine waits. Nothing in such a text becomes final
before its end, so no event comes later for it.

`texts` reads the texts off the tree, `trial` runs the program over each. The steps of a place are made when the machine
first comes there, so a format whose calls nobody reads costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING

from ...definition import nodes as n
from ...definition.tree import once
from .. import instructions as m
from ..alphabet import Alphabet
from ..code import WHITE
from .texts import JSON_INSIDE, START, Atom, Text, texts
from .trial import Done, place_after, trial

if TYPE_CHECKING:
    from ..instructions import Instruction, Item
    from ..machine import Machine

_MOST_NAME = 99
_NO_WHITE = f"(?=[^{WHITE}])"
_PLAIN = {JSON_INSIDE: r'[^"\\\x00-\x1f]'}
"""Classes of names, and the usual characters of them: a name with an escape is left to the instructions."""

Match = Callable[[str, int], "re.Match[str] | None"]
Begun = tuple[str, "Match | None"]
"""A text of which the window may hold only the beginning, and what matches what comes before it."""


class Step:
    """What the machine does with one of the texts.

    ``items``: the items of the trail. ``names``: of each name, the last one first, where its items are, the group
    that matches it, what finds its items, and its declared names (`Names`). ``longer``: texts of
    earlier steps, of which the window may hold only the beginning though it holds this text.
    """

    __slots__ = (
        "begins",
        "calling",
        "cut",
        "ip",
        "items",
        "longer",
        "names",
        "popped",
        "pushed",
        "top",
    )

    def __init__(self, done: Done, group: str, longer: list[Begun]) -> None:
        self.ip = done.ip
        self.popped = done.popped
        # The lengths of choice points are not needed: a cut has ended all of them.
        self.pushed = [(frame.kind, frame.target, 0, bool(frame.calling)) for frame in done.frames]
        self.calling = done.calling
        self.top = done.top
        self.cut = done.cut
        self.items = list(_merged(done.items))
        places = [place for place, item in enumerate(self.items) if item[0] < 0]
        self.names = [(place, f"{group}_{k}", *self.items[place][2]) for k, place in enumerate(places)][::-1]
        self.begins = any(item[0] == m.ARGS_BEGIN for item in done.items)
        self.longer = longer


class Steps:
    """The steps of one place of the program; ``make`` finds their texts and what they do.

    ``match`` matches the first of these texts that is at a place, with what must follow it; ``last`` does so where
    no more text will come, so that none need follow. ``begun``: texts of which the window may hold only the beginning,
    each with what matches the texts and names before it. ``most``: how long the longest text may be, in characters.
    """

    __slots__ = ("begun", "last", "make", "match", "most", "no_token", "steps")

    def __init__(self, make: Callable[[], Iterable[tuple[tuple[Atom, ...], Done]]], no_token: str) -> None:
        self.make = make
        self.no_token = no_token
        self.match: Match = self._first
        self.last: Match = self._first_last
        self.begun: list[Begun] = []
        self.most = 0
        self.steps: dict[str | None, Step] = {}

    def read(self, machine: Machine, text: str, i: int) -> int:
        """Does what the instructions would do with the text at ``i``, and returns where it ends; -1 if the window holds
        only the beginning of such a text, 0 if the instructions must read it."""
        final = machine.final
        match = self.last(text, i) if final else self.match(text, i)
        step = None if match is None else self.steps[match.lastgroup]
        if step is None and len(text) - i > self.most:
            return 0
        for begun, before in () if final else self.begun if step is None else step.longer:
            at = i
            if before is not None:
                found = before(text, i)
                if found is None:
                    continue
                at = found.end()
            if len(text) - at <= len(begun) and begun.startswith(text[at:]):
                machine.rest = begun[len(text) - at :]
                return -1
        if match is None or step is None:
            return 0
        if step.cut and machine.flags & m.HELD:
            return 0
        made = step.items
        if step.names:
            made = made[:]
            for place, group, parts, names in step.names:
                if names is not None and names.declared(machine):
                    return 0
                items = parts(match[group])
                if items is None:
                    return 0
                made[place : place + 1] = machine.named(items)
        machine.trail += made
        stack = machine.stack
        height = len(stack) - step.popped
        stack[height:] = step.pushed
        if step.cut:
            machine.floor = len(stack)
        elif machine.floor > height:
            machine.floor = height
        if step.begins:
            machine.nth = 0
        if step.top:
            machine.text_region = m.CONTENT
        if step.calling is not None:
            machine.calling = step.calling
        machine.ip = step.ip
        return match.end()

    def _first(self, text: str, i: int) -> re.Match[str] | None:
        """As ``match``, when the machine first comes here."""
        self._find()
        return self.match(text, i)

    def _first_last(self, text: str, i: int) -> re.Match[str] | None:
        """As ``last``, when the machine first comes here."""
        self._find()
        return self.last(text, i)

    def _find(self) -> None:
        """Finds the steps."""
        patterns: list[str] = []
        known: list[Begun] = []
        for atoms, done in self.make():
            group = f"s{len(patterns)}"
            whole = before = literal = ahead = ""
            begun: list[Begun] = []
            names = 0
            for atom in atoms:
                if atom.kind == "text":
                    literal = atom.text
                    whole += re.escape(literal)
                elif atom.kind == "name":
                    begun.append((literal, _matching(before) if before else None))
                    name = f"(?:{self.no_token}{_PLAIN.get(atom.text, atom.text)}){{1,{_MOST_NAME}}}"
                    whole += f"(?P<{group}_{names}>{name})"
                    before += re.escape(literal) + name
                    literal = ""
                    names += 1
                else:
                    ahead = atom.text
                    whole += f"(?={re.escape(ahead)})" if ahead else _NO_WHITE
            begun.append((literal + ahead, _matching(before) if before else None))
            self.most = max(self.most, sum(len(text) for text, _ in begun) + _MOST_NAME * names)
            patterns.append(f"{whole}(?P<{group}>)")
            longer = known[:] if any(text.startswith(begun[0][0]) for text, _ in known) else []
            self.steps[group] = Step(done, group, longer)
            known += begun
        self.begun = known
        whole = "|".join(patterns) or "(?!)"
        self.match = _matching(whole)
        # What a trial did before no white space, it does before the end of the text.
        self.last = _matching(whole.replace(_NO_WHITE, f"(?:{_NO_WHITE}|\\Z)"))


def _merged(items: list[Item]) -> Iterator[Item]:
    """The items; neighbouring texts of one region are one."""
    for kind, run in groupby(items, lambda item: item[0] if item[1] else item):
        yield (kind, "".join(item[1] for item in run), None) if isinstance(kind, int) else kind


def _matching(pattern: str) -> Match:
    return re.compile(pattern, re.DOTALL).match


def usual(code: list[Instruction], entry: int, tree: n.Node, alphabet: Alphabet) -> None:
    """Puts `USUAL` into the code where something usual may follow: where a call may begin, after each value, after
    the begin of the arguments and after the end of a call."""
    if not any(isinstance(node, n.Body) and node.calls is not None for node in once(tree)):
        return
    plain = code[:]
    found = cache(partial(texts, tree, alphabet))
    points = {entry: START} | {
        ip + 1: place for ip, ins in enumerate(plain) if (place := place_after(ins)) is not None
    }
    for ip, place in points.items():
        if plain[ip][0] != m.RECOVER:  # a frame names its place
            # The instruction that stood here moves to the end of the code, and the code goes on after it.
            code += [plain[ip], (m.JUMP, ip + 1)]
            code[ip] = (
                m.USUAL,
                Steps(partial(_steps, plain, ip, place, found, alphabet), alphabet.no_token),
                len(code) - 2,
            )


def _steps(
    plain: list[Instruction], ip: int, place: str, found: Callable[[], list[Text]], alphabet: Alphabet
) -> Iterable[tuple[tuple[Atom, ...], Done]]:
    """The texts that come after the place, and what the program does with each."""
    steps: dict[tuple[Atom, ...], Done] = {}
    for text in found():
        if text.after == place:
            read = _read(_looking(text), plain, ip, alphabet)
            if read is not None:
                steps.setdefault(*(_read(_looking_less(read[0]), plain, ip, alphabet) or read))
    return steps.items()


def _read(
    tried: Iterable[tuple[Atom, ...]], plain: list[Instruction], ip: int, alphabet: Alphabet
) -> tuple[tuple[Atom, ...], Done] | None:
    """The first text over which a trial runs, and what the program does with it."""
    for atoms in tried:
        done = trial(plain, ip, atoms, alphabet)
        if done is not None:
            return atoms, done
    return None


def _looking(text: Text) -> Iterator[tuple[Atom, ...]]:
    """The text; then with what must be known of what follows: that it is no white space, or how it usually begins."""
    yield text.atoms
    if text.atoms[-1].kind != "next":
        yield (*text.atoms, Atom("next"))
        if text.ahead:
            yield (*text.atoms, Atom("next", text.ahead))


def _looking_less(atoms: tuple[Atom, ...]) -> Iterator[tuple[Atom, ...]]:
    """The same with less of what follows, the least first: the machine waits for all of it, and events with it."""
    last = atoms[-1]
    if last.kind == "next":
        for end in range(1, len(last.text)):
            yield (*atoms[:-1], Atom("next", last.text[:end]))
