"""A trial run of the program over a text whose names are not known.

Each instruction raises `_Unknown` if what it does would depend on what is not known. So whatever a trial does, the
machine does over each text of that kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from ....values.base import WS
from ....values.raw import StopFinder
from .. import instructions as m
from ..alphabet import Alphabet
from ..code import WHITE
from .texts import ARGUMENTS, CALL, START, VALUE, Atom

if TYPE_CHECKING:
    from ..instructions import Instruction, Item

_MOST_STEPS = 500

_Place = tuple[int, int]
"""A place in a text: an atom, and how many of its characters are before the place."""


class _Unknown(Exception):
    """A step depends on text that is not known."""


class _Frame(NamedTuple):
    kind: int
    target: int
    trail: int
    calling: bool | None
    place: _Place


class Done(NamedTuple):
    """What a run did: where it stopped, how many frames it took off the stack, the frames it pushed, the items it made,
    whether a call is open (None: as before), whether it came to the body's loop, whether it cut.

    The items of the name in each "name" of the text stand as ``(-1, "", (parts, names))``: what finds them, and the
    declared names that are read otherwise."""

    ip: int
    popped: int
    frames: list[_Frame]
    items: list[Item]
    calling: bool | None
    top: bool
    cut: bool


def place_after(ins: Instruction) -> str | None:
    """What comes before a text that comes after this instruction; None if no usual text comes there."""
    if ins[0] == m.VALUE:
        return VALUE if ins[3] else None
    if ins[0] == m.MARK:
        return {m.CALL_END: CALL, m.ARGS_BEGIN: ARGUMENTS}.get(ins[1])
    return START if ins[0] == m.TOP else None


def trial(code: list[Instruction], ip: int, atoms: tuple[Atom, ...], alphabet: Alphabet) -> Done | None:
    """What the run from ``ip`` did, up to the last place where the machine may stop; None if there is none."""
    run = _Run(code, ip, atoms, alphabet)
    found = None
    try:
        for _ in range(_MOST_STEPS):
            if run.over():
                if run.cut or all(frame.kind != m.CHOICE_POINT for frame in run.frames):
                    found = run.done()
                if run.ended or (code[run.ip][0] not in _SILENT and (run.cut or not run.looks)):
                    break
            run.step(code[run.ip])
    except _Unknown:
        pass
    return found


class _Run:
    def __init__(self, code: list[Instruction], ip: int, atoms: tuple[Atom, ...], alphabet: Alphabet) -> None:
        self.code = code
        self.ip = ip
        self.atoms = atoms
        self.no_token = alphabet.no_token
        self.looks = atoms[-1].kind == "next"
        self.place: _Place = (0, 0)
        self.frames: list[_Frame] = []
        self.popped = 0
        self.trail: list[Item] = []
        self.calling: bool | None = None
        self.top = False
        self.cut = False
        self.ended = False
        """Whether something became final, so that the text must end here."""

    def over(self) -> bool:
        return self.place == (len(self.atoms) - self.looks, 0)

    def done(self) -> Done:
        return Done(self.ip, self.popped, self.frames[:], self.trail[:], self.calling, self.top, self.cut)

    def step(self, ins: Instruction) -> None:
        op = ins[0]
        if self.cut and op != m.MARK:
            raise _Unknown
        if op == m.LIT:
            self._moved(self._literal(ins[2]), ins[1])
        elif op == m.SPAN:
            self._moved(self._span(ins[2]), ins[1])
        elif op == m.WORDS:
            places = (self._literal(literal) for literal, _ in ins[2])
            self._moved(next((place for place in places if place is not None), None), ins[1])
        elif op == m.CHARS and ins[5] == 1:
            self._moved(self._one(ins[2], ins[4]), ins[1])
        elif op == m.CAPTURE:
            self._capture(ins)
        elif op == m.CHOICE or op == m.RECOVER:
            kind = m.CHOICE_POINT if op == m.CHOICE else m.RECOVERY_POINT
            target = ins[1] if op == m.CHOICE else self.ip
            self.frames.append(_Frame(kind, target, len(self.trail), self.calling, self.place))
            self.ip += 1
        elif op == m.CALLSUB:
            self.frames.append(_Frame(m.RETURN_ADDRESS, self.ip + 1, len(self.trail), False, self.place))
            self.ip = ins[1]
        elif op == m.COMMIT or op == m.DISARM:
            if self.frames:
                self.frames.pop()
            else:
                self.popped += 1
            self.ip = ins[1] if op == m.COMMIT else self.ip + 1
        elif op == m.JUMP:
            self.ip = ins[1]
        elif op in (m.BETWEEN, m.BLANK) and (not self._blank() or (op == m.BLANK and self._stands(ins[1]))):
            self.ip += 1
        elif op == m.RETURN and self.frames:
            self.ip = self.frames.pop().target
        elif op == m.FAIL:
            self._back(None)
        elif op == m.BACK:
            self._back(ins[1])
        elif op == m.FAILTWICE:
            self._back(0)
        elif op == m.MARK:
            if ins[1] in (m.CALL_BEGIN, m.CALL_END, m.BROKEN_END):
                self.calling = ins[1] == m.CALL_BEGIN
            self.ended = place_after(ins) is not None
            self.trail.append((ins[1], "", ins[2]))
            self.ip += 1
        elif op == m.CUT:
            self.cut = True
            self.ip += 1
        elif op == m.UNLESS:
            self.ip = self.ip + 1 if self._blank() or self._stands(ins[2]) else ins[1]
        elif op == m.FOLLOWS:
            self.ip = ins[1] if self._stands(ins[2]) else self.ip + 1
        elif op == m.TOP and not self.over():
            self.calling, self.top = False, True
            self.ip += 1
        else:
            raise _Unknown

    def _moved(self, place: _Place | None, region: int) -> None:
        if place is None:
            self.ip = 0
            return
        if place != self.place:
            if self.ended:
                raise _Unknown
            (k, begin), (last, end) = self.place, place
            raw = "".join(atom.text for atom in self.atoms[k:last]) + (
                self.atoms[last].text[:end] if end else ""
            )
            self.trail.append((region, raw[begin:], None))
            self.place = place
        self.ip += 1

    def _back(self, target: int | None) -> None:
        """Goes back to the last choice point, which must be of this run; ``target`` as in `BACK`."""
        while self.frames:
            frame = self.frames.pop()
            if frame.kind == m.CHOICE_POINT:
                self.place = frame.place
                del self.trail[frame.trail :]
                self.calling = frame.calling
                self.ip = frame.target if target is None else target
                return
            if target is not None:
                raise _Unknown
        raise _Unknown

    def _capture(self, ins: Instruction) -> None:
        k, offset = self.place
        atom = self._atom(k)
        if (
            self.ended
            or atom.kind != "name"
            or offset
            or _pattern(ins[1]) != f"(?:{self.no_token}{atom.text})*"
        ):
            raise _Unknown
        after = self._atom(k + 1)
        if after.kind == "name" or not after.text or self._inside(atom)(after.text):
            raise _Unknown
        self.trail.append((-1, "", (ins[2], ins[4])))
        self.place = (k + 1, 0)
        self.ip += 1

    def _blank(self) -> bool:
        """Whether white space is here."""
        k, offset = self.place
        atom = self._atom(k)
        if atom.kind == "name":
            raise _Unknown
        return bool(atom.text) and atom.text[offset] in WHITE

    def _atom(self, k: int) -> Atom:
        if k == len(self.atoms):
            raise _Unknown
        return self.atoms[k]

    def _inside(self, name: Atom) -> Callable[[str], object]:
        return re.compile(self.no_token + name.text, re.DOTALL).match

    def _literal(self, literal: str) -> _Place | None:
        k, offset = self.place
        at = 0
        while at < len(literal):
            atom = self._atom(k)
            if not atom.text:  # no white space
                if literal[at] not in WHITE:
                    raise _Unknown
                return None
            if atom.kind == "name":
                if self._inside(atom)(literal[at]):
                    raise _Unknown
                return None
            size = min(len(atom.text) - offset, len(literal) - at)
            if atom.text[offset : offset + size] != literal[at : at + size]:
                return None
            at += size
            k, offset = (k, offset + size) if offset + size < len(atom.text) else (k + 1, 0)
        return k, offset

    def _span(self, match: Any) -> _Place:
        k, offset = self.place
        one = re.compile(_pattern(match)).fullmatch
        while True:
            atom = self._atom(k)
            if atom.kind == "name" or not atom.text:
                if _pattern(match) != WS or (atom.text and any(map(self._inside(atom), WHITE))):
                    raise _Unknown
                return k, offset
            if not one(atom.text[offset]):
                return k, offset
            if atom.kind == "next":
                raise _Unknown
            k, offset = (k, offset + 1) if offset + 1 < len(atom.text) else (k + 1, 0)

    def _stands(self, finder: StopFinder) -> bool:
        """Whether a text that ``finder`` looks for is here."""
        k, offset = self.place
        atom = self._atom(k)
        if atom.kind == "name" or not atom.text:
            raise _Unknown
        match = finder.at(atom.text, offset)
        if match is not None and match[1] is not None:
            raise _Unknown
        return match is not None

    def _one(self, match: Any, least: int) -> _Place | None:
        k, offset = self.place
        atom = self._atom(k)
        if atom.kind != "text":
            raise _Unknown
        if match(atom.text, offset).end() == offset:
            return None if least else self.place
        return (k, offset + 1) if offset + 1 < len(atom.text) else (k + 1, 0)


_SILENT = (m.MARK, m.CUT, m.COMMIT, m.JUMP, m.DISARM)


def _pattern(match: Any) -> str:
    pattern: str = match.__self__.pattern
    return pattern
