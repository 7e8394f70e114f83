"""``Hello!</tool_call>``: a closer that closes nothing is markup, unless its opener was read as text before it. So
is an end of a call that the format itself names (``p.body(closers=…)``)."""

from __future__ import annotations

from collections.abc import Iterable

from ...core import flow as f
from .. import nodes as n
from ..nodes import Node
from ..outline import Turn


def strays(closers: Iterable[str]) -> Node:
    return n.Choice.of(*(n.Tagged(n.Tag.STRAY, n.Token(text)) for text in closers))


def stray_closer(turn: Turn) -> None:
    turn.found.update(dict.fromkeys((*turn.closing, *turn.inner)))
    if turn.closing:
        here = f.Here(turn.closing, turn.closing)
        stray = n.Sequence((here, f.Blank(), f.Markup(strays(turn.closing)), f.Go("closed")))
        turn.closers.append(stray)
    if turn.body.closers is not None:
        end = n.Tagged(n.Tag.STRAY, turn.body.closers)
        turn.closers.append(n.Sequence((f.Markup(end), f.Go("closed"))))
        turn.markup.append(end)
        turn.looks_for(end)
