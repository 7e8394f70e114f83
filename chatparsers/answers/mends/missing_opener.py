"""``<function=get_weather>…``, ``get_weather<arg_key>city…``, ``<|DSML|tool_calls>``: the opener of the calls is
missing, or spelt otherwise. The call counts at the start of a line, not within a Markdown fence (unless that is the
whole answer) or an answer with an opener of its own, if it names a declared tool. A diagnostic tells it.

This is the one rule for all such forms, those of a format's module too: `Counts` stands before each call that may lack
its opener (openers.py).
"""

from __future__ import annotations

from ...core import flow as f
from ...core.machine import instructions as m
from .. import nodes as n
from ..nodes import Node
from ..openers import counts_in
from ..outline import Turn, section
from ..without_opener import without_opener


def missing_opener(turn: Turn) -> None:
    calls = turn.body.calls
    bare = None if calls is None else without_opener(calls, turn.inner)
    if bare is not None:
        lacking = n.Sequence((f.Counts(()), f.Shared(bare)))
        turn.begin.append(section(lacking))
        turn.after.append(section(lacking))
    if turn.forms:
        turn.begin.append(_fenced(turn))


def _fenced(turn: Turn) -> Node:
    """An answer that is one fence, with nothing in it but calls without their opener."""
    space, ended = n.Space(""), n.Choice.of(*turn.ends, n.End())
    begin = f.Markup(n.Sequence.of(space, "```", n.Chars(r"^`\n", 0)))
    end = f.Markup(n.Sequence.of(space, "```", space, n.Peek(ended)))
    forms = [
        n.Sequence((n.Not(f.Counts(before.openers, answer=True)), f.Shared(calls)))
        for calls in turn.forms
        for before in counts_in(calls)
    ]
    after = [n.Sequence((f.Markup(n.Sequence.of("\n", space)), form)) for form in forms]
    held = f.Held(n.Sequence((begin, n.Choice.of(*forms, *after), end)))
    return n.Sequence((f.Here(("```",)), held, f.Unset(m.HELD), f.Emit(m.CUT), f.Go("again")))
