"""What usually follows in a call, read in one step: `USUAL` of the machine's table.

A call's markup is nearly always what its template writes: the opener, the way to the name, to the next value, the end.
Read one by one, these are a hundred small instructions. `USUAL` compares the window with such a text and does at once
what they did in a trial; if the window holds only its beginning, the machine waits. No event is made of such a text
before its end, so none comes later for that. A long text, which goes over the end of a call, is read only if it is here
whole.

Strategy: `_texts` reads the texts off the tree: what comes between two values or ends of calls. A trial is a run
of the machine over one of them. What a machine does with a text does not depend on the pieces in which it comes, so
what the trial did is what each run does that has the text before it. All else is unknown to the trial: the frames on
the stack are stand-ins, which nothing can go back to, and an instruction that asks for more than the text stops it.
Where a tool may be declared or not, the trial goes both ways, and a step is what both did. Where only white space
could go on, the trial goes on as if none did, and the step asks for that. A step is made when the window first begins
as its text does, so that nobody pays for calls who reads none.
"""

from __future__ import annotations

import re
import string
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, partial
from itertools import groupby, product
from typing import Any, NamedTuple

from ...schema.tools import Toolset
from ...values.base import WS
from ...values.stops import StopFinder
from ..definition import nodes as n
from ..definition.tree import once
from . import instructions as m
from .alphabet import Alphabet
from .code import WHITE, stop_finder
from .instructions import Instruction, Item, Program
from .machine import Machine
from .names import Names, Run
from .steps import Step, Steps

_START, _VALUE, _ARGUMENTS, _CALL, _UNKNOWN = "", "value", "arguments", "call", "unknown"
"""What may come before a text: nothing, a value, the begin of the arguments, the end of a call, or what no template
tells."""
_ANY = "\ue000"
"""In the text of a trial, a name."""
_PLAIN = string.ascii_letters + string.digits + "_-.:"
"""The usual characters of names. A name that has others, or is long, is left to the instructions."""
_NAME = r"[a-zA-Z0-9_\-.:]{1,99}"


def usual(code: list[Instruction], entry: int, tree: n.Node, alphabet: Alphabet) -> None:
    """Puts `USUAL` into the code where something usual may follow: where a call may begin, after each value, after
    the begin of the arguments and after the end of a call."""
    if not any(isinstance(node, n.Body) and node.calls is not None for node in once(tree)):
        return
    texts = cache(partial(_texts, tree, alphabet))
    trial = cache(partial(_Trial, code))
    points = {entry: _START}
    points |= {ip + 1: place for ip, ins in enumerate(code) if (place := _place_after(ins)) is not None}
    for ip, place in points.items():
        if code[ip][0] != m.RECOVER:  # a frame names its place
            # The instruction that stood here moves to the end of the code, and the code goes on after it.
            code += [code[ip], (m.JUMP, ip + 1)]
            moved = len(code) - 2
            code[ip] = m.USUAL, Steps(partial(_steps, trial, moved, place, texts)), moved


def _place_after(ins: Instruction) -> str | None:
    """What comes before a text that comes after this instruction; None if no usual text comes there."""
    if ins[0] == m.VALUE:
        return _VALUE if ins[3] else None
    if ins[0] == m.MARK:
        return {m.CALL_END: _CALL, m.ARGS_BEGIN: _ARGUMENTS}.get(ins[1])
    return _START if ins[0] == m.TOP else None


# the texts


class _Text(NamedTuple):
    """A text, what comes before it, and how what comes after it begins, as far as that is known. ``long``: arguments
    begin in it, or a call ends, so that it makes events before its end."""

    after: str
    text: str
    ahead: str
    long: bool


class _Place(NamedTuple):
    """A place between two texts: what is there, and how that begins; None: nothing is, so that the text begins."""

    after: str
    begins: str | None = None


def _texts(tree: n.Node, alphabet: Alphabet) -> list[_Text]:
    """The texts of the calls of the tree."""
    found: dict[_Text, None] = {}
    for body in once(tree):
        if isinstance(body, n.Body) and body.calls is not None:
            for arguments, start in product((2, 0), range(len(body.lead) + 1)):
                parts = [body.lead[start:], *_parts(body.calls, alphabet, arguments)]
                found |= dict.fromkeys(_between(parts))
    return list(found)


def _between(parts: Iterable[str | _Place]) -> Iterator[_Text]:
    """The texts between two places, and the long ones up to a value: after another one, a next call may begin."""
    places, texts = [_Place(_START)], [""]
    for part in parts:
        if isinstance(part, str):
            texts[-1] += part
        else:
            places.append(part)
            texts.append("")
    texts[-1] = texts[-1].rstrip()  # the turn may end before white space
    places.append(_Place(_START, ""))
    for at, text in enumerate(texts):
        for end in range(at + 1, len(places)):
            begin, (then, ahead) = places[at].after, places[end]
            long = end > at + 1
            wanted = then == _VALUE if long else text
            if wanted and _UNKNOWN not in (begin, then):
                yield _Text(begin, text, texts[end].split(_ANY)[0] if ahead is None else ahead, long)
            if then not in (_ARGUMENTS, _CALL):
                break
            text += texts[end]


