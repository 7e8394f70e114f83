"""``get_weather<arg_key>city…``: the opener of the calls is missing. A declared name and a marker that only calls have
tell it, at the start of the turn or of an answer, and after a call."""

from __future__ import annotations

from ...core import flow as f
from ..outline import Turn, section
from ..without_opener import without_opener


def missing_opener(turn: Turn) -> None:
    bare = None if turn.body.calls is None else without_opener(turn.body.calls, turn.inner)
    if bare is not None:
        turn.begin.append(section(f.Shared(bare)))
        turn.after.append(section(f.Shared(bare)))
