"""``Hello.\\n<think>Wait.</think>Bye.``: a thought after the answer began. Its opener stands at the start of a line,
not in a Markdown fence, and its closer comes before another opener and the end of the turn. A diagnostic tells it."""

from __future__ import annotations

from ...core import flow as f
from ...core.machine import instructions as m
from ...core.machine.code import NEVER
from .. import nodes as n
from ..nodes import Node
from ..outline import Turn, marker, unmistakable, up_to


def thought_again(turn: Turn) -> None:
    if turn.thought is None or not turn.declared or unmistakable(turn.opens_thought):
        return
    span, inline = turn.thought.span, turn.inline
    exits: list[Node] = [n.Literal(text) for text in (*turn.starts, *turn.stops)]
    region = m.CONTENT if inline else m.REASONING
    note = f.Emit(m.NOTED, ("stray-marker", 0, "no thought after the answer began"))
    opened = n.Sequence((n.LineStart(), note, marker(n.Sequence.of(n.Space(""), span.open), inline)))
    closed = up_to(span, region, (), exits, [], inline, "open", (f.Go("whole"),))
    thought = f.Rules((("thought", n.Sequence((opened, closed))), ("open", NEVER)), "whole")
    again = (f.Held(thought), f.Unset(m.HELD), f.Emit(m.CUT), f.Go("closed"))
    turn.strays.append(n.Sequence((f.Here(turn.opens_thought), *again)))
