"""Nodes that say how other nodes are read: how often, ahead, by name, as what kind of text, whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ..wrong import described, wrong
from .node import ALWAYS, NEVER, SOMETIMES, Around, Inner, Leaf, Node, Reader, Rules, Silent
from .text import check_bounds


class Tag(Enum):
    """The kinds of a run of text."""

    CONTENT = "content"
    REASONING = "reasoning"
    CALL = "call"
    NAME = "name"
    ID = "id"
    ARG_NAME = "argument name"
    THOUGHT = "thought"
    """Reasoning with its markers: with ``reasoning="inline"`` all of it is content."""
    STRAY = "stray marker"
    """A marker that closes nothing, or a block that is no part of an answer. A diagnostic says so."""
    UNREAD = "unread member"
    """Markup that holds data of a call which the format has no place for. A diagnostic says so."""


@dataclass(frozen=True, slots=True)
class Many(Around, commits=False):
    """``a{least,most}``; ``most`` None: no bound. The parser is greedy: it takes as many as follow."""

    node: Node
    least: int = 0
    most: int | None = None

    def empty(self, rules: Rules) -> int:
        return self.node.empty(rules) if self.least else ALWAYS

    def shown(self) -> str:
        if (self.least, self.most) == (0, 1):
            return f"p.optional({described(self.node)})"
        if self.most is None:
            return f"p.many({described(self.node)}{f', {self.least}' if self.least else ''})"
        return f"p.repeat({described(self.node)}, {self.least}, {self.most})"

    def check(self, reader: Reader) -> None:
        check_bounds(self, self.least, self.most)
        if self.most is None and reader.empty(self.node):
            what = "the repeated part can be empty, so the loop would never end"
            wrong(self, what, "let it begin with a text")


class Look(Around, family=True, empty=SOMETIMES, commits=False):
    """Kinds that look ahead. They have no grammar, so they are only in lenient halves."""

    __slots__ = ()

    def check(self, reader: Reader) -> None:
        if reader.generated:
            mend = "use it in what is parsed alone: p.reads(generated, parsed)"
            wrong(self, "a grammar cannot look ahead", mend)
        found = reader.commitment(self.node)
        if found is not None:
            what = f"{described(found)} commits to a call, and this only looks ahead"
            wrong(self, what, "look for what stands before it")


@dataclass(frozen=True, slots=True)
class Peek(Look):
    """``&a``: succeeds without reading if ``a`` follows. It has no grammar, so it stands only in lenient halves."""

    node: Node

    def shown(self) -> str:
        return f"p.peek({described(self.node)})"


@dataclass(frozen=True, slots=True)
class Not(Look):
    """``!a``: succeeds without reading if ``a`` does not follow. Like `Peek`, it has no grammar."""

    node: Node

    def shown(self) -> str:
        return f"p.negate({described(self.node)})"


class Wrapper(Inner, Around, family=True):
    """Kinds that read the node that they hold as it is."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Rule(Wrapper, check=None):
    """``name <- a``: a named rule, so that `Ref` can repeat or recur on it."""

    name: str
    node: Node

    def shown(self) -> str:
        return f"p.rule({self.name!r}, {described(self.node)})"


@dataclass(frozen=True, slots=True)
class Ref(Leaf, tokens=(), commits=False, check=None):
    """The rule of that name. The check of the tree knows whether there is one."""

    name: str

    def empty(self, rules: Rules) -> int:
        return SOMETIMES if self.name in rules else NEVER

    def shown(self) -> str:
        return f"p.ref({self.name!r})"


@dataclass(frozen=True, slots=True)
class Tagged(Wrapper):
    """Gives the node's text a kind, so that it becomes events. The grammar reads only the node."""

    tag: Tag
    node: Node

    def shown(self) -> str:
        return described(self.node) if self.tag is Tag.CALL else f"p.tag({self.tag}, {described(self.node)})"

    def check(self, reader: Reader) -> None:
        if self.tag in (Tag.NAME, Tag.ID, Tag.ARG_NAME):
            wrong(self, "a name is not tagged text", "use p.name(tool), p.arg_name(arg) or p.id(…)")


@dataclass(frozen=True, slots=True)
class Atomic(Wrapper):
    """Parses the node, and emits nothing of it until it is whole. The grammar reads only the node."""

    node: Node

    def shown(self) -> str:
        return f"p.atomic({described(self.node)})"

    def check(self, reader: Reader) -> None:
        found = reader.commitment(self.node)
        if found is not None:
            wrong(self, f"{described(found)} commits, so nothing can be held", "leave it out of p.atomic()")


@dataclass(frozen=True, slots=True)
class Cut(Silent, empty=ALWAYS, commits=True, shown="p.cut()", check=None):
    """Commits: the parser never goes back before this point, so it emits the held text. Generates nothing."""


@dataclass(frozen=True, slots=True)
class Lenient(Inner, check=None):
    """Two readings: parses ``lenient``, which takes all that models write, and generates only ``strict``."""

    strict: Node
    lenient: Node

    def parts(self, generated: bool) -> tuple[Node, ...]:
        return (self.strict if generated else self.lenient,)

    def shown(self) -> str:
        return f"p.reads({described(self.strict)}, …)"
