"""What machines of a program did before: the same text at the same place is not read again. Only an accelerator.

Strategy: what a machine does with a piece follows from where it is (`Spot`) and from the piece; values aside, which
differ each time. So a spot keeps, for each piece that was read there, the items and the spot after it. A run that comes
to an argument's value is kept for the least text that leads there: more text changes nothing, as a stream is the same
in every cut. A value goes to its transcoder, and the spot after it is known, too.

Invariants: a run is kept only if a machine made it, and nothing is kept that depends on more than its key: no
diagnostic, which has a position, and no place inside a value. A spot belongs to a program and to the names of its
tools, and to the schema of the tool whose call is open (``tool``).

What is learnt must pay: each run that is kept costs a credit, and each run that is found again earns one. So texts that
never come again cost no more than the first credits.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import Any

from ..core.machine import instructions as m
from ..core.machine.instructions import Instruction, Item, Program
from ..core.machine.machine import Machine
from ..schema.tools import Toolset
from .state import StateKind

enabled = os.environ.get("CHATPARSERS_ACCELERATOR", "on") != "off"
"""Whether streams that begin now remember what machines did. They read the same without."""

_CREDITS = 128
MOST_CREDITS = 4096
"""How many runs are learnt before one is found again, and how many of those found again count."""
_REST = 16
"""After how many runs that are not looked at there is a credit again."""
_MOST_LEADS = 32
_MOST_SPOTS = 2048
_MOST_TOOLS = 256
_LONGEST = 64
"""The longest piece that is kept, and the longest held text."""
_LOOKS = 8
"""How many characters after a run decide that a value begins."""
_DIFFER = {m.NOTE, m.ARGUMENT, m.BROKEN_VALUE}
"""Items that are not the same the next time."""


class Run:
    """What a machine made of a text at a spot: the ``items``, and the spot ``here`` after the first ``end`` characters.
    ``acts``: the items do more than to pass over text of ``regions``, each with its place, ``length`` in all."""

    __slots__ = ("acts", "end", "here", "items", "length", "regions")

    def __init__(self, items: list[Item], here: Spot, end: int) -> None:
        self.items, self.here, self.end = items, here, end
        self.acts = any([item[0] not in (m.MARKUP, m.CALL) for item in items])
        self.regions: list[tuple[int, int]] = []
        self.length = 0
        for kind, raw, _ in items:
            if raw and (not self.regions or self.regions[-1][1] != kind):
                self.regions.append((self.length, kind))
            self.length += len(raw)


def _in_call(machine: Machine) -> bool:
    """Whether a call may be open: the name of its tool counts, and its arguments so far."""
    return machine.calling or bool(machine.trail)


def _places(machine: Machine) -> tuple[int | None, int | None, int | None]:
    """The places that a machine knows, from its window; None for those to which it cannot go back any more."""
    base = first = machine.base
    for item in machine.trail:
        first -= len(item[1])
    return (
        machine.furthest - base if machine.furthest >= first else None,
        machine.drafted - base if machine.drafted >= first else None,
        machine.section - base if machine.section >= first else None,
    )


class Spot:
    """A place of a machine between two pieces.

    ``runs``: by the piece, what is read of it. ``leads``: the texts after which a value begins, the longest first.
    ``value``: the instruction of the value that begins here; ``after``: the spot after it. ``waiting``: as
    `Machine.waiting`, and ``region``. ``moved``: the spot after running text that was read here, by whether it ends a
    line. ``tool``: what the request declares of the open call's tool. ``stands``: what `state_of` says here.
    """

    __slots__ = (
        "after", "known", "leads", "moved", "name", "region", "runs", "stands", "state", "text", "tool", "value",
        "waiting",
    )  # fmt: skip

    def __init__(
        self, known: Known, machine: Machine, tool: object, value: Instruction | None, text: str
    ) -> None:
        self.known = known
        self.runs: dict[str, Run] = {}
        self.leads: list[tuple[str, Run]] = []
        self.value = value
        self.after: Spot | None = None
        self.moved: dict[bool, Spot | None] = {}
        self.stands: dict[bool, tuple[StateKind, str]] = {}
        self.region = machine.region
        self.tool = tool
        open = _in_call(machine)
        self.name = machine.tool if open else ""
        self.text = text
        self.waiting = None if value is not None else machine.waiting()
        self.state = (
            machine.ip, machine.stack.copy(), machine.floor, machine.flags, machine.trail.copy(), machine.live,
            machine.text_region, machine.calling, machine.tool if open else "", machine.arg if open else "",
            machine.nth if open else 0, machine.left if open else (), machine.line_ended, machine.fence,
            *_places(machine), machine.wanted.copy(),
        )  # fmt: skip

    def restore(self, machine: Machine, position: int) -> None:
        """Puts the machine here; ``position``: the end of the text before the next piece."""
        (
            machine.ip, stack, machine.floor, machine.flags, trail, machine.live,
            machine.text_region, machine.calling, machine.tool, machine.arg,
            machine.nth, machine.left, machine.line_ended, machine.fence,
            furthest, drafted, section, wanted,
        ) = self.state  # fmt: skip
        machine.stack, machine.trail = stack.copy(), trail.copy()
        machine.text, machine.value = self.text, None
        machine.base = base = position - len(self.text)
        machine.wanted = wanted.copy()
        machine.furthest = -1 if furthest is None else base + furthest
        machine.drafted = -1 if drafted is None else base + drafted
        machine.section = -1 if section is None else base + section

    def lead(self, text: str) -> Run | None:
        """What is read of ``text`` up to a value, if that is known."""
        for lead, run in self.leads:
            if text.startswith(lead):
                return run
        return None

    def declared(self, tools: Toolset) -> bool:
        """Whether ``tools`` declare the open call's tool as the request did with which this place was learnt."""
        return not self.name or tools.get(self.name) is self.tool