def _parts(node: n.Node, alphabet: Alphabet, arguments: int) -> Iterator[str | _Place]:
    """The node as its template writes it, with ``arguments`` arguments, and two calls where several may come: texts,
    and the places between them."""
    parts: Iterable[n.Node] = ()
    if isinstance(node, (n.Literal, n.Token)):
        yield alphabet.spellings(node.text)[0]
    elif isinstance(node, n.Space):
        yield node.text
    elif isinstance(node, (n.JsonName, n.Name, n.Header)):
        yield _ANY
    elif isinstance(node, (n.Args, n.Value)):
        yield _Place(_VALUE, "{" if isinstance(node, n.Args) else "")
    elif isinstance(node, n.EachArg):
        yield _Place(_ARGUMENTS)
        between = [] if node.separator is None else [node.separator]
        parts = [node.any, *([*between, node.any] * (arguments - 1))] if arguments else []
    elif isinstance(node, n.Many):
        parts = [node.node] * node.least
    elif isinstance(node, n.Calls):
        parts = [node.item, node.separator, node.item]
    elif isinstance(node, n.Choice):
        parts = node.options[:1]
    elif isinstance(node, n.Sequence):
        parts = node.items
    elif isinstance(node, n.Inner):
        parts = [node.inner(True)]
    elif not isinstance(node, (n.Peek, n.Not, n.Cut, n.Implied, n.Declared, n.LineStart)):
        yield _Place(_UNKNOWN, "")
    for part in parts:
        yield from _parts(part, alphabet, arguments)
    if isinstance(node, n.Tagged) and node.tag is n.Tag.CALL:
        yield _Place(_CALL)


# the trial

_FRAMES = 8
"""The stand-ins on the stack: how many frames a step may take off."""
_STOP: Instruction = (m.CHARS, m.MARKUP, re.compile("(?s:.*)").match, "", 0, sys.maxsize)
"""Waits for more, whatever comes."""
_NEXT: Instruction = (*_STOP[:3], "the next step", *_STOP[4:])
"""In place of `USUAL`."""
_MORE: Instruction = (m.FOLLOWS, -1, stop_finder(), False)
"""Comes before a choice, and waits for more."""
_EITHER: Instruction = (*_STOP[:3], "a declared tool", *_STOP[4:])
"""In place of `DECLARED`: the trial goes on in both ways."""
_SURE = {
    m.BACK, m.BETWEEN, m.BLANK, m.CALLSUB, m.CHARS, m.CHOICE, m.COMMIT, m.CUT, m.FAIL, m.FAILTWICE, m.FOLLOWS,
    m.JUMP, m.LINE, m.LIT, m.MARK, m.RECOVER, m.RETURN, m.SPAN, m.TOP, m.UNLESS, m.WORDS,
}  # fmt: skip
"""The instructions that ask for nothing but the text and what the trial itself put on the stack. `LINE` may ask for the
text before it: a step does the same whatever that is."""
_FINDING = {m.BETWEEN, m.BLANK, m.FOLLOWS, m.UNLESS}
"""Those of them that look for stops."""
_UNSET = {"nth": -1, "section": -2, "text_region": -1}
"""What the machine has of these in a trial until it sets them."""
_EVENTLESS = {m.MARKUP, m.CALL, m.CALL_BEGIN}
"""The items that make no event."""
_LAST = {*_EVENTLESS, m.ARGS_BEGIN, m.CALL_END}
"""The items that the last one of a step may be. Those of names are below zero: each is of one `CAPTURE`."""


class _Trying:
    """The place of a name in a trial. It reads the stand-in of a name as ``item``. Else it reads what stands there,
    which is the same in each run whose request declares no odd name: so the step asks for that of the names that are
    kept with the tools of the trial."""

    def __init__(self, names: Names, item: int) -> None:
        self.names = names
        self.item = item
        self.alone = names.alone

    def read(self, machine: Machine, text: str, i: int, final: bool) -> tuple[int, list[Item] | None]:
        match = self.names.run(text, i)
        end = match.end() if match else i
        usual = _of_names(self.names.run)
        if text[i:end] == _ANY and usual:
            if self.names.item == m.NAME:
                machine.tool = ""
            return end, [(self.item, _ANY, None)]
        stand_in = _ANY in text[i : end + 1] and (i < end or usual is not False)
        if stand_in or self.names.of_tool or end == len(text):
            return -1, None
        machine.tools.kept[self.names] = None
        return self.names.read(machine, text, i, final)


