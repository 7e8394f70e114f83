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
Where only white space could go on, the trial goes on as if none did, and the step asks for that. The steps of a place
are made when a machine first comes there.
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
from .names import JSON_INSIDE, Names, Run
from .steps import Step, Steps

_START, _VALUE, _ARGUMENTS, _CALL, _UNKNOWN = "", "value", "arguments", "call", "unknown"
"""What may come before a text: nothing, a value, the begin of the arguments, the end of a call, or what no template
tells."""
_ANY = "\ue000"
"""In the text of a trial, a name."""
_MOST_NAME = 99
_PLAIN = string.ascii_letters + string.digits + "_-."
"""The usual characters of names. A name that has others is left to the instructions."""


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
    """A text, what comes before it, and how what comes after it begins, as far as that is known. ``parts``: texts, and
    between them the classes of names. ``long``: arguments begin in it, or a call ends, so that it makes events before
    its end."""

    after: str
    parts: tuple[str, ...]
    ahead: str
    long: bool


class _Place(NamedTuple):
    """A place between two texts: what is there, and how that begins; None: nothing is, so that the text begins."""

    after: str
    begins: str | None = None


class _Name(NamedTuple):
    """A run of a class of characters."""

    chars: str


def _texts(tree: n.Node, alphabet: Alphabet) -> list[_Text]:
    """The texts of the calls of the tree."""
    found: dict[_Text, None] = {}
    for body in once(tree):
        if isinstance(body, n.Body) and body.calls is not None:
            for arguments, start in product((2, 0), range(len(body.lead) + 1)):
                parts = [body.lead[start:], *_parts(body.calls, alphabet, arguments)]
                found |= dict.fromkeys(_between(parts))
    return list(found)


def _between(parts: Iterable[str | _Name | _Place]) -> Iterator[_Text]:
    """The texts between two places, and the long ones up to a value: after another one, a next call may begin."""
    places, texts = [_Place(_START)], [[""]]
    for part in parts:
        if isinstance(part, str):
            texts[-1][-1] += part
        elif isinstance(part, _Name):
            texts[-1] += part.chars, ""
        else:
            places.append(part)
            texts.append([""])
    texts[-1][-1] = texts[-1][-1].rstrip()  # the turn may end before white space
    places.append(_Place(_START, ""))
    for at, text in enumerate(texts):
        for end in range(at + 1, len(places)):
            begin, (then, ahead) = places[at].after, places[end]
            long = end > at + 1
            wanted = then == _VALUE if long else text != [""]
            if wanted and _UNKNOWN not in (begin, then):
                yield _Text(begin, tuple(text), texts[end][0] if ahead is None else ahead, long)
            if then not in (_ARGUMENTS, _CALL):
                break
            text = [*text[:-1], text[-1] + texts[end][0], *texts[end][1:]]


def _parts(node: n.Node, alphabet: Alphabet, arguments: int) -> Iterator[str | _Name | _Place]:
    """The node as its template writes it, with ``arguments`` arguments, and two calls where several may come: texts,
    and the places between them."""
    parts: Iterable[n.Node] = ()
    if isinstance(node, (n.Literal, n.Token)):
        yield alphabet.spellings(node.text)[0]
    elif isinstance(node, n.Space):
        yield node.text
    elif isinstance(node, (n.JsonName, n.Name, n.Header)):
        yield _Name(JSON_INSIDE if isinstance(node, n.JsonName) else node.chars)
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


