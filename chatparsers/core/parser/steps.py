"""What `USUAL` does in a running machine: it looks for the texts of one place. `usual` finds these texts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import instructions as m

if TYPE_CHECKING:
    from .instructions import Item
    from .machine import Machine
    from .names import Names, Parts

Match = Callable[[str, int], "re.Match[str] | None"]


class Step:
    """What the machine does where a text comes next, of which it reads all but the last ``ahead`` characters.

    ``text``: the text up to its first name. ``match`` matches all of it, and each name as a group; None: it has no
    name. ``more``: the texts after its names, each with what matches all before it. ``names``: of each name, the last
    one first, where its items are, its group, its item if it is plain (`CAPTURE`), what finds its items otherwise, and
    its declared names (`Names`).

    ``items``: those of the trail. ``pushed``: the frames that come onto the stack, after ``popped`` were taken off.
    ``ip``: the next instruction; -1: that of the last frame taken off. ``cut``: it ends with a cut. ``begins``: the
    arguments of a call begin. ``calling``: whether a call is open, None: as before. ``top``: the region of running text
    is content from here on. ``first``: no section comes before it.
    """

    __slots__ = (
        "ahead", "begins", "calling", "cut", "first", "ip", "items", "match", "more", "names", "popped",
        "pushed", "text", "top",
    )  # fmt: skip

    text: str
    ahead: int
    match: Match | None
    more: list[tuple[str, Match]]
    names: list[tuple[int, int, int, Parts, Names | None]]
    items: list[Item]
    popped: int
    pushed: list[tuple[int, int, int, bool]]
    ip: int
    cut: bool
    begins: bool
    calling: bool | None
    top: bool
    first: bool

    def begun(self, machine: Machine, text: str, i: int) -> bool:
        """Whether the window ends within the text, after a first name."""
        for literal, before in self.more:
            found = before(text, i)
            if found is None:
                return False
            at = found.end()
            if len(text) - at <= len(literal) and literal.startswith(text[at:]):
                machine.rest = literal[len(text) - at :]
                return True
        return False


class Steps:
    """The steps of one place of the program, those of longer texts first; ``make`` finds them."""

    __slots__ = ("make", "steps")

    def __init__(self, make: Callable[[], list[Step]]) -> None:
        self.make = make
        self.steps: list[Step] | None = None

    def read(self, machine: Machine, text: str, i: int) -> int:
        """Does what the instructions would do with the text at ``i``, and returns where it ends; -1 if the window holds
        only the beginning of such a text, 0 if the instructions must read it."""
        steps = self.steps
        if steps is None:
            steps = self.steps = self.make()
        match = None
        for step in steps:
            if text.startswith(step.text, i):
                if step.match is None:
                    end = i + len(step.text) - step.ahead
                    break
                match = step.match(text, i)
                if match is not None:
                    end = match.end() - step.ahead
                    break
                if not machine.final and (len(text) - i == len(step.text) or step.begun(machine, text, i)):
                    return -1  # at the end of the first text, a name may come
            elif len(text) - i < len(step.text) and not machine.final and step.text.startswith(text[i:]):
                machine.rest = step.text[len(text) - i :]
                return -1
        else:
            return 0
        if step.cut and machine.flags & m.HELD:
            return 0
        items = step.items
        if match is not None:
            items = items[:]
            for place, group, item, parts, names in step.names:
                if names is not None and names.declared(machine):
                    return 0
                run = name = match[group]
                # As `Machine.named` does, without its list: most names are plain.
                if item == m.NAME:
                    name = machine.tool = machine.tools.meant(run)
                elif item == m.ARG_NAME:
                    machine.arg = run
                elif not item:
                    found = parts(run)
                    if found is None:
                        return 0
                    items[place : place + 1] = machine.named(found)
                    continue
                items[place] = item, run, name
        stack, ip = machine.stack, step.ip
        machine.trail += items
        if step.popped:
            height = len(stack) - step.popped
            if ip < 0:
                ip = stack[height][1]
            del stack[height:]
            if machine.floor > height:
                machine.floor = height
        stack += step.pushed
        if step.cut:
            machine.floor = len(stack)
        if step.begins:
            machine.nth = 0
        if step.top:
            machine.text_region = m.CONTENT
        if step.first:
            machine.section = -1
        if step.calling is not None:
            machine.calling = step.calling
        machine.ip = ip
        return end
