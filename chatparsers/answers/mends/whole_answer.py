"""```` ```json\n{"name": "get_weather", "arguments": {…}}\n``` ````: an answer that is nothing but calls as JSON, where
the format writes them in another way. Only if the request wants them read (``lenient_calls``)."""

from __future__ import annotations

from ...core import flow as f
from ...core.machine import instructions as m
from ...core.machine.code import NEVER
from .. import nodes as n
from ..outline import Loose, Turn, section


def whole_answer(turn: Turn) -> None:
    if turn.loose is not None:
        own, end = n.Choice.of(NEVER, *turn.exits), n.Choice.of(n.End(), *turn.ends)
        turn.begin.append(section(n.Sequence((f.Unset(m.WITHOUT_OPENER), Loose(turn.loose, own, end)))))
