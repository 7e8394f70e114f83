"""A Markdown fence around a JSON answer is markup: ```` ```json\n{…}\n``` ````. A JSON string holds no raw line break,
so no data is lost."""

from __future__ import annotations

from ...core import flow as f
from .. import nodes as n
from ..outline import Turn

_FENCE = n.Many(n.Sequence.of(n.Space(""), "```", n.Many(n.Literal("json"), 0, 1), "\n"), 0, 1)
_END = n.Literal("\n```")


def fence(turn: Turn) -> None:
    if turn.answers:
        turn.lead.append(f.Markup(_FENCE))
        turn.marks.append(_END)
        turn.markup.append(_END)
        turn.looks_for(_END)
