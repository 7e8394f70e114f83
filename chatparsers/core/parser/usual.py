"""What usually follows in a call, read in one step: `USUAL` of the machine's table.

A call's markup is nearly always what its template writes: the opener, the name, the way to the next value, the end.
Read one by one, these are a hundred small instructions. So `usual` puts an instruction before them that finds such a
text with one compiled search.

Strategy: `_texts` reads off the tree what the template writes between two places where something becomes final: a
value, the begin of the arguments, the end of a call. `_Trial` runs the program over such a text without knowing the
names in it and the width of its white space. If every step is certain all the same, what the run did is kept: its
items, its frames, and where it stopped. So an instruction never reads what the program would not read.

Invariants: a trial gives up where a step would depend on text that is not known. Nothing in a text becomes final before
its end, so the machine may wait for the rest of one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

from ..definition.nodes import (
    Args,
    Atomic,
    Body,
    Calls,
    Choice,
    Cut,
    Declared,
    EachArg,
    EachTool,
    Header,
    Implied,
    JsonName,
    Lenient,
    Literal,
    Many,
    Name,
    Node,
    Not,
    Peek,
    Rule,
    Sequence,
    Space,
    Tag,
    Tagged,
    Token,
    Value,
)
from ..definition.tree import walk
from ..values.base import WS
from . import machine as m
from .alphabet import Alphabet

if TYPE_CHECKING:
    from .machine import Instruction, Item, Machine
    from .names import Names

__all__ = ["JSON_INSIDE", "Usual", "usual"]

JSON_INSIDE = r'(?:[^"\\\x00-\x1f]|\\.|\\\Z)'
"""One character of the inside of a JSON string, or an escape; the text may end after the escape's backslash."""

_WHITE = " \t\r\n"
_MOST_WHITE = 9
_MOST_NAME = 99
_MOST_STEPS = 500

Test = Callable[[str], object]


# the texts


class _Atom(NamedTuple):
    """A part of a text.

    ``kind``: "text", "white" (any amount of white space, usually ``text``), "name" (a run of the class ``text``),
    "next" (only looked at: ``text`` follows, or if it is empty, no white space), "unknown", or "final" (the text ends
    here, before what ``text`` says).
    """

    kind: str
    text: str = ""


class _Text(NamedTuple):
    """A text behind the place ``behind``, and what usually follows it."""

    behind: str
    atoms: tuple[_Atom, ...]
    ahead: str


_START, _VALUE, _ARGUMENTS, _CALL = "", "value", "arguments", "call"
"""What may stand before a text: nothing, a value, the begin of the arguments, the end of a call."""


class _Unknown(Exception):
    """A step depends on text that is not known, or the tree has a part that is not spelt in one way."""


def _texts(tree: Node, alphabet: Alphabet) -> dict[_Text, None]:
    """What the template writes between two places where something becomes final, and at the end, without repetitions.
    A text stands before its beginnings."""
    found: dict[_Text, None] = {}
    for body in walk(tree):
        if not isinstance(body, Body) or body.calls is None:
            continue
        for arguments, start in product((2, 0), range(len(body.lead) + 1)):
            atoms = [_Atom("text", body.lead[start:])] if body.lead[start:] else []
            atoms += _atoms(body.calls, alphabet, arguments)
            behind, text = _START, []
            for place, atom in enumerate(atoms, 1):
                if atom.kind != "final":
                    text.append(atom)
                    continue
                if text and all(part.kind != "unknown" for part in text):
                    ahead = atoms[place].text if place < len(atoms) and atoms[place].kind == "text" else ""
                    found[_Text(behind, tuple(text), ahead)] = None
                behind, text = atom.text, []
            while text and text[-1].kind == "white":
                text.pop()
            if behind and text and all(part.kind != "unknown" for part in text):
                found[_Text(behind, tuple(text), "")] = None
    return dict.fromkeys(sorted(found, key=lambda text: -len(text.atoms)))


