"""``Hello!</function>``: an end of a call that the format itself names (``p.body(closers=…)``) and that closes nothing
is markup, unless its opener was read as text before it."""

from __future__ import annotations

from ...core import flow as f
from .. import nodes as n
from ..outline import Turn


def known_closers(turn: Turn) -> None:
    if turn.body.closers is not None:
        end = n.Tagged(n.Tag.STRAY, turn.body.closers)
        turn.closers.append(n.Sequence((f.Markup(end), f.Go("closed"))))
        turn.markup.append(end)
        turn.looks_for(end)
