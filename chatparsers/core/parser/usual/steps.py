"""What usually follows in a call, read in one step: `USUAL` of the machine's table.

A call's markup is nearly always what its template writes: the opener, the name, the way to the next value, the end.
Read one by one, these are a hundred small instructions. `USUAL` compares the window with such a text and does at once
what they would do; if the window holds only its beginning, the machine waits. Nothing in such a text becomes final
before its end, so no event comes later for it.

`texts` reads the texts off the tree, `trial` runs the program over each. The steps of a place are made when the machine
first comes there, so a format whose calls nobody reads costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from ...definition import nodes as n
from ...definition.tree import once
from .. import instructions as m
from ..alphabet import Alphabet
from ..code import WHITE
from .texts import JSON_INSIDE, START, Atom, Text, texts
from .trial import Done, behind, trial

if TYPE_CHECKING:
    from ..instructions import Instruction, Item

__all__ = ["Step", "Steps", "usual"]

_MOST_NAME = 99
_WHITE = tuple(WHITE)
_PLAIN = {JSON_INSIDE: r'[^"\\\x00-\x1f]'}
"""Classes of names, and the usual characters of them: a name with an escape is left to the instructions."""

Run = Callable[[str, int], "re.Match[str] | None"]


class Step:
    """A text that the machine reads at once, and what it then does.

    ``parts``: its texts, and what matches its names.
    """

    __slots__ = (
        "ahead",
        "begins",
        "calling",
        "cut",
        "ip",
        "items",
        "names",
        "parts",
        "popped",
        "pushed",
        "top",
    )

    def __init__(self, atoms: tuple[Atom, ...], done: Done, no_token: str) -> None:
        self.parts: list[str | Run] = [
            atom.text if atom.kind == "text" else _run(atom.text, no_token)
            for atom in atoms
            if atom.kind != "next"
        ]
        self.ahead = atoms[-1].text if atoms[-1].kind == "next" else None
        """What must follow: this text, or if it is empty, no white space; None if it does not matter."""
        self.ip = done.ip
        self.popped = done.popped
        # The lengths of choice points are not needed: a cut has ended all of them.
        self.pushed = [(frame.kind, frame.target, 0, bool(frame.calling)) for frame in done.frames]
        self.calling = done.calling
        self.top = done.top
        self.cut = done.cut
        self.names = done.names
        self.items = list(_merged(done.items))
        self.begins = any(item[0] == m.ARGS_BEGIN for item in done.items)

    def find(self, text: str, i: int, final: bool) -> tuple[int, list[str]] | str | None:
        """Where the text ends that begins at ``i``, and its names; what comes next, up to a name, if the window is only
        the beginning of it; None if it is not. ``final``: no more text will come."""
        names: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                if text.startswith(part, i):
                    i += len(part)
                elif not final and len(text) - i < len(part) and part.startswith(text[i:]):
                    return part[len(text) - i :]
                else:
                    return None
            else:
                match = part(text, i)
                end = match.end() if match is not None else i
                if end == len(text):
                    return None if final else ""
                if match is None:
                    return None
                names.append(text[i:end])
                i = end
        ahead = self.ahead
        if ahead is not None:
            if not final and (i == len(text) or (len(text) - i < len(ahead) and ahead.startswith(text[i:]))):
                return ""
            if not text.startswith(ahead, i) or (not ahead and text.startswith(_WHITE, i)):
                return None
        return i, names


class Steps:
    """The steps of one place of the program; ``make`` makes them."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], list[Step]]) -> None:
        self._make = make
        self._made: list[Step] | None = None

    def find(self, text: str, i: int, final: bool) -> tuple[Step | None, Any]:
        """The step that reads the window from ``i`` on, with where it ends and its names; or None, with what comes next
        if the window is the beginning of such a text, else None. ``final``: no more text will come."""
        if self._made is None:
            self._made = self._make()
        for step in self._made:
            found = step.find(text, i, final)
            if found is not None:
                return (None if isinstance(found, str) else step), found
        return None, None


def _merged(items: list[Item]) -> Iterator[Item]:
    """The items; neighbouring texts of one region are one."""
    for kind, run in groupby(items, lambda item: item[0] if item[1] else item):
        yield (kind, "".join(item[1] for item in run), None) if isinstance(kind, int) else kind


def _run(name: str, no_token: str) -> Run:
    """Matches a name of usual length."""
    return re.compile(f"(?:{no_token}{_PLAIN.get(name, name)}){{1,{_MOST_NAME}}}", re.DOTALL).match


def usual(code: list[Instruction], entry: int, tree: n.Node, alphabet: Alphabet) -> None:
    """Puts `USUAL` into the code where something usual may follow: where a call may begin, behind each value, behind
    the begin of the arguments and behind the end of a call."""
    if not any(isinstance(node, n.Body) and node.calls is not None for node in once(tree)):
        return
    plain = code[:]
    found = cache(partial(texts, tree, alphabet))
    points = {entry: START} | {
        ip + 1: place for ip, ins in enumerate(plain) if (place := behind(ins)) is not None
    }
    for ip, place in points.items():
        if plain[ip][0] != m.RECOVER:  # a frame names its place
            # The instruction that stood here moves to the end of the code, and the code goes on behind it.
            code += [plain[ip], (m.JUMP, ip + 1)]
            code[ip] = (m.USUAL, Steps(partial(_steps, plain, ip, place, found, alphabet)), len(code) - 2)


def _steps(
    plain: list[Instruction], ip: int, place: str, found: Callable[[], list[Text]], alphabet: Alphabet
) -> list[Step]:
    """The steps over the texts that stand behind the place."""
    steps: dict[tuple[Atom, ...], Step] = {}
    for text in found():
        if text.behind == place:
            for atoms in _looking(text):
                done = trial(plain, ip, atoms, alphabet)
                if done is not None:
                    steps.setdefault(atoms, Step(atoms, done, alphabet.no_token))
                    break
    return list(steps.values())


def _looking(text: Text) -> Iterator[tuple[Atom, ...]]:
    """The text; then with what must be known of what follows: that it is no white space, or how it usually begins."""
    yield text.atoms
    if text.atoms[-1].kind != "next":
        yield (*text.atoms, Atom("next"))
        if text.ahead:
            yield (*text.atoms, Atom("next", text.ahead))