def _atoms(node: Node, alphabet: Alphabet, arguments: int) -> Iterator[_Atom]:
    """The node as its template writes it, with ``arguments`` arguments, and two calls where several may stand."""
    parts: list[Node] = []
    if isinstance(node, (Literal, Token)):
        text = node.text if isinstance(node, Literal) else node.names[0]
        if text:
            yield _Atom("text", alphabet.spellings(text)[0])
    elif isinstance(node, Space):
        yield _Atom("white", node.text)
    elif isinstance(node, JsonName):
        yield _Atom("name", JSON_INSIDE)
    elif isinstance(node, (Name, Header)):
        yield _Atom("name", node.chars)
    elif isinstance(node, (Args, Value)):
        if isinstance(node, Args):
            yield _Atom("next", "{")
        yield _Atom("final", _VALUE)
    elif isinstance(node, EachArg):
        yield _Atom("final", _ARGUMENTS)
        between = [] if node.separator is None else [node.separator]
        parts = [node.any, *([*between, node.any] * (arguments - 1))] if arguments else []
    elif isinstance(node, Sequence):
        parts = list(node.items)
    elif isinstance(node, Choice):
        parts = [node.options[0]]
    elif isinstance(node, Lenient):
        parts = [node.strict]
    elif isinstance(node, Many):
        parts = [node.node] * node.least
    elif isinstance(node, Calls):
        parts = [node.item, node.separator, node.item]
    elif isinstance(node, EachTool):
        parts = [node.any]
    elif isinstance(node, (Atomic, Rule, Tagged)):
        parts = [node.node]
    elif not isinstance(node, (Peek, Not, Cut, Implied, Declared)):
        yield _Atom("unknown")
    for part in parts:
        yield from _atoms(part, alphabet, arguments)
    if isinstance(node, Tagged) and node.tag is Tag.CALL:
        yield _Atom("final", _CALL)


# the trial

_Place = tuple[int, int]
"""A place in a text: an atom, and how many of its characters are before the place."""


class _Frame(NamedTuple):
    kind: int
    target: int
    trail: int
    calling: bool | None
    place: _Place


