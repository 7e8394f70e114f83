"""What `USUAL` does in a running machine: it looks for the texts of one place. `usual` finds these texts."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .instructions import ARG_NAME, HELD, NAME

if TYPE_CHECKING:
    from .instructions import Item
    from .machine import Machine
    from .names import Names

Match = Callable[[str, int], "re.Match[str] | None"]


class Step:
    """What the machine does where a text comes next, of which it reads all but the last ``ahead`` characters.

    ``make`` makes the step, or None if there is none; it is None once that is done. Before that, a step has nothing but
    ``text``, ``long`` and ``least``.

    ``solid``: only if no white space comes after the text. ``long``: events are made before the end of the text, so no
    machine waits for it: it is here whole, which is ``least`` characters, or the step is another.

    ``text``: the text up to its first name. ``match`` matches all of it, what must come next, and each name as a group;
    None: a step that is not long has no name, and anything may come. If it is not long, the match may also end after
    any name; ``whole`` is the last group of one that does not. ``more``: the texts after the names. ``names``: of each
    name, where its items are, its group, its item if it is plain, and what it is in the program (`Names`). ``tried``:
    where the program tried to read another name, which may be none that is declared with odd characters.

    ``items``: those of the trail. ``pushed``: the frames that come onto the stack, after ``popped`` were taken off.
    ``ip``: the next instruction; -1: that of the last frame taken off. ``floor``: that of the machine, above the frames
    that stay; -1: nothing cuts. ``sets``: other attributes of the machine, and their values from here on.
    """

    __slots__ = (
        "ahead", "floor", "ip", "items", "least", "long", "make", "match", "more", "names", "popped", "pushed",
        "sets", "solid", "text", "tried", "whole",
    )  # fmt: skip

    make: Callable[[], Step | None] | None
    text: str
    ahead: int
    solid: bool
    long: bool
    least: int
    match: Match | None
    whole: int | None
    more: list[str]
    names: list[tuple[int, int, int, Names]]
    tried: list[Names]
    items: list[Item]
    popped: int
    pushed: list[tuple[int, int, int, bool]]
    ip: int
    floor: int
    sets: list[tuple[str, Any]]


class Steps:
    """The steps of one place of the program, those of longer texts first; ``find`` finds them. ``short``: those that
    are not long; others need ``least`` characters, 0: the steps are not found yet. A step is made when it may be what
    reads a text: what is decided at a cut depends on it, and not on how many answers a process has read."""

    __slots__ = ("find", "least", "short", "steps")

    def __init__(self, find: Callable[[], list[Step]]) -> None:
        self.find = find
        self.least = 0
        self.steps: list[Step] = []
        self.short: list[Step] = []

    def read(self, machine: Machine, text: str, i: int) -> int:
        """Does what the instructions would do with the text at ``i``, and returns where it ends; -1 if the window holds
        only the beginning of such a text, 0 if the instructions must read it."""
        left = len(text) - i
        if not self.least:
            self._set(self.find())
        match = None
        for step in self.short if left < self.least else self.steps:
            if text.startswith(step.text, i):
                if step.make is not None:
                    return self._made(step, machine, text, i)
                if step.match is None:
                    end = i + len(step.text) - step.ahead
                    break
                match = step.match(text, i)
                if match is None:
                    if left == len(step.text) and not machine.final:
                        return -1  # a name may come
                elif match.lastindex == step.whole:
                    end = match.end() - step.ahead
                    break
                elif not machine.final:
                    literal, begun = step.more[(match.lastindex or 1) - 1], text[match.end() :]
                    if literal.startswith(begun):
                        machine.rest = literal[len(begun) :]
                        return -1  # the window ends within the text, after a name
                    match = None
            elif (
                left < len(step.text) and not (machine.final or step.long) and step.text.startswith(text[i:])
            ):
                if step.make is not None:
                    return self._made(step, machine, text, i)
                machine.rest = step.text[left:]
                return -1
        else:
            return 0
        if step.solid and end == len(text) and not machine.final:
            return -1
        if machine.flags & HELD and step.floor >= 0:
            return 0
        for names in step.tried:
            if names.declared(machine):
                return 0
        items = step.items
        if match is not None:
            items = items[:]
            more = 0
            for place, group, item, names in step.names:
                if names.spell is not None and names.declared(machine):
                    return 0
                run = name = match[group]
                # As `Machine.named` does, without its list: most names are plain.
                if item == ARG_NAME:
                    machine.arg = run
                elif item == NAME:
                    name = machine.tool = machine.tools.meant(run)
                elif not item:
                    found = names.parts(run)
                    if found is None:
                        return 0
                    items[place + more : place + more + 1] = machine.named(found)
                    more += len(found) - 1
                    continue
                items[place + more] = item, run, name
        machine.trail += items
        stack, ip = machine.stack, step.ip
        height = len(stack) - step.popped
        machine.ip = ip if ip >= 0 else stack[height][1]
        del stack[height:]
        stack += step.pushed
        if step.floor >= 0:
            machine.floor = height + step.floor
        elif machine.floor > height:
            machine.floor = height
        for attribute, value in step.sets:
            setattr(machine, attribute, value)
        return end

    def _made(self, step: Step, machine: Machine, text: str, i: int) -> int:
        """As `read`, once the step is made."""
        made = step if step.make is None else step.make()
        self._set([one for old in self.steps if (one := made if old is step else old) is not None])
        return self.read(machine, text, i)

    def _set(self, steps: list[Step]) -> None:
        self.steps = steps
        self.short = [step for step in steps if not step.long]
        self.least = min([step.least for step in steps if step.long], default=sys.maxsize)
