"""``<think>I call <tool_call>{…}</tool_call>`` and the turn ends: calls in a thought that is still open count if the
turn ends with them; else they are a draft, and reasoning."""

from __future__ import annotations

from ...core import flow as f
from ...core.machine import instructions as m
from ...core.machine.code import NEVER
from ...core.tree import first
from .. import nodes as n
from ..outline import Turn
from .stray_closer import strays


def call_in_thought(turn: Turn) -> None:
    body, think = turn.body, turn.thought
    if turn.calls is None or think is None or think.span.close is None:
        return
    closer, space = think.span.close, n.Space("")
    called = f.Shared(turn.calls)
    ended = n.Peek(n.Choice.of(*turn.ends, n.End()))
    over = n.Choice.of(ended, n.Sequence.of(space, ended))  # an end may itself begin with white space
    closed = n.Many(n.Sequence.of(space, closer), 0, 1)
    own = first(closer)
    others = [text for text in turn.closing if text not in own]
    known = [] if body.closers is None else [n.Tagged(n.Tag.STRAY, body.closers)]
    stray = n.Choice.of(strays(others) if others else NEVER, *known)
    after = n.Sequence.of(n.Many(n.Sequence.of(space, stray)), closed, over)
    held = f.Held(n.Sequence((called, n.Many(n.Sequence((space, called))), f.Markup(after))))
    turn.thinking.append(n.Sequence((held, f.Unset(m.HELD), f.Emit(m.CUT), f.Go("top"))))