class _Trial:
    """One run of the program over a text. Each method of an instruction raises `_Unknown` if it is not certain."""

    def __init__(
        self, code: list[Instruction], ip: int, atoms: tuple[_Atom, ...], alphabet: Alphabet
    ) -> None:
        self.code = code
        self.ip = ip
        self.atoms = atoms
        self.no_token = alphabet.no_token
        self.place: _Place = (0, 0)
        self.frames: list[_Frame] = []
        self.popped = 0
        self.trail: list[tuple[Any, ...]] = []
        self.names: list[Names] = []
        self.calling: bool | None = None
        """Whether a call is open; None: as before the run."""
        self.top = False
        self.cut = False
        self.ended = False
        """Whether something became final, so that the text must end here."""

    def run(self) -> Usual | None:
        """What the run did, up to the last place where the machine may stop; None if there is none."""
        found = None
        try:
            for _ in range(_MOST_STEPS):
                if self._over():
                    if self.cut or all(frame.kind != m._CHOICE for frame in self.frames):
                        found = Usual(self)
                    if self.ended or (self.code[self.ip][0] not in _SILENT and (self.cut or not self._looks)):
                        break
                self._step(self.code[self.ip])
        except _Unknown:
            pass
        return found

    @property
    def _looks(self) -> bool:
        return self.atoms[-1].kind == "next"

    def _over(self) -> bool:
        return self.place == (len(self.atoms) - self._looks, 0)

    def _step(self, ins: Instruction) -> None:
        op = ins[0]
        if self.cut and op != m.MARK:
            raise _Unknown
        if op == m.LIT:
            self._moved(self._literal(ins[2]), ins[1])
        elif op == m.SPAN:
            self._moved(self._span(ins[2]), ins[1])
        elif op == m.ONE:
            self._moved(self._one(ins[2]), ins[1])
        elif op == m.CAPTURE:
            self._capture(ins)
        elif op == m.CHOICE or op == m.RECOVER:
            kind = m._CHOICE if op == m.CHOICE else m._RECOVER
            target = ins[1] if op == m.CHOICE else self.ip
            self.frames.append(_Frame(kind, target, len(self.trail), self.calling, self.place))
            self.ip += 1
        elif op == m.COMMIT or op == m.DISARM:
            if self.frames:
                self.frames.pop()
            else:
                self.popped += 1
            self.ip = ins[1] if op == m.COMMIT else self.ip + 1
        elif op == m.JUMP:
            self.ip = ins[1]
        elif op == m.FAIL:
            self._back(None)
        elif op == m.BACK:
            self._back(ins[1])
        elif op == m.FAILTWICE:
            self._back(0)
        elif op == m.MARK:
            if ins[1] in (m.CALL_BEGIN, m.CALL_END, m.BROKEN_END):
                self.calling = ins[1] == m.CALL_BEGIN
            self.ended = _behind(ins) is not None
            self.trail.append((ins[1], None, ins[2]))
            self.ip += 1
        elif op == m.CUT:
            self.cut = True
            self.ip += 1
        elif op == m.TOP and not self._over():
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
            self.trail.append((region, (self.place, place), None))
            self.place = place
        self.ip += 1

    def _back(self, target: int | None) -> None:
        """Goes back to the last choice point, which must be of this run; ``target`` as in `BACK`."""
        while self.frames:
            frame = self.frames.pop()
            if frame.kind == m._CHOICE:
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
        if self._may_begin(k + 1, self._inside(atom)):
            raise _Unknown
        if ins[4] is not None:
            self.names.append(ins[4])
        self.trail.append((m.CALL, ((k, 0), (k + 1, 0)), None))
        self.trail.append((-1, None, ins[2]))
        self.place = (k + 1, 0)
        self.ip += 1

    def _atom(self, k: int) -> _Atom:
        if k == len(self.atoms):
            raise _Unknown
        return self.atoms[k]

    def _inside(self, name: _Atom) -> Test:
        return re.compile(self.no_token + name.text, re.DOTALL).match

    def _may_begin(self, k: int, test: Test) -> bool:
        """Whether the text from the atom ``k`` on may begin with a character that passes the test."""
        atom = self._atom(k)
        if atom.kind == "white":
            return any(map(test, _WHITE)) or self._may_begin(k + 1, test)
        if atom.kind == "name" or not atom.text:
            raise _Unknown
        return bool(test(atom.text[0]))

    def _literal(self, literal: str) -> _Place | None:
        k, offset = self.place
        at = 0
        while at < len(literal):
            atom = self._atom(k)
            if atom.kind == "text" or (atom.kind == "next" and atom.text):
                size = min(len(atom.text) - offset, len(literal) - at)
                if atom.text[offset : offset + size] != literal[at : at + size]:
                    return None
                at += size
                k, offset = (k, offset + size) if offset + size < len(atom.text) else (k + 1, 0)
            elif self._may_be(k, literal[at]):
                raise _Unknown
            else:
                return None
        return k, offset

    def _may_be(self, k: int, char: str) -> bool:
        """Whether the text from the atom ``k`` on, which is not spelt in one way, may begin with ``char``."""
        atom = self._atom(k)
        if atom.kind == "white":
            return char in _WHITE or self._may_be(k + 1, char)
        if atom.kind == "name":
            return bool(self._inside(atom)(char))
        return atom.text[0] == char if atom.text else char not in _WHITE

    def _span(self, match: Any) -> _Place:
        k, offset = self.place
        one = re.compile(_pattern(match)).fullmatch
        while True:
            atom = self._atom(k)
            if atom.kind == "text":
                if not one(atom.text[offset]):
                    return k, offset
                k, offset = (k, offset + 1) if offset + 1 < len(atom.text) else (k + 1, 0)
            elif atom.kind == "white" and all(map(one, _WHITE)):
                k += 1
            elif atom.kind == "white":
                if self._may_begin(k, one):
                    raise _Unknown
                return k, offset
            elif atom.kind == "next" and atom.text:
                if one(atom.text[0]):
                    raise _Unknown
                return k, offset
            else:  # a name, or no white space
                if _pattern(match) != WS or (atom.text and any(map(self._inside(atom), _WHITE))):
                    raise _Unknown
                return k, offset

    def _one(self, match: Any) -> _Place | None:
        k, offset = self.place
        atom = self._atom(k)
        if atom.kind != "text":
            raise _Unknown
        if match is not None and not match(atom.text, offset):
            return None
        return (k, offset + 1) if offset + 1 < len(atom.text) else (k + 1, 0)


