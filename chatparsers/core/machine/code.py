"""The code of a program while it is written: instructions, labels, and the control flow that all nodes share."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

from ..nodes import Node, Not, Sequence
from . import instructions as m
from .alphabet import Alphabet
from .instructions import Instruction
from .stops import StopFinder

WHITE = " \t\r\n"
_character = re.compile("(?s:.)?").match

NEVER: Node = Not(Sequence(()))
"""Matches nowhere: nothing never fails to follow."""


@lru_cache(maxsize=1024)
def stop_finder(*stops: str) -> StopFinder:
    """Programs look for the same stops in many places; what finds them is made once."""
    return StopFinder(stops)


@dataclass(frozen=True, slots=True, eq=False)
class BrokenEnds:
    """Where the text after a call that went wrong is over. Before a body, no such place is known.

    ``unclosed``: the texts that end the text after a call that is not closed. No thought begins there. ``broken``:
    those of them that also end the rest of a broken call, whatever follows them: no section begins with them, and they
    are in other places than arguments too. ``begun``: the beginning of a section, which ends both only if it is there
    whole.
    """

    unclosed: tuple[str, ...] = ()
    broken: tuple[str, ...] = ()
    begun: Node = NEVER


class Place(NamedTuple):
    """Where a node is: the region of the text that it reads, the region of its markers, what ends the text after a
    call in it that went wrong, and the nodes after it, as far as they are known."""

    region: int
    markup: int
    ends: BrokenEnds
    after: tuple[Node, ...] = ()

    @property
    def markers(self) -> Place:
        """The place of the markers here."""
        return Place(self.markup, self.markup, self.ends)


class Label:
    """A place in the code that instructions name before it is known."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        self.at = -1


class Code:
    """Instructions, in the order in which they are emitted. ``node`` emits those of a node at its place; the compiler
    sets it. ``other`` gives the forms of a text in which it is read beside its own."""

    node: Callable[[Node, Place], None]

    def __init__(self, alphabet: Alphabet, other: Callable[[str], Iterable[str]] = lambda text: ()) -> None:
        self.alphabet = alphabet
        self.other = other
        self.instructions: list[Instruction] = [(m.FAIL,)]
        self.entries: dict[Hashable, tuple[Label, Callable[[], Any]]] = {}
        """The subroutines, each with what emits it."""

    def emit(self, *instruction: Any) -> None:
        """Appends an instruction. `linked` turns its `Label` operands into places."""
        self.instructions.append(instruction)

    def place(self, *labels: Label) -> None:
        """Sets the labels to the present end of the code."""
        for label in labels:
            label.at = len(self.instructions)

    def here(self) -> Label:
        """A new label, set to the present end of the code."""
        label = Label()
        self.place(label)
        return label

    def called(self, node: Node, at: Place) -> None:
        """Calls the code of ``node`` as a subroutine, which is in the program once for each place."""
        self.subroutine((id(node), *at[:3], *map(id, at.after)), partial(self.node, node, at))

    def subroutine(self, key: Hashable, code: Callable[[], Any]) -> None:
        """Calls what ``code`` emits. It is in the program once for each key."""
        if key not in self.entries:
            self.entries[key] = Label(), code
        self.emit(m.CALLSUB, self.entries[key][0])

    def linked(self) -> list[Instruction]:
        """The code and its subroutines, with a place instead of each label."""
        emitted = 0
        while emitted < len(self.entries):  # the code of one may call others
            for entry, code in list(self.entries.values())[emitted:]:
                self.place(entry)
                code()
                self.emit(m.RETURN)
                emitted += 1
        return [
            tuple([x.at if type(x) is Label else x for x in instruction])
            if Label in map(type, instruction)
            else instruction
            for instruction in self.instructions
        ]

    def attempt(self, code: Callable[[], Any], done: Label, leave: int = m.COMMIT) -> None:
        """Emits ``code`` as the first alternative of a choice. If it succeeds, the machine goes to ``done``; if it
        fails, the machine tries the code that follows. With `BACK` for ``leave``, success reads nothing."""
        otherwise = Label()
        self.emit(m.CHOICE, otherwise)
        code()
        self.emit(leave, done)
        self.place(otherwise)

    def choice_of(self, options: list[Callable[[], Any]]) -> None:
        """Emits the options of an ordered choice."""
        done = Label()
        for option in options[:-1]:
            self.attempt(option, done)
        options[-1]()
        self.place(done)

    def any_number(self, code: Callable[[], Any]) -> None:
        """Emits ``code`` as a loop that ends when it fails."""
        loop = self.here()
        self.attempt(code, loop)

    def up_to(self, times: int, code: Callable[[], Any]) -> None:
        """Emits ``code`` as often as ``times`` says. The machine tries each only after the one before it succeeded."""
        done = Label()
        for _ in range(times):
            more = Label()
            self.emit(m.CHOICE, done)
            code()
            self.emit(m.COMMIT, more)
            self.place(more)
        self.place(done)

    def text(self, region: int, stops: Iterable[str], over: Label | None = None, missing: str = "") -> None:
        """Reads text of ``region`` up to the first of ``stops``. At the end of the whole text, goes to ``over``, and
        notes what is ``missing`` there."""
        after = Label()
        self.emit(m.TEXT, region, stop_finder(*self.spellings(stops)), over or after, missing)
        self.place(after)

    def any_character(self, region: int) -> None:
        """Reads a character of ``region``, whatever it is."""
        self.emit(m.CHARS, region, _character, "a character", 1, 1)

    def unless(self, texts: Iterable[str], there: Label, expected: Iterable[str] = ()) -> None:
        """Goes ``there`` if neither white space nor one of ``texts`` follows; ``expected`` are those that a diagnostic
        names."""
        finder = stop_finder(*self.spellings(texts))
        self.emit(m.UNLESS, there, finder, tuple(map(repr, expected)))

    def follows(self, there: Label, texts: Iterable[str], end: bool = False) -> None:
        """Goes ``there`` if one of ``texts`` follows, or if ``end``, the end of the text."""
        self.emit(m.FOLLOWS, there, stop_finder(*self.spellings(texts)), end)

    def forms(self, text: str, own: bool = False) -> tuple[str, ...]:
        """The forms in which ``text`` may be in the machine's text; ``own``: without the ``other`` ones."""
        found = self.alphabet.written(text)
        return found if own else (*found, *(other for form in found for other in self.other(form)))

    def spellings(self, texts: Iterable[str]) -> list[str]:
        """Those of all ``texts`` for which a text is searched: a blank begins none, unless it begins its text."""
        return [
            form for text in texts for form in self.forms(text) if form[:1] not in WHITE or text[:1] in WHITE
        ]