class Known:
    """The spots of the machines of one program, for tools of the same names."""

    __slots__ = ("credits", "passed", "spots")

    def __init__(self) -> None:
        self.spots: dict[Any, Spot] = {}
        self.credits = _CREDITS
        self.passed = 0
        """How many runs were not looked at, for want of credits."""

    def looks(self) -> bool:
        """Whether it pays to ask where a machine is."""
        if self.credits <= 0:
            self.passed += 1
            if self.passed % _REST == 0:
                self.credits = 1
        return self.credits > 0

    def spot(self, machine: Machine, value: Instruction | None = None) -> Spot | None:
        """Where the machine is; None inside a value, and where too much is held. ``value``: the instruction, where a
        value begins."""
        trail, text = machine.trail, machine.text if value is None else ""
        if machine.value is not None or machine.final or len(trail) > 24 or len(text) > _LONGEST:
            return None
        for item in trail:
            if item[0] in _DIFFER or len(item[1]) > _LONGEST:
                return None
        floor = machine.floor
        stack = machine.stack
        for at, (kind, ip, length, calling) in enumerate(stack):
            if length and (at < floor or kind != m.CHOICE_POINT):
                stack[at] = kind, ip, 0, calling
        open = _in_call(machine)
        places = _places(machine)
        if places[0] is None:
            machine.furthest, machine.wanted = -1, []
        if not machine.program.lines:
            machine.line_ended = True
        tool = machine.tools.get(machine.tool) if open and machine.tool else None
        key = (
            machine.ip, text, tuple(stack), floor, machine.flags, tuple(trail), machine.live,
            machine.text_region, machine.calling, machine.line_ended, machine.fence,
            (machine.tool, id(tool), machine.arg, machine.nth, machine.left) if open else None,
            places, tuple(machine.wanted),
        )  # fmt: skip
        found = self.spots.get(key)
        if found is None:
            if len(self.spots) >= _MOST_SPOTS:
                self.spots.clear()
            found = self.spots[key] = Spot(self, machine, tool, value, text)
        return found

    def after(self, spot: Spot, machine: Machine) -> Spot | None:
        """The spot after the value that begins at ``spot``, and has begun in ``machine``."""
        later = Machine(machine.program, machine.tools)
        spot.restore(later, 0)
        later.ip += 1
        later.nth, later.left, later.line_ended = machine.nth, machine.left, True
        later.furthest = later.drafted = later.section = -1
        return self.spot(later)

    def moved(self, spot: Spot, machine: Machine, line: bool) -> Spot | None:
        """The spot after running text that was read at ``spot``; ``line``: it ends a line."""
        if line not in spot.moved:
            later = Machine(machine.program, machine.tools)
            spot.restore(later, 0)
            later.skip_to(1, "", line)
            spot.moved[line] = self.spot(later)
        return spot.moved[line]

    def learn(self, spot: Spot, machine: Machine, text: str, items: list[Item], position: int) -> Spot | None:
        """Keeps that a machine at ``spot`` read ``text``, which begins at ``position``, and is where it is now. Returns
        that spot, if it is one."""
        self.credits -= 1
        value = machine.program.code[machine.ip]
        begins, read = value_begins(machine), len(text) - len(machine.text)
        if begins and (machine.live or read < 0):  # the value begins in a piece before, which was held
            return None
        here = self.spot(machine, value if begins else None)
        if here is None or len(text) > _LONGEST or any([item[0] in _DIFFER for item in items]):
            return here
        if here.value is None:
            spot.runs[text] = Run(items, here, len(text))
            return here
        if len(spot.leads) >= _MOST_LEADS:
            return here
        for end in range(read, min(read + _LOOKS, len(text)) + 1):
            trial = Machine(machine.program, machine.tools)
            spot.restore(trial, position)
            made = trial.feed(text[:end], -1, True)
            if value_begins(trial) and made == items and self.spot(trial, value) is here:
                spot.leads.append((text[:end], Run(items, here, read)))
                spot.leads.sort(key=_longest_first)
                break
        return here


def _longest_first(lead: tuple[str, Run]) -> int:
    return -len(lead[0])


def value_begins(machine: Machine) -> bool:
    """Whether the machine paused where the value of an argument begins."""
    ins = machine.program.code[machine.ip]
    return ins[0] == m.VALUE and ins[1] == m.ARGUMENT and machine.value is None


@lru_cache(maxsize=64)
def _known(program: Program, names: tuple[str, ...]) -> Known:
    return Known()


def known(program: Program, tools: Toolset) -> Known | None:
    """What is known of a program with such tools; None if nothing is to be remembered."""
    names = tools.names() if enabled else ()
    return _known(program, names) if enabled and len(names) <= _MOST_TOOLS else None
