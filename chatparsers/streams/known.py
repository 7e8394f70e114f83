"""What machines of a program did before: the same text at the same place is not read again. Only an accelerator.

Strategy: what a machine does with a text follows from where it is (`Spot`) and from the text; values and running text
aside, which differ each time. So a spot keeps the items of what was read there, and the spot after it. A run that comes
to an argument's value or to running text is kept for the least text that leads there: more text changes nothing, as a
stream is the same in every cut. Any other is kept for its piece. A value goes to its transcoder, running text up to the
next stop is an item, and the spot after either is known, too. So a piece of any length is read from place to place.
Where a piece ends within such a text, the way of a machine through it (`Way`) tells what is read so far. Text that has
made no items is held and comes again with more, so that spots do not depend on the cuts.

Invariants: a run is kept only if a machine made it, and nothing is kept that depends on more than its key: no
diagnostic, which has a position, and no place inside a value. A spot belongs to a program and to the names of its
tools, and to the schema of the tool whose call is open (``tool``). Threads share what is known: it is whole before
another one can find it.

What is learnt must pay: each run that is kept costs a credit, and one that is found again earns it, if it is more than
markup. So texts that never come again cost no more than the first credits. Nor do they stay: too much is let go of.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from ..compiled import ACCELERATOR
from ..core.machine import instructions as m
from ..core.machine.instructions import Instruction, Item, Program
from ..core.machine.machine import Machine
from ..core.machine.value import Transcoder
from ..schema.tools import Toolset
from .state import StateKind

enabled = ACCELERATOR
"""Whether streams that begin now remember what machines did. They read the same without."""

_CREDITS = 192
_MOST_CREDITS = 4096
"""How many runs are learnt before one is found again, and how many of those found again count."""
_REST = 16
"""After how many runs that are not looked at there is a credit again."""
_MOST_LEADS, _MOST_WITHIN, _MOST_FIRST, _MOST_SPOTS, _MOST_TOOLS, _MOST_LEARNT = 32, 512, 64, 2048, 256, 4096
_LONGEST = 64
"""The longest piece that is kept, and the longest held text."""
_LONGEST_LEAD = 256
MOST_AT_ONCE = 4096
"""How much text a machine gets at once to be learnt from."""
_FAR = 1 << 20
_LOOKS = 8
"""How many characters after a run decide that a value begins."""
_DIFFER = {m.NOTE, m.ARGUMENT, m.BROKEN_VALUE}
"""Items that are not the same the next time."""
_PLAIN = {m.MARKUP, m.CALL, m.CALL_BEGIN, m.NAME, m.ID, m.ARGS_BEGIN, m.ARG_NAME, m.CALL_END}
"""Items of a call as it should be."""
_kind = itemgetter(0)


class Run:
    """What a machine made of a text at a spot: the ``items``, and the spot ``here`` after the first ``end`` characters;
    the others are held. ``line``: where in a line the spot has to be, if the machine asked for that. ``passes``: all is
    markup; nothing begins, and the tool of the open call stays.

    ``regions``: those of the text, each with its place, ``length`` in all. ``marks``: what the items say of a call,
    each with its place; ``names`` are those of arguments. ``plain``: the items are those of a call as it should be.
    """

    __slots__ = ("end", "here", "items", "length", "line", "marks", "names", "passes", "plain", "regions")

    def __init__(
        self, spot: Spot, items: list[Item], here: Spot, end: int, line: m.Line | None = None
    ) -> None:
        self.here, self.end, self.line = here, end, line
        self.length, self.plain = 0, True
        stays = (here.tool is spot.tool or not here.name) and here.value is None
        self.passes = stays and line is None and (here.waiting is None or here is spot)
        self.items = self.marks = self.regions = self.names = _NONE
        if items:
            self._split(_joined(items))

    def _split(self, items: list[Item]) -> None:
        self.items, self.marks, self.regions = items, [], []
        for kind, raw, value in items:
            region = min(kind, m.CALL)
            if raw and (not self.regions or self.regions[-1][1] != region):
                self.regions.append((self.length, region))
            if kind > m.CALL:
                self.marks.append((kind, self.length, value))
            self.length += len(raw)
        self.names = [value for kind, _, value in self.marks if kind == m.ARG_NAME]
        self.plain = _PLAIN.issuperset(map(_kind, items))
        self.passes = self.passes and not any(map(_kind, items))


_NONE: list[Any] = []  # nobody adds to it


def _joined(items: list[Item]) -> list[Item]:
    """The items, with each run of one kind of markup as one item."""
    joined: list[Item] = []
    for kind, run in groupby(items, key=_kind):
        if kind == m.MARKUP or kind == m.CALL:
            joined.append((kind, "".join([raw for _, raw, _ in run]), None))
        else:
            joined += run
    return joined


def _in_call(machine: Machine) -> bool:
    """Whether a call may be open: the name of its tool counts, and its arguments so far."""
    return machine.calling or bool(machine.trail)


def _first(machine: Machine) -> int:
    """Where that begins which a machine holds, or may yet take back."""
    return machine.base - sum([len(raw) for _, raw, _ in machine.trail])


def _places(machine: Machine, first: int) -> tuple[int | None, int | None, int | None]:
    """The places that a machine knows, from its window; None for those before ``first``: it cannot go back to them."""
    base = machine.base
    return (
        machine.furthest - base if machine.furthest >= first else None,
        machine.drafted - base if machine.drafted >= first else None,
        machine.section - base if machine.section >= first else None,
    )


class Spot:
    """A place of a machine between two pieces.

    ``runs``: by the piece, what is read of it. ``leads``: the texts after which a value or running text begins, a
    longer one before its beginnings; those of an origin with their `Way`. ``value``: the instruction of the value that
    begins here; once one began, ``make`` makes its reader and ``after`` is the spot after it. ``running``: the region
    of the running text that goes on here, and what finds its end; ``moved``: the spot after some of it. ``text``: what
    the machine holds; ``far``: the end of the text before it, if that is all there is, else one that no text reaches.
    ``waiting``: as `Machine.waiting`. ``tool``: what is declared of the open call's tool, ``name``. ``stands``: what
    `state_of` says. ``once``: the beginnings of long texts that came once. ``over``: the end of the answer brings
    nothing here.

    A spot where nothing begins is one of those ``within`` another, the ``origin``, which is itself elsewhere:
    ``before`` is the text from there. The ``state`` of a machine within is only found once somebody asks.
    """

    __slots__ = (
        "after", "before", "far", "known", "leads", "make", "moved", "name", "once", "origin", "over", "running",
        "runs", "stands", "state", "text", "tool", "value", "waiting", "within",
    )  # fmt: skip
    after: Spot
    far: int
    text: str

    def __init__(self, known: Known, tool: object, name: str, origin: Spot | None, before: str) -> None:
        self.known = known
        self.tool, self.name = tool, name
        self.origin = self if origin is None else origin
        self.before = before
        self.within: dict[tuple[str, int], Spot] = {} if origin is None else origin.within
        self.runs: dict[str, Run] = {}
        self.leads: list[tuple[str, Run, Way | None]] = _NONE
        self.once: set[str] = set()
        self.over = False
        self.value: Instruction | None = None
        self.make: Callable[[], Transcoder] | None = None
        self.running: tuple[int, Any] | None = None
        self.moved: Spot | None = None
        self.stands: dict[bool, tuple[StateKind, str]] = {}
        self.waiting: tuple[int, Any] | None = None
        self.state: tuple[Any, ...] | None = None

    def stand(self, machine: Machine, text: str, begins: bool) -> None:
        """Notes where the machine is that holds ``text``, and what ``begins`` or goes on there."""
        ins = machine.program.code[machine.ip]
        running = ins[0] == m.TEXT and not machine.live
        self.value = ins if begins and not running else None
        self.running = (ins[1], ins[2]) if running and not text else None
        self.waiting = None if self.value is not None or text else machine.waiting()
        self.keep(machine, text)

    def keep(self, machine: Machine, text: str) -> None:
        """Notes the state of the machine, which is here and holds ``text``."""
        open, first = _in_call(machine), _first(machine)
        self.text = text
        self.far = _FAR if first else machine.base + len(text)
        self.state = (
            machine.ip, machine.stack.copy(), machine.floor, machine.flags, machine.trail.copy(), machine.live,
            machine.text_region, machine.calling, machine.tool if open else "", machine.arg if open else "",
            machine.nth if open else 0, machine.left if open else (), *_places(machine, first), machine.wanted.copy(),
        )  # fmt: skip

    def restore(self, machine: Machine, position: int, value: Transcoder | None = None) -> None:
        """Puts the machine here, or into the ``value`` that began here; ``position``: the end of the text before it."""
        if self.state is None:
            self.origin.restore(machine, position - len(self.before))
            machine.feed(self.before)
            self.keep(machine, machine.text)
            return
        (
            machine.ip, stack, machine.floor, machine.flags, trail, machine.live,
            machine.text_region, machine.calling, machine.tool, machine.arg,
            machine.nth, machine.left, furthest, drafted, section, wanted,
        ) = self.state  # fmt: skip
        machine.stack, machine.trail = stack.copy(), trail.copy()
        machine.text, machine.value = self.text, value
        if value is not None:
            assert self.after.state is not None
            machine.nth, machine.left = self.after.state[10:12]
        machine.base = base = position - len(self.text)
        machine.wanted = wanted.copy()
        machine.furthest = -1 if furthest is None else base + furthest
        machine.drafted = -1 if drafted is None else base + drafted
        machine.section = -1 if section is None else base + section

    def begin(self, machine: Machine) -> Transcoder:
        """Makes the reader of the value that begins here."""
        if self.make is None:
            assert self.value is not None
            self.restore(machine, _FAR)
            make = self.value[2](machine)
            self.after, self.make = self.known.after(machine), make
        return self.make()

    def run(self, text: str, i: int, machine: Machine) -> Run | None:
        """What is read of ``text`` from ``i`` on, if that is known."""
        run = self.runs.get(text[i:]) if len(text) - i <= _LONGEST_LEAD else None
        if run is not None and (run.here.tool is self.tool or self._goes(run, machine)):
            return run
        for lead, run, _ in self.leads:
            if text.startswith(lead, i) and (run.here.tool is self.tool or self._goes(run, machine)):
                return run
        return self._on_the_way(text[i : i + _LONGEST_LEAD], machine) if i < len(text) else None

    def _goes(self, run: Run, machine: Machine) -> bool:
        """Whether the run is that of this request: the same place of another may have another schema."""
        here = run.here
        return here.tool is self.tool or not here.name or machine.tools.get(here.name) is here.tool

    def _on_the_way(self, text: str, machine: Machine) -> Run | None:
        """What is read of ``text``, if it goes on with a lead of the origin, up to where one of them ends."""
        origin, fed, begin = self.origin, self.before + text, len(self.before)
        for lead, run, way in origin.leads:
            whole = fed.startswith(lead)
            if not (whole or lead.startswith(fed)) or way is None or not origin._goes(run, machine):
                continue
            if not whole:
                count, name, at = way.steps[len(fed)]
                if name is not None:
                    at = max(at, begin)
                    here = self if at == begin else origin.place(fed[:at], name, machine)
                    found = Run(self, way.items[way.steps[begin][0] : count], here, at - begin)
                    end = bisect_right(way.steps, at, key=itemgetter(2))
                    self.runs.update([(lead[begin:i], found) for i in range(max(at, begin + 1), end)])
                    return found
            elif begin <= run.end:
                found = Run(self, way.items[way.steps[begin][0] :], run.here, run.end - begin)
                self.lead(lead[begin:], found)
                return found
        return None

    def lead(self, text: str, run: Run, way: Way | None = None) -> None:
        """Keeps what is read of a text after which a value or running text begins."""
        others = [one for one in self.leads if one[0] != text]
        self.leads = sorted([*others, (text, run, way)], key=itemgetter(0), reverse=True)

    def place(self, before: str, name: str, machine: Machine) -> Spot:
        """The spot after the text ``before``, in a call of the tool ``name``, if nothing begins there."""
        tool = machine.tools.get(name) if name else None
        key = before, id(tool)
        found = self.within.get(key)
        if found is None:
            if len(self.within) >= _MOST_WITHIN:
                self.within.clear()
            found = self.within[key] = Spot(self.known, tool, name, self, before)
        return found


class Way:
    """How a machine goes through a text from the origin to the spot ``here``, which begins after ``read`` characters.
    ``lead``: the least text that leads there, or none. ``steps``: after each character, how many ``items`` there are,
    the tool of the call that is open, None where no spot is, and the character after which both were so first."""

    __slots__ = ("items", "lead", "steps")

    def __init__(self, origin: Spot, text: str, read: int, here: Spot, machine: Machine) -> None:
        name: str | None = origin.name
        count = since = 0
        self.lead, self.items = "", []
        self.steps: list[tuple[int, str | None, int]] = [(0, name, 0)]
        trial = Machine(machine.program, machine.tools)
        origin.restore(trial, origin.far)
        for at, char in enumerate(text, 1):
            if not trial.hold(char):
                self.items += trial.feed(char, -1, True)
                begins = _begins(trial, True)
                if begins and at >= read and trial.base == origin.far + read:
                    self.lead = text[:at] if origin.known.spot(trial, True) is here else ""
                    return
                none = begins or trial.value is not None or not _DIFFER.isdisjoint(map(_kind, trial.trail))
                now = None if none else trial.tool if _in_call(trial) else ""
                if now != name or len(self.items) != count:
                    count, name, since = len(self.items), now, at
            self.steps.append((count, name, since))


class Known:
    """The spots of the machines of one program, for tools of the same names; the ``first`` are where streams begin."""

    __slots__ = ("credits", "first", "learnt", "spots")

    def __init__(self) -> None:
        self.spots: dict[Any, Spot] = {}
        self.first: dict[Machine, Spot | None] = {}
        self.credits, self.learnt = _CREDITS, 0

    def looks(self) -> bool:
        """Whether it pays to ask where a machine is."""
        if self.credits <= 0:
            self.credits += 1
        return self.credits > 0

    def begin(self, machine: Machine) -> Spot | None:
        """Where a stream is that begins with a copy of the machine; None for the first, maybe the only one."""
        if machine in self.first:
            found = self.first.get(machine)  # another thread may have cleared it
            if found is None:
                found = self.first[machine] = self.spot(machine.copy())
            return found
        if len(self.first) >= _MOST_FIRST:
            self._forget()
        self.first[machine] = None
        return None

    def _forget(self) -> None:
        """Lets go of all: spots know one another, so none would go alone."""
        self.learnt = 0
        self.spots.clear()
        self.first.clear()

    def spot(self, machine: Machine, begins: bool = False) -> Spot | None:
        """Where the machine is; None inside a value, and where too much is held. ``begins``: a value or running text
        begins here, and what is unread is no part of the place: None if the machine looked at it."""
        if begins and max(machine.furthest, machine.drafted, machine.section) > machine.base:
            return None
        trail, text = machine.trail, "" if begins else machine.text
        if machine.value is not None or machine.final or len(trail) > 24 or len(text) > _LONGEST:
            return None
        for item in trail:
            if item[0] in _DIFFER or len(item[1]) > _LONGEST:
                return None
        floor, stack = machine.floor, machine.stack
        for at, (kind, ip, length, calling) in enumerate(stack):
            if length and (at < floor or kind != m.CHOICE_POINT):
                stack[at] = kind, ip, 0, calling
        open, first = _in_call(machine), _first(machine)
        places = _places(machine, first)
        if places[0] is None:
            machine.furthest, machine.wanted = -1, []
        tool = machine.tools.get(machine.tool) if open and machine.tool else None
        key = (
            machine.ip, text, tuple(stack), floor, machine.flags, tuple(trail), machine.live, machine.text_region,
            (machine.tool, id(tool), machine.arg, machine.nth, machine.left) if open else None,
            machine.calling, places, tuple(machine.wanted), not first,
        )  # fmt: skip
        found = self.spots.get(key)
        if found is None:
            if len(self.spots) >= _MOST_SPOTS:
                self._forget()
            found = Spot(self, tool, machine.tool if open else "", None, "")
            found.stand(machine, text, begins)
            self.spots[key] = found
        return found

    def later(self, spot: Spot, machine: Machine, text: str, made: list[Item]) -> Spot | None:
        """Where the machine is that made the items of ``text`` at the spot, as `spot`, if no value begins there. It is
        still at the spot if it holds all of a short text."""
        if machine.value is not None or machine.final or not _DIFFER.isdisjoint(map(_kind, machine.trail)):
            return None
        name, before = machine.tool if _in_call(machine) else "", spot.before + text
        if name == spot.name and len(text) <= _LONGEST and not (made or machine.asked):
            return spot
        running = machine.program.code[machine.ip][0] == m.TEXT and not machine.live
        if running or machine.asked or len(before) > _LONGEST_LEAD:  # within, a place is found without asking
            return self.spot(machine)
        found = spot.origin.place(before, name, machine)
        if found.state is None:
            found.keep(machine, machine.text)
        return found

    def after(self, machine: Machine) -> Spot:
        """The spot after the value that begins where the machine is."""
        machine.ip += 1
        machine.furthest = machine.drafted = machine.section = -1
        after = self.spot(machine)
        assert after is not None  # nothing is held
        return after

    def moved(self, spot: Spot, machine: Machine) -> Spot:
        """The spot after running text that was read at ``spot``."""
        if spot.moved is None:
            later = Machine(machine.program, machine.tools)
            spot.restore(later, _FAR)
            later.skip_to(_FAR + 1, "")
            spot.moved = self.spot(later)
            assert spot.moved is not None  # running text is no value
        return spot.moved

    def learn(
        self, spot: Spot, machine: Machine, text: str, position: int, items: list[Item], line: m.Where
    ) -> Run | None:
        """Has the machine read ``text``, which begins at ``position``, at ``spot``: ``items`` gets what it makes of it.
        Keeps that, if it is short, and returns it; None if the machine comes to no spot."""
        self.credits = min(self.credits, _MOST_CREDITS) - 1 or -_REST
        self.learnt += 1
        if self.learnt > _MOST_LEARNT:
            self._forget()
        spot.restore(machine, position)
        machine.asked, ip = False, machine.ip
        made = machine.feed(text, -1, True, line)
        read = len(text) - len(machine.text)
        begins = _begins(machine, read > 0 or machine.ip != ip)
        here = None if begins else self.later(spot, machine, text, made)
        if begins and not machine.live and read >= 0:  # else it begins in a piece before, which was held
            here = self.spot(machine, True)
        again = begins and here is None
        begun = line and line() if again or machine.asked else None
        items += made
        if again:
            more = machine.feed("", -1, False, line)
            items += more
            made, begins, here = made + more, False, self.spot(machine)
        if here is None:
            return None
        end = read if begins else len(text) if made or here is not spot else 0
        run = Run(spot, made, here, end, begun if machine.asked else None)
        if not _DIFFER.isdisjoint(map(_kind, made)):
            return run
        if not begins or machine.asked:
            if len(text) <= _LONGEST:
                spot.runs[text] = run
            return run
        origin, begin = spot.origin, len(spot.before)
        if len(text) > _LONGEST and text[:read] not in spot.once:
            spot.once.add(text[:read])
        elif begin + read <= _LONGEST_LEAD and len(origin.leads) < _MOST_LEADS:
            way = Way(origin, spot.before + text[: read + _LOOKS], begin + read, here, machine)
            same = begin or _joined(way.items) == run.items
            if way.lead and same and _DIFFER.isdisjoint(map(_kind, way.items)):
                spot.lead(way.lead[begin:], run)
                origin.lead(way.lead, Run(origin, way.items, here, begin + read), way)
        return run


def _begins(machine: Machine, moved: bool) -> bool:
    """Whether the machine is where the value of an argument begins, or running text, if it has ``moved`` there."""
    ins = machine.program.code[machine.ip]
    if ins[0] == m.TEXT:
        return moved and not machine.live
    return ins[0] == m.VALUE and ins[1] == m.ARGUMENT and machine.value is None


@lru_cache(maxsize=64)
def _known(program: Program, names: tuple[str, ...]) -> Known:
    return Known()


def known(program: Program, tools: Toolset) -> Known | None:
    """What is known of a program with such tools; None if nothing is to be remembered."""
    names = tools.names() if enabled else ()
    return _known(program, names) if enabled and len(names) <= _MOST_TOOLS else None
