"""``<think>…</think>Hello``: a thought of a model whose format declares none, at the start, in any of the usual pairs
of markers."""

from __future__ import annotations

from collections.abc import Iterable

from .. import nodes as n
from ..nodes import Node, Span
from ..outline import Turn
from ..thoughts import THOUGHTS


def _either(markers: Iterable[str], before: Node) -> Node:
    return n.Choice(
        tuple(n.Sequence.of(before, n.Token(text), n.Space("")) for text in dict.fromkeys(markers))
    )


UNDECLARED = n.Think(
    Span(
        _either((open for open, _ in THOUGHTS), n.Sequence(())),
        _either((close for _, close in THOUGHTS), n.Choice.of("\n", "")),
    )
)


def undeclared_thought(turn: Turn) -> None:
    if turn.thought is None and turn.bare and turn.body.reasoning is None:
        turn.thought = UNDECLARED
        turn.before.insert(0, n.Tagged(n.Tag.THOUGHT, UNDECLARED))