class _Trial:
    """The program of the trials. It stops at each instruction that is not sure, at the stand-ins, and after the text
    where a choice begins or the next step. ``goes_on``: where the machine goes on, of each stop that is not in its
    place. ``texts``: what the program compares the text with; ``compared``: what of these is after a place where a name
    may begin, by what is before it."""

    def __init__(self, code: list[Instruction]) -> None:
        self.code = code
        self.texts = {*_compared(code)}
        self.compared: dict[str, list[str]] = {}
        for text in self.texts:
            for at in [at for at, char in enumerate(text) if char in _PLAIN]:
                self.compared.setdefault(text[:at], []).append(text[at:])
        self.goes_on: dict[int, int] = {}
        trial = [_sure(ins, *then) for ins, then in zip(code, [*zip(code[1:]), ()], strict=True)]
        for ip, ins in enumerate(code):
            if ins[0] == m.CAPTURE:
                trial[ip] = m.CAPTURE, _Trying(ins[1], -1 - ip), ins[2]
            elif ins[0] in (m.CHOICE, m.USUAL):
                here = len(trial)
                self.goes_on[here] = ip
                trial += [_MORE if ins[0] == m.CHOICE else _NEXT, trial[ip], (m.JUMP, ip + 1)]
                trial[ip] = m.JUMP, here
        self.stand_ins = len(trial)
        self.program = Program([*trial, *[_STOP] * _FRAMES], 0, self.stand_ins, False, False)

    def run(self, ip: int, text: str, ahead: str) -> tuple[list[tuple[Machine, list[Item]]], bool]:
        """Each end of a run from ``ip`` on: a run may be in a call, and after the end of a line, or not; a tool may be
        declared or not. Also whether that holds only if no white space comes next. An error if it cannot tell them."""
        ends: list[tuple[Machine, list[Item]]] = []
        solid, tools = False, Toolset()
        for inside in (False, True):
            machine = Machine(self.program, tools)
            # The length of a stand-in is no number: going back to it is an error.
            stack: list[Any] = [(m.RETURN_ADDRESS, self.stand_ins + at, "", False) for at in range(_FRAMES)]
            machine.stack, machine.ip, machine.calling, machine.line_ended = stack, ip, inside, inside
            for attribute, unset in _UNSET.items():
                setattr(machine, attribute, unset)
            ways = [(machine, machine.feed(text + ahead))]
            for machine, items in ways:
                while machine.live or machine.base < len(text):
                    ins = self.program.code[machine.ip]
                    if ins is _EITHER:
                        other = machine.copy()
                        other.ip = 0
                        ways.append((other, items + other.feed("")))
                    elif ins[0] == m.SPAN and ins[2].__self__.pattern == WS:
                        solid = True
                        if white := machine.text:
                            machine.trail.append((ins[1], white, None))
                            machine.text, machine.base = "", machine.base + len(white)
                    elif ins is not _NEXT and ins is not _MORE:
                        raise TypeError(ins)
                    machine.ip += 1
                    items += machine.feed("")
                if not machine.stack:
                    raise TypeError("all is taken back")
            ends += ways
        return ends, solid

    def step(self, ip: int, texts: list[_Text]) -> Step | None:
        """The step that reads a text, with as little of what comes after it as tells what the machine does, because the
        machine waits for all of it; None if nothing tells that. ``texts``: the text, with all that may come after."""
        for _, text, ahead, long in texts:
            # What comes next is told by its first characters, or by one of the texts that the program looks for.
            ends = {0, 1, 2, *(ahead.find(one) + len(one) for one in self.texts if one in ahead)}
            for end in sorted(ends):
                if (step := self._step(ip, text, ahead[:end], long)) is not None:
                    return step
        return None

    def _step(self, ip: int, text: str, ahead: str, long: bool) -> Step | None:
        """The step of a run; None if the run cannot tell what is done."""
        try:
            ends, solid = self.run(ip, text, ahead)
        except TypeError:
            return None
        step = Step()
        step.make, step.long, step.least, step.solid = None, long, len(text + ahead), solid
        machine, made = ends[0]
        step.items = [*_merged(made)]
        kinds = [item[0] for item in step.items]
        captured = [self.code[-1 - kind][1] for kind in kinds if kind < 0]
        read = machine.base
        step.ahead = len(text + ahead) - read
        if (
            not kinds
            or not read  # the instructions would be asked for such a step again
            or step.ahead > len(ahead)
            or len(captured) != text.count(_ANY)
            or machine.section >= 0
            or machine.tool
            or not all(kind < 0 or kind in (_LAST if long else _EVENTLESS) for kind in kinds[:-1])
            or not (kinds[-1] < 0 or kinds[-1] in _LAST)
            or any(_outcome(*end) != _outcome(*ends[0]) for end in ends)
        ):
            return None
        self._match(step, text + ahead)
        step.tried = [names for names in machine.tools.kept if isinstance(names, Names) and names.spell]
        places = [place for place, kind in enumerate(kinds) if kind < 0]
        step.names = [
            (place, group, names.item if names.plain else 0, names)
            for group, (place, names) in enumerate(zip(places, captured, strict=True), 1)
        ]
        kept = sum(frame[1] >= self.stand_ins for frame in machine.stack)
        step.popped = _FRAMES - kept
        step.pushed = machine.stack[kept:]
        step.floor = machine.floor - kept if machine.floor else -1
        step.ip = -1 if machine.ip >= self.stand_ins else self.goes_on.get(machine.ip, machine.ip)
        step.sets = [
            (name, value) for name, unset in _UNSET.items() if (value := getattr(machine, name)) != unset
        ]
        if all(end.calling == machine.calling for end, _ in ends):
            step.sets.append(("calling", machine.calling))
        return step

    def _match(self, step: Step, text: str) -> None:
        """Finds what matches the step's text. The names in it begin with nothing that the program compares them
        with."""
        step.text, *step.more = texts = text.split(_ANY)
        step.match, step.whole = None, len(texts) if step.more else None
        found: list[str] = []
        for text in texts[:-1]:
            ends = [text[at:] for at in range(len(text) + 1)]
            compared = {after for before in ends for after in self.compared.get(before, ())}
            begins = f"(?!{'|'.join(map(re.escape, sorted(compared)))})" if compared else ""
            found.append(f"{re.escape(text)}{begins}({_NAME})")
        if found or step.solid or step.long:
            solid = f"(?=[^{WHITE}])" if step.long else f"(?![{WHITE}])"
            pattern = re.escape(texts[-1]) + solid * step.solid + "()" * bool(found)
            for before in reversed(found):
                pattern = before + (pattern if step.long else f"(?:{pattern})?")
            step.match = re.compile(pattern, re.DOTALL).match


