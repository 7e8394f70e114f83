"""Which way a text takes through a format's program: the instructions that read it, and whether each passed.

The program is copied, and each instruction becomes a jump to a block that has probes around it. A probe is a `SPAN`
whose match notes a number and matches nothing, so the copy reads as the program does, with the compiled core too. What
reads the first of several words becomes a choice of them, so that each word is a place of its own.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from ..answers.format import Turn
from ..core.machine import instructions as m
from ..core.machine.instructions import Instruction, Program
from ..core.machine.machine import Machine

_DECIDES = {m.LIT, m.CHARS, m.VALUE, m.CAPTURE, m.SAME, m.NTH, m.DECLARED, m.LINE, m.COUNTS, m.END} | {
    *(m.SPAN, m.TEXT, m.FOLLOWS, m.UNLESS, m.IF)
}
"""The instructions of which the text decides whether the next one follows, or whether they read anything."""


class Outcome(NamedTuple):
    """What happened at a place. ``passed``: the next instruction followed; else this one failed, or led elsewhere.
    ``read``: it read some text. ``undone``: the machine went back before that text."""

    place: int
    passed: bool
    read: bool
    undone: bool = False


class Way(NamedTuple):
    """The way of one text."""

    outcomes: list[Outcome]
    """What happened, in order."""
    pieces: list[str]
    """The text in pieces, each of which was read at once."""
    clean: bool
    """No diagnostic tells of it."""


class Paths:
    """The ways of texts through a program."""

    def __init__(self, program: Program) -> None:
        self._noted: list[tuple[int, int]] = []
        """The probes that the machine came to, and where in its window."""
        self._deciding: set[int] = set()
        self._places = 0
        self._program = self._probed(program)

    @property
    def outcomes(self) -> int:
        """How often two outcomes are two: those included that no text reaches."""
        return 2 * len(self._deciding)

    def of(self, turn: Turn, text: str) -> Way:
        """The way of ``text``, as an answer to ``turn``."""
        machine = Machine(self._program, turn.tools)
        if turn.prefix:
            machine.feed(turn.prefix)
        self._noted.clear()
        machine.final = True  # so that there is one window, in which places can be compared
        items = machine.feed(text)
        reached: list[Outcome] = []
        open: list[tuple[int, int]] = []  # where each that read something ends, and its place in reached
        for (place, at), (following, after) in pairwise(self._noted):
            while open and open[-1][0] > at:
                _, undone = open.pop()
                reached[undone] = reached[undone]._replace(undone=True)
            if place in self._deciding:
                passed = following == ~place
                if passed and after > at:
                    open.append((after, len(reached)))
                reached.append(Outcome(place, passed, passed and after > at))
        pieces = [raw for _, raw, _ in items if raw]
        extra = len("".join(pieces)) - len(text)  # what the machine held of the prefix
        while extra > 0:
            extra, pieces[0] = extra - len(pieces[0]), pieces[0][extra:]
            if not pieces[0]:
                del pieces[0]
        return Way(reached, pieces, all(kind != m.NOTE for kind, _, _ in items))

    def _probed(self, program: Program) -> Program:
        code: list[Instruction] = list(program.code)
        for ip, instruction in enumerate(program.code):
            if instruction[0] != m.FAIL:
                code[ip] = m.JUMP, len(code)
                *others, last = _words(instruction)
                for word in others:
                    code += [(m.CHOICE, len(code) + 5), *self._block(word), (m.COMMIT, ip + 1)]
                code += [*self._block(last), (m.JUMP, ip + 1)]
        return Program(
            code, program.start, program.fallback, program.late_ids, program.unwanted, program.recipe
        )

    def _block(self, instruction: Instruction) -> list[Instruction]:
        """The instruction between its two probes."""
        place, self._places = self._places, self._places + 1
        if instruction[0] in _DECIDES:
            self._deciding.add(place)
        return [self._probe(place), instruction, self._probe(~place)]

    def _probe(self, number: int) -> Instruction:
        def note(text: str, i: int) -> None:
            self._noted.append((number, i))

        return m.SPAN, m.MARKUP, note


def _words(instruction: Instruction) -> list[Instruction]:
    """The instruction, or one for each of the words of which it reads the first that follows."""
    if instruction[0] != m.LIT:
        return [instruction]
    return [(m.LIT, instruction[1], (word,)) for word in instruction[2]]
