"""``<tool_calls>\n</tool_calls>``: the model opened a section of calls and then made none. It is markup, no text."""

from __future__ import annotations

from ...core import flow as f
from .. import nodes as n
from ..outline import Turn
from ..without_calls import without_calls


def empty_section(turn: Turn) -> None:
    without = None if turn.body.calls is None else without_calls(turn.body.calls)
    if without is not None:
        turn.strays.append(n.Sequence((f.Markup(n.Tagged(n.Tag.STRAY, without)), f.Go("closed"))))
        turn.markup.append(without)
        turn.looks_for(without)