_SILENT = (m.MARK, m.CUT, m.COMMIT, m.JUMP, m.DISARM)


def _pattern(match: Any) -> str:
    pattern: str = match.__self__.pattern
    return pattern


# what the machine does


class Usual:
    """A text that the machine reads in one step, and what the step does.

    ``match`` finds the whole text, with a group for each of its stretches that become an item. ``begun`` finds how far
    the window follows the text: it has a group for each atom, and each group but the first may be absent.
    """

    __slots__ = (
        "begun",
        "calling",
        "cut",
        "hopes",
        "insides",
        "ip",
        "items",
        "match",
        "names",
        "pattern",
        "popped",
        "pushed",
        "texts",
        "top",
    )

    def __init__(self, trial: _Trial) -> None:
        atoms = trial.atoms
        self.ip = trial.ip
        self.popped = trial.popped
        # The lengths of choice points are not needed: a cut has ended all of them.
        self.pushed = [(frame.kind, frame.target, 0, bool(frame.calling)) for frame in trial.frames]
        self.calling = trial.calling
        self.top = trial.top
        self.cut = trial.cut
        self.names = trial.names
        searched = [_searched(atom, trial.no_token) for atom in atoms]
        self.items, ends = _merged(trial.trail)
        starts = [0, *ends]
        self.pattern = "".join(
            f"({''.join(searched[start:end])})" for start, end in zip(starts, ends, strict=False)
        ) + "".join(searched[starts[-1] :])
        begun = ""
        for part in reversed(searched):
            begun = f"({part})" + (f"(?:{begun})?" if begun else "")
        self.match = re.compile(self.pattern, re.DOTALL).match
        self.begun = re.compile(begun, re.DOTALL).match
        self.texts = [atom.text if atom.kind in ("text", "next") else "" for atom in atoms]
        self.insides = {f"(?:{trial.no_token}{atom.text}(?<!\\\\))+" for atom in atoms if atom.kind == "name"}
        """What a piece is that goes on with a name: characters of its class, but no escapes."""
        self.hopes = [_hope(atoms, k) for k in range(len(atoms) + 1)]

    def hope(self, text: str, i: int) -> str | None:
        """What usually comes next, as `Machine.hold` needs it, if the window from ``i`` on is only the beginning of the
        text; None if it is not."""
        match = self.begun(text, i)
        found, at = (0, i) if match is None else (match.lastindex or 0, match.end())
        if at == len(text):  # behind a backslash, nothing is known of the next character
            found -= match is not None and not match[found]
            return "" if text.endswith("\\") else self.hopes[found]
        expected, over = self.texts[found], len(text) - at
        if over > len(expected) or not expected.startswith(text[at:]):
            return None
        return self.hopes[found][over:]

    def read(self, machine: Machine, match: re.Match[str]) -> bool:
        """Does what the instructions would do. False if they must do it, because this text is not usual after all."""
        if self.cut and machine.flags & m.HELD:
            return False
        for names in self.names:
            if names.declared(machine):
                return False
        found = match.groups()
        made: list[Item] = []
        for kind, group, value in self.items:
            if kind >= 0:
                made.append((kind, found[group], None) if group >= 0 else value)
                continue
            parts = value(found[group])
            if parts is None:
                return False
            for tag, name in parts:
                if tag == m.NAME:
                    machine.tool = name
                elif tag == m.ARG_NAME:
                    machine.arg = name
                made.append((tag, "", name))
        machine.trail += made
        stack = machine.stack
        if self.popped:
            del stack[-self.popped :]
            if machine.floor > len(stack):
                machine.floor = len(stack)
        if self.pushed:
            stack += self.pushed
        if self.cut:
            machine.floor = len(stack)
        if self.top:
            machine.place = m.CONTENT
        if self.calling is not None:
            machine.calling = self.calling
        return True


