"""``<tool_calls>\n</tool_calls>``: the model opened a section of calls and then made none. It is markup, no text."""

from __future__ import annotations

from ...definition import nodes as n
from ...definition.without_calls import without_calls
from .. import flow as f
from ..outline import Turn


def empty_section(turn: Turn) -> None:
    without = None if turn.body.calls is None else without_calls(turn.body.calls)
    if without is not None:
        turn.strays.append(n.Sequence((f.Markup(without), f.Go("closed"))))
        turn.markup.append(without)
        turn.looks_for(without)