class _Trial:
    """The program of the trials. It stops at each instruction that is not sure, at the stand-ins, and after the text
    where a choice begins or the next step. ``goes_on``: where the machine goes on, of each stop that is not in its
    place. ``compared``: what the program compares the text with, before and after each place in it, by the last
    character before."""

    def __init__(self, code: list[Instruction]) -> None:
        self.code = code
        self.compared: dict[str, list[tuple[str, str]]] = {}
        for text in {*_compared(code)}:
            for at in range(len(text)):
                self.compared.setdefault(text[:at][-1:], []).append((text[:at], text[at:]))
        self.goes_on: dict[int, int] = {}
        trial = [_sure(ins) for ins in code]
        for ip, ins in enumerate(code):
            if ins[0] in (m.CAPTURE, m.CHOICE, m.USUAL):
                here = len(trial)
                self.goes_on |= {here: ip, here + 1: ip}
                if ins[0] == m.CAPTURE:
                    trial += [
                        (m.FOLLOWS, here + 2, stop_finder(_ANY), False),
                        _STOP,
                        (m.LIT, -1 - ip, _ANY, ""),
                    ]
                else:
                    trial += [_MORE if ins[0] == m.CHOICE else _NEXT, trial[ip]]
                trial[ip] = m.JUMP, here
                trial.append((m.JUMP, ip + 1))
        self.stand_ins = len(trial)
        self.program = Program([*trial, *[_STOP] * _FRAMES], 0, self.stand_ins, False, False)

    def run(self, ip: int, text: str, ahead: str, inside: bool) -> tuple[Machine, list[Item], bool] | None:
        """The machine after a run from ``ip`` on, the items that it made, and whether that holds only if no white space
        comes next; None if it cannot tell them. ``inside``: in a call, and after the end of a line."""
        machine = Machine(self.program, Toolset())
        # The length of a stand-in is no number: going back to it is an error.
        stack: list[Any] = [(m.RETURN_ADDRESS, self.stand_ins + at, "", False) for at in range(_FRAMES)]
        machine.stack, machine.ip, machine.calling, machine.line_ended = stack, ip, inside, inside
        for attribute, unset in _UNSET.items():
            setattr(machine, attribute, unset)
        try:
            items = machine.feed(text + ahead)
            solid = False
            while machine.live or machine.base + machine.i < len(text):
                ins = self.program.code[machine.ip]
                if ins[0] == m.SPAN and ins[2].__self__.pattern == WS:
                    solid = True
                    if white := machine.text[machine.i :]:
                        machine.trail.append((ins[1], white, None))
                        machine.i += len(white)
                elif ins is not _NEXT and ins is not _MORE:
                    break
                machine.ip += 1
                items += machine.feed("")
        except TypeError:
            return None
        return (machine, items, solid) if stack and not machine.live else None

    def step(self, ip: int, text: _Text) -> Step | None:
        """The step that reads the text, with as little of what comes after it as tells what the machine does, because
        the machine waits for all of it; None if nothing tells that."""
        for end in range(len(text.ahead) + 1):
            step = self._step(ip, text.parts, text.ahead[:end], text.long)
            if step is not None:
                return step
        return None

    def _step(self, ip: int, parts: tuple[str, ...], ahead: str, long: bool) -> Step | None:
        """The step of a run; None if the run cannot tell what is done."""
        text = "".join(part if at % 2 == 0 else _ANY for at, part in enumerate(parts))
        found = self.run(ip, text, ahead, False)
        if found is None:
            return None
        step = Step()
        machine, made, step.solid = found
        step.long, step.least = long, len(text + ahead)
        step.items = [*_merged(made)]
        kinds = [item[0] for item in step.items]
        captured = [self.code[-1 - kind][1] for kind in kinds if kind < 0]
        read = machine.base + machine.i
        step.ahead = len(text + ahead) - read
        if (
            not kinds
            or not read  # the instructions would be asked for such a step again
            or step.ahead > len(ahead)
            or len(captured) != len(parts) // 2
            or machine.section >= 0
            or not all(kind < 0 or kind in (_LAST if long else _EVENTLESS) for kind in kinds[:-1])
            or not (kinds[-1] < 0 or kinds[-1] in _LAST)
            or not self._matches(step, parts, ahead, captured)
            or (inside := self.run(ip, text, ahead, True)) is None
            or (inside[0].ip, len(inside[0].stack), inside[1]) != (machine.ip, len(machine.stack), made)
        ):
            return None
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
        step.sets = []
        if machine.calling == inside[0].calling:
            step.sets.append(("calling", machine.calling))
        for attribute, unset in _UNSET.items():
            if (value := getattr(machine, attribute)) != unset:
                step.sets.append((attribute, value))
        return step

    def _matches(self, step: Step, parts: tuple[str, ...], ahead: str, captured: list[Names]) -> bool:
        """Finds what matches the step's text. Whether the names in it are read as they were in the trial: they are of
        the class that was asked for, end where it ends, and begin with nothing that the program compares them with."""
        *texts, last = parts[::2]
        texts.append(last + ahead)
        step.text, step.match, step.more = texts[0], None, texts[1:]
        step.whole = len(texts) if captured else None
        found: list[str] = []
        for text, chars, then, names in zip(texts[:-1], parts[1::2], texts[1:], captured, strict=True):
            if names.chars != chars or not then or _reads(names.run, then):
                return False
            plain = _of_names(names.run).rstrip(_ANY)
            compared = {
                after
                for last in {"", text[-1:]}
                for before, after in self.compared.get(last, ())
                if after[0] in plain and text.endswith(before)
            }
            begins = f"(?!{'|'.join(map(re.escape, sorted(compared)))})" if compared else ""
            found.append(f"{re.escape(text)}{begins}([{_ranges(plain)}]{{1,{_MOST_NAME}}})")
        if found or step.solid or step.long:
            solid = f"(?=[^{WHITE}])" if step.long else f"(?![{WHITE}])"
            pattern = re.escape(texts[-1]) + solid * step.solid + "()" * bool(found)
            for before in reversed(found):
                pattern = before + (pattern if step.long else f"(?:{pattern})?")
            step.match = re.compile(pattern, re.DOTALL).match
        return True


def _merged(items: Iterable[Item]) -> Iterator[Item]:
    """The items; neighbouring texts of one region are one."""
    for kind, run in groupby(items, lambda item: item[0] if item[1] else item):
        yield (kind, "".join(item[1] for item in run), None) if isinstance(kind, int) else kind


def _sure(ins: Instruction) -> Instruction:
    """The instruction in a trial."""
    if ins[0] == m.USUAL:
        return m.JUMP, ins[2]
    sure = ins[0] in _SURE
    if ins[0] in (m.SPAN, m.CHARS):
        sure = not _of_names(ins[2])
    return ins if sure else _STOP


def _reads(match: Run, text: str) -> bool:
    found = match(text)
    return found is not None and found.end() > 0


@lru_cache(maxsize=1024)
def _of_names(match: Run) -> str:
    """The characters of names that ``match`` reads."""
    return "".join([char for char in _PLAIN + _ANY if _reads(match, char)])


def _ranges(chars: str) -> str:
    """The inside of a class of these characters of `_PLAIN`. Each range of it compiles as fast as one of them."""
    ranges = re.escape(chars)
    for run in (string.ascii_lowercase, string.ascii_uppercase, string.digits):
        ranges = ranges.replace(run, f"{run[0]}-{run[-1]}")
    return ranges


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
    """The steps for the texts that come after the place; ``ip``: where the code goes on."""
    found: dict[tuple[str, tuple[str, ...]], Step] = {}
    for text in sorted(texts(), key=lambda text: -len("".join(text.parts))):
        if text.after == place and (step := trial().step(ip, text)) is not None:
            found.setdefault((step.text, text.parts[1:]), step)
    return [*found.values()]