def _outcome(machine: Machine, items: list[Item]) -> tuple[Any, ...]:
    """What is the same at each end of a run if the run tells it."""
    frames = [frame[:2] for frame in machine.stack]
    return machine.ip, frames, machine.floor, items, *(getattr(machine, name) for name in _UNSET)


def _merged(items: Iterable[Item]) -> Iterator[Item]:
    """The items; neighbouring texts of one region are one."""
    for kind, run in groupby(items, lambda item: item[0] if item[1] else item):
        yield (kind, "".join(item[1] for item in run), None) if isinstance(kind, int) else kind


def _sure(ins: Instruction, then: Instruction = _STOP) -> Instruction:
    """The instruction in a trial; ``then``: the one after it."""
    if ins[0] == m.USUAL:
        return m.JUMP, ins[2]
    if ins[0] == m.DECLARED:
        return _EITHER
    if ins[0] not in _SURE:
        return _STOP
    if ins[0] in (m.SPAN, m.CHARS) and _of_names(ins[2]) is not False:
        # It reads a name as a whole, or as the first character of one.
        rest = ins if ins[0] == m.SPAN else then
        if rest[0] != m.SPAN or not (_of_names(ins[2]) and _of_names(rest[2])):
            return _STOP
        with_any = re.compile(ins[2].__self__.pattern.replace("(?:", f"(?:{_ANY}|", 1), re.DOTALL)
        return *ins[:2], with_any.match, *ins[3:]
    return ins


@lru_cache(maxsize=1024)
def _of_names(match: Run) -> bool | None:
    """Whether ``match`` reads the usual characters of names; None if it reads some of them."""
    read = {bool((found := match(char)) and found.end()) for char in _PLAIN}
    return read.pop() if len(read) == 1 else None


def _compared(code: list[Instruction]) -> Iterator[str]:
    """The texts with which sure instructions compare what comes next."""
    for ins in code:
        if ins[0] == m.LIT:
            yield ins[2]
        elif ins[0] == m.WORDS:
            yield from [text for text, _ in ins[2]]
        elif ins[0] in _FINDING:
            for operand in ins:
                if isinstance(operand, StopFinder):
                    yield from operand.stops


def _steps(trial: Callable[[], _Trial], ip: int, place: str, texts: Callable[[], list[_Text]]) -> list[Step]:
    """The steps for the texts that come after the place, none of them made; ``ip``: where the code goes on."""
    found: dict[tuple[str, bool], list[_Text]] = {}
    for one in sorted(texts(), key=lambda one: (-one.text.count(_ANY), -len(one.text))):
        if one.after == place:
            found.setdefault((one.text, one.long), []).append(one)
    steps = []
    for (text, long), alike in found.items():
        steps.append(step := Step())
        step.text, step.long, step.least = text.split(_ANY)[0], long, len(text)
        step.make = lambda alike=alike: trial().step(ip, alike)
    return steps