def _hope(atoms: tuple[_Atom, ...], k: int) -> str:
    """What the template writes from the atom ``k`` on, up to a name or to the end."""
    found = ""
    for atom in atoms[k:]:
        if atom.kind == "name":
            return found + m.IN_NAME
        if atom.kind not in ("text", "white"):
            break
        found += atom.text
    return found


def _searched(atom: _Atom, no_token: str) -> str:
    if atom.kind == "text":
        return re.escape(atom.text)
    if atom.kind == "white":
        return f"[{_WHITE}]{{0,{_MOST_WHITE}}}"
    if atom.kind == "name":
        return f"(?:{no_token}{atom.text}){{1,{_MOST_NAME}}}"
    return f"(?={re.escape(atom.text)})" if atom.text else f"(?=[^{_WHITE}])"


def _merged(trail: list[tuple[Any, ...]]) -> tuple[list[tuple[int, int, Any]], list[int]]:
    """The items, and for each stretch of text the atom where it ends.

    An item is ``(region, stretch, None)``, or an item of the trail as ``(kind, -1, item)``, or ``(-1, stretch, parts)``
    with what finds the items of a name. Neighbours of one region are one stretch.
    """
    items: list[tuple[int, int, Any]] = []
    ends: list[_Place] = []
    for kind, span, value in trail:
        if kind < 0:
            items.append((-1, len(ends) - 1, value))
        elif span is None:
            items.append((kind, -1, (kind, "", value)))
        elif items and items[-1][0] == kind and items[-1][1] >= 0:
            ends[-1] = span[1]
        else:
            items.append((kind, len(ends), None))
            ends.append(span[1])
    if any(offset for _, offset in ends):
        raise _Unknown
    return items, [k for k, _ in ends]


def usual(code: list[Instruction], entry: int, tree: Node, alphabet: Alphabet) -> None:
    """Puts `USUAL` into the code where something usual follows: where a call may begin, behind each value, behind the
    begin of the arguments and behind the end of a call."""
    texts = _texts(tree, alphabet)
    if not texts:
        return
    plain = code[:]
    points = {entry: _START} | {
        ip + 1: _behind(ins) for ip, ins in enumerate(plain) if _behind(ins) is not None
    }
    for ip, behind in points.items():
        if plain[ip][0] == m.RECOVER:  # a frame names its place
            continue
        tried = [_way(plain, ip, text, alphabet) for text in texts if text.behind == behind]
        ways = list({way.pattern: way for way in tried if way is not None}.values())
        if ways:
            # The instruction that stood here moves to the end of the code, and the code goes on behind it.
            code += [plain[ip], (m.JUMP, ip + 1)]
            insides = {inside for way in ways for inside in way.insides}
            tests = tuple(re.compile(inside, re.DOTALL).fullmatch for inside in sorted(insides))
            code[ip] = (m.USUAL, tuple(ways), len(code) - 2, tests)


def _behind(ins: Instruction) -> str | None:
    """What a text behind this instruction stands behind; None if there is no usual text."""
    if ins[0] == m.VALUE:
        return _VALUE if ins[3] else None
    if ins[0] == m.MARK:
        return {m.CALL_END: _CALL, m.ARGS_BEGIN: _ARGUMENTS}.get(ins[1])
    return _START if ins[0] == m.TOP else None


def _way(code: list[Instruction], ip: int, text: _Text, alphabet: Alphabet) -> Usual | None:
    """The step over the text. Where what follows must be known, it waits for that too."""
    atoms = text.atoms
    found = _Trial(code, ip, (*atoms, _Atom("next")) if atoms[-1].kind == "white" else atoms, alphabet).run()
    if found is None and text.ahead and atoms[-1].kind != "next":
        found = _Trial(code, ip, (*atoms, _Atom("next", text.ahead)), alphabet).run()
    return found
