"""General nodes of a PEG that streams: rules that go on with one another, and what decides without reading.

A *turn* of a language is a set of `Rules`. Each ends by going on with another (`Go`), so nothing waits on the stack and
what was read is certain. That is a right-linear grammar over nodes: ``top <- call again / marker top / text top``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .nodes import Leaf, Node
from .nodes.node import ALWAYS, SOMETIMES, Silent


class _Flow(Leaf, family=True, tokens=(), commits=False, check=None, shown="flow"):
    """What only rules hold. No author writes it."""

    __slots__ = ()


class Reads(_Flow, family=True, empty=SOMETIMES):
    """Reads text, or nothing; never fails."""

    __slots__ = ()


class Test(_Flow, family=True, empty=ALWAYS):
    """Decides without reading: no way back is kept for it."""

    __slots__ = ()


class Note(_Flow, family=True, empty=ALWAYS):
    """Sets or clears a piece of the state."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Rules(Leaf, tokens=(), empty=SOMETIMES, commits=True, check=None, shown="rules"):
    """Named rules, the first of which is where it begins. Going on with ``end`` leaves them all."""

    rules: tuple[tuple[str, Node], ...]
    end: str = "end"

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return tuple(node for _, node in self.rules)


@dataclass(frozen=True, slots=True)
class Go(Note):
    """Goes on with a rule; what came before is certain. At the end of an option or of a rule."""

    rule: str


@dataclass(frozen=True, slots=True)
class Here(Test):
    """White space or one of the texts is here, whole or begun; ``expected`` of them are named in a diagnostic."""

    texts: tuple[str, ...]
    expected: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Absent(Test):
    """The contrary of `Here`."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Follows(Test):
    """One of the texts is here, whole; or the end of all text."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class If(Test):
    """The flag is set."""

    flag: int


@dataclass(frozen=True, slots=True)
class Counts(Silent, empty=SOMETIMES, commits=False, check=None, shown="counts"):
    """A call that begins here counts: it has one of the ``openers``, or may lack them. In an ``answer`` it may not."""

    openers: tuple[str, ...]
    answer: bool = False


@dataclass(frozen=True, slots=True)
class Over(Test):
    """The text is at its end. (Running text from here on is content, and no call is open.)"""


@dataclass(frozen=True, slots=True)
class Unset(Note):
    """Clears a flag."""

    flag: int


@dataclass(frozen=True, slots=True)
class Region(Note):
    """Sets the region of running text."""

    region: int


@dataclass(frozen=True, slots=True)
class Mark(Note):
    """Puts an item without text on the trail."""

    item: int


@dataclass(frozen=True, slots=True)
class Emit(Note):
    """An instruction that is written as it is."""

    op: int
    operands: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Run(Reads):
    """Text up to the first of ``stops``; at the end of all text goes on with ``over``, and ``missing`` is noted."""

    region: int
    stops: tuple[str, ...]
    over: str | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True)
class One(Reads):
    """Any character, of the region."""

    region: int


@dataclass(frozen=True, slots=True)
class Unopened(Reads):
    """Notes a marker that opens nothing here; a text that ends in it goes on with ``over``."""

    texts: tuple[str, ...]
    over: str


@dataclass(frozen=True, slots=True)
class Gap(Reads):
    """White space between two parts of a turn. ``section``: a whole section is before it."""

    section: bool


@dataclass(frozen=True, slots=True)
class Blank(Reads):
    """White space, without that with which a marker begins."""


class _Holds(Node, family=True, tokens=(), check=None, shown="holds", commits=False):
    """Holds a node."""

    __slots__ = ()
    node: Node

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return (self.node,)

    def empty(self, rules: Any) -> int:
        return self.node.empty(rules)


@dataclass(frozen=True, slots=True)
class Shared(_Holds):
    """The node, whose code is in the program once for each place. ``after``: the nodes after it, as far as known."""

    node: Node
    after: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Guarded(_Holds):
    """The node; where it fails after it committed, goes on with ``broken`` in a call, else with ``closed``."""

    node: Node
    broken: str
    closed: str


@dataclass(frozen=True, slots=True)
class Held(_Holds):
    """The node, of which nothing is certain before it is whole; what failed is not tried again from within it."""

    node: Node


@dataclass(frozen=True, slots=True)
class Markup(_Holds):
    """The node, all of whose text is markup; content, where reasoning is content."""

    node: Node


@dataclass(frozen=True, slots=True, eq=False)
class Turn(_Holds):
    """The rules of a turn. ``texts``: where something may begin in running text; ``stops``: what ends the turn;
    ``ends``: what ends the text after a broken call; ``openers``: what begins a call as it is written."""

    node: Rules
    texts: tuple[str, ...]
    stops: tuple[str, ...]
    ends: Any
    openers: tuple[str, ...] = ()
