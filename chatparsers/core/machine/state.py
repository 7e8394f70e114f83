"""The state of a machine, which is plain data: its window of the text, its stack and its trail; and the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from . import instructions as m
from .instructions import Item, Program
from .value import Transcoder

if TYPE_CHECKING:
    from typing_extensions import Self


class Names(Protocol):
    """A set of names that is given at run time, as the tools of a request. `meant`: the name of the set that a name
    means; `get`: what is known of a name, None if it is not of the set."""

    kept: dict[Any, Any]
    """What is kept with the set."""

    def get(self, name: str) -> Any: ...
    def meant(self, name: str) -> str: ...
    def names(self) -> Any: ...


_MOST_WANTED = 6
"""The most expectations that a diagnostic names."""


class MachineState:
    """What a machine keeps between two pieces.

    ``ip``: the instruction that comes next. ``text``: the window, which is unread, and ``base``, where it is. ``live``:
    there is a choice point to which the machine may go back. ``text_region``: the region of running text. ``calling``:
    a call is open, with the names ``tool`` and ``arg``. ``nth``: how many arguments of the call came without names.
    ``left``: which declared arguments have not come, where a value asks. ``asked``: an instruction asked where in a
    line it is; ``seen``: what it found, after so many items. ``furthest``, ``wanted``: the furthest place where an
    instruction failed, and what was expected there. ``drafted``: calls in open reasoning that begin before this place
    are a draft. ``section``: the place after the last section and the white space after it; -1 if none comes before.
    """

    __slots__ = (
        "arg", "asked", "base", "calling", "cut_off", "drafted", "final", "flags", "floor", "furthest", "ip", "left",
        "live", "nth", "program", "section", "seen", "stack", "text", "text_region", "tool", "tools", "trail", "value",
        "wanted",
    )  # fmt: skip

    def __init__(self, program: Program, tools: Names) -> None:
        self.program = program
        self.tools = tools
        self.ip = program.start
        self.text = ""
        self.base = 0
        self.final = False
        self.cut_off = False
        self.stack: list[tuple[int, int, int, bool]] = []
        self.floor = 0
        self.flags = 0
        self.trail: list[Item] = []
        self.value: Transcoder | None = None
        self.live = False
        self.asked = False
        self.text_region = m.CONTENT
        self.calling = False
        self.tool = ""
        self.arg = ""
        self.nth = 0
        self.left: tuple[str, ...] = ()
        self.furthest = -1
        self.wanted: list[str] = []
        self.drafted = -1
        self.section = -1

    def copy(self) -> Self:
        """An independent copy at this point."""
        other = self.__class__.__new__(self.__class__)
        other.program, other.tools, other.text_region = self.program, self.tools, self.text_region
        other.text, other.base, other.ip = self.text, self.base, self.ip
        other.final, other.cut_off = self.final, self.cut_off
        other.stack, other.floor, other.flags = self.stack.copy(), self.floor, self.flags
        other.trail, other.live = self.trail[:], self.live
        other.value = self.value.copy() if self.value is not None else None
        other.calling, other.tool, other.arg, other.nth = self.calling, self.tool, self.arg, self.nth
        other.asked, other.left, other.wanted = self.asked, self.left, self.wanted.copy()
        other.furthest, other.drafted, other.section = self.furthest, self.drafted, self.section
        return other

    def hold(self, piece: str) -> bool:
        """Adds ``piece`` to the window, if the open value or the next instruction holds all that is unread with it."""
        ins = self.program.code[self.ip]
        held = False
        if self.value is not None:
            held = self.value.holds(self.text + piece)
        elif ins[0] == m.LIT:
            text = self.text + piece
            for literal, _ in ins[2]:
                held = len(text) < len(literal) and literal.startswith(text)
                if held or text.startswith(literal):
                    break
        if held:
            self.text += piece
        return held

    def skip_to(self, position: int, held: str) -> None:
        """Continues at ``position`` of the text, where ``held`` begins: others read what is before it (`waiting`)."""
        self.base, self.text = position, held

    def _undecided(self) -> bool:
        """Whether there is a live choice point, so that the text after it may yet be read in another way."""
        return self._oldest() >= 0

    def _oldest(self) -> int:
        """Where the oldest live choice point is in the stack; -1 if there is none."""
        stack = self.stack
        for height in range(self.floor, len(stack)):
            if stack[height][0] == m.CHOICE_POINT:
                return height
        return -1

    def _final(self, length: int) -> list[Item]:
        """Takes the first ``length`` items off the trail: they are below the oldest live choice point."""
        items = self.trail[:length]
        if items:
            del self.trail[:length]
            for height in range(self.floor, len(self.stack)):
                kind, ip, after, calling = self.stack[height]
                self.stack[height] = (kind, ip, after - length, calling)
        return items

    def _go_back(self, length: int, text: str, i: int) -> tuple[str, int]:
        """Takes all items after the first ``length`` off the trail. Returns the window, and the index in it at which
        the text of these items begins."""
        raw = "".join([item[1] for item in self.trail[length:]])
        del self.trail[length:]
        if len(raw) <= i:
            return text, i - len(raw)
        self.base += i - len(raw)
        return raw + text[i:], 0

    def _wanted(self, i: int, what: str) -> None:
        """Remembers what was expected at the furthest place reached, for diagnostics."""
        at = self.base + i
        if at > self.furthest:
            self.furthest = at
            self.wanted = [what]
        elif at == self.furthest and len(self.wanted) < _MOST_WANTED and what not in self.wanted:
            self.wanted.append(what)

    def _expected(self, at: int) -> str:
        return " or ".join(self.wanted) if at == self.furthest else ""
