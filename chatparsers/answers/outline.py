"""A turn while it is lowered: what may come where, before it is written as rules. Mends add to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from ..core import flow as f
from ..core.machine import instructions as m
from ..core.machine.code import BrokenEnds
from ..core.nodes.node import ALWAYS
from ..core.tree import first, head
from . import nodes as n
from .nodes import Node, Span


@dataclass
class Turn:
    """Each list holds options of a place of the turn, in the order in which they are tried."""

    body: n.Body
    bare: bool
    """Whether the body is all of the turn's tree."""
    stops: tuple[str, ...]
    """The texts that end the turn."""
    inner: tuple[str, ...]
    """Special tokens that are only within something: text in running text."""
    closing: tuple[str, ...]
    """Special tokens with which something ends and nothing begins."""
    thought: n.Think | None
    declared: bool
    inline: bool
    answers: bool
    """The content is JSON."""
    loose: Node | None
    """Calls as JSON that may be the whole answer, if the request wants them read."""
    before: list[Node] = field(default_factory=list)
    """What stands before the reasoning."""
    lead: list[Node] = field(default_factory=list)
    """Before what begins."""
    begin: list[Node] = field(default_factory=list)
    """At the start of the turn and after a thought."""
    sections: list[Node] = field(default_factory=list)
    marks: list[Node] = field(default_factory=list)
    strays: list[Node] = field(default_factory=list)
    """What is tried after the sections: options that go on by themselves."""
    closers: list[Node] = field(default_factory=list)
    """The same, where no opener was read as text."""
    after: list[Node] = field(default_factory=list)
    """Right after a section."""
    thinking: list[Node] = field(default_factory=list)
    """Where a call begins in open reasoning."""
    calls: Node | None = None
    """The calls of the body, where they count."""
    openers: tuple[str, ...] = ()
    """The texts with which calls are written."""
    forms: list[Node] = field(default_factory=list)
    """The calls of running text that may lack their opener."""
    exits: list[Node] = field(default_factory=list)
    ends: list[Node] = field(default_factory=list)
    starts: tuple[str, ...] = ()
    found: dict[str, None] = field(default_factory=dict)
    """The texts at which something may begin in running text."""
    markup: list[Node] = field(default_factory=list)
    """Other markup of running text; it ends what is left of a broken call."""

    def looks_for(self, *nodes: Node) -> None:
        """Running text ends where one of these begins."""
        self.found.update((text, None) for node in nodes for text in first(node))

    @property
    def texts(self) -> tuple[str, ...]:
        return tuple(self.found)

    @property
    def answer_begins(self) -> tuple[str, ...]:
        return ("{", "[") if self.answers else ()

    @property
    def opens_thought(self) -> tuple[str, ...]:
        return first(self.thought.span.open) if self.declared and self.thought is not None else ()

    def broken_ends(self, inside: set[str]) -> BrokenEnds:
        """What ends the text after a call of this body that went wrong. ``inside``: tokens only of arguments."""
        within = {text for text in self.found for one in self.starts if one != text and one.endswith(text)}
        unclosed = tuple(t for t in self.found if t not in self.opens_thought and t not in within)
        marks = self.markup
        begun = {text for mark in marks for text in first(mark)} | {*self.starts} | inside
        broken = tuple(text for text in unclosed if text not in begun)
        if self.exits or marks:
            return BrokenEnds(unclosed, broken, n.Choice.of(*self.exits, *map(head, marks)))
        return BrokenEnds(unclosed, broken)


def section(node: Node) -> Node:
    """A part that recovers: after a failure in a call the rest of the call is read over."""
    return n.Sequence((f.Guarded(node, "broken", "again"), f.Go("again")))


def marker(node: Node, inline: bool) -> Node:
    """A marker of reasoning; ``inline``: it is content, as the reasoning is."""
    return n.Tagged(n.Tag.CONTENT, node) if inline else f.Markup(node)


def unmistakable(openers: tuple[str, ...], special: frozenset[str] = frozenset()) -> bool:
    """Whether an opener of reasoning counts anywhere: no text spells it, or it has the bar of a special token."""
    return bool(special.intersection(openers)) or any("|" in text for text in openers)


def up_to(
    span: Span,
    region: int,
    begins: Iterable[str],
    exits: list[Node],
    other: list[Node],
    inline: bool,
    over: str,
    then: tuple[Node, ...],
) -> Node:
    """The text of a span and its closer: ``text <- run (closer then / &exit over / other / any text)``."""
    closers = first(span.close) if span.close is not None else ()
    stops = tuple([*closers, *begins, *(t for node in exits for t in first(node))])
    missing = "" if span.optional else " or ".join(map(repr, closers))
    ways = [] if span.close is None else [parted(one) for one in _options(span.close)]
    options: list[Node] = [
        n.Sequence((marker(end, inline), f.Go(f"closed{place}"))) for place, (end, _) in enumerate(ways)
    ]
    out = [n.Sequence((n.Peek(marker(node, inline)), f.Go(over))) for node in exits]
    options += [*out, *other, n.Sequence((f.One(region), f.Go("text")))]
    rules = {"text": n.Sequence((f.Run(region, stops, over, missing), n.Choice.of(*options)))}
    for place, (_, rest) in enumerate(ways):
        rules[f"closed{place}"] = n.Sequence((f.Region(m.CONTENT), marker(rest, inline), *then))
    return f.Rules(tuple(rules.items()), "done")


def parted(marker: Node) -> tuple[Node, Node]:
    items = marker.items if isinstance(marker, n.Sequence) else (marker,)
    last = next((at for at in range(len(items), 0, -1) if items[at - 1].empty(()) < ALWAYS), len(items))
    return n.Sequence.of(*items[:last]), n.Sequence.of(*items[last:])


def _options(closer: Node) -> tuple[Node, ...]:
    if isinstance(closer, n.Lenient):
        closer = closer.inner(False)
    return closer.options if isinstance(closer, n.Choice) else (closer,)


@dataclass(frozen=True, slots=True)
class Answer(f.Reads):
    """A JSON answer."""

    region: int


@dataclass(frozen=True, slots=True)
class JsonIf(f.Reads):
    """A JSON value of which ``wanted(machine)`` is true; ``expected`` names it."""

    wanted: Callable[[Any], Callable[[Any], bool]]
    expected: str
