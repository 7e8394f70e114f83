"""Where in a format's tree a reader is, and the name of an argument that no schema lists."""

from __future__ import annotations

from dataclasses import dataclass

from ...answers.nodes import Node
from ...schema.tools import Tool
from ..ir import EMPTY, Chars, Ir, Lang, Part, Rep, Seq, Text, charset, seq, without
from ..regular.regex import read_regex
from ..schemas import Located


@dataclass(frozen=True, slots=True)
class At:
    """Where a node is: what is known on the way down to it."""

    thoughts: bool
    """Whether reasoning is generated."""
    tool: Tool | None = None
    """The tool whose call it is in."""
    call: Node | None = None
    """That call."""
    schemas: tuple[Located, ...] = ()
    """The schemas of the argument that is being written."""
    other: OtherName | None = None
    """The name of that argument, if the schema does not list it."""


@dataclass(slots=True)
class OtherName:
    """The name of an argument that the schema does not list: its language, and the node made of it."""

    name: Lang
    node: Lang | None = None
    twice: bool = False
    """Whether the name is written twice, which no grammar can say of any name."""

    def made(self, chars: str, escaped: str) -> Ir:
        ranges = read_regex(f"^{chars}$")
        assert isinstance(ranges, Chars)
        plain = Part(
            Rep(Chars(without(ranges.ranges, charset(escaped))), max(1, self.name.least), self.name.most)
        )
        self.node = Lang((*self.name.parts, plain))
        return self.node

    def beside(self, whole: Ir) -> Ir:
        """The argument, with its name and the texts beside it joined to one piece, because some engines read the
        longest piece and do not go back."""
        items = list(whole.items) if isinstance(whole, Seq) else [whole]
        if self.node not in items:
            return whole
        at = items.index(self.node)
        before = items[at - 1] if at and isinstance(items[at - 1], Text) else EMPTY
        after = items[at + 1] if at + 1 < len(items) and isinstance(items[at + 1], Text) else EMPTY
        parts = tuple(Part(seq(before, part.node, after), part.positive) for part in self.node.parts)
        begin = at - (before is not EMPTY)
        following = at + 1 + (after is not EMPTY)
        return Seq((*items[:begin], Lang(parts), *items[following:]))
