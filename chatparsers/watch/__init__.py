"""Observers of answers: what is found in a stream or a message from outside, and no machine knows."""

from __future__ import annotations

from collections.abc import Sequence

from ..answers.format import Turn
from ..streams.message import Diagnostic, Message
from .after_end import text_after_end
from .looks_like import looks_like_a_call
from .loops import loops, repeated_text, repeated_turn, repeated_turns
from .not_given import tools_not_given
from .other_type import other_type

__all__ = [
    "looks_like_a_call",
    "loops",
    "observe",
    "other_type",
    "repeated_text",
    "repeated_turn",
    "repeated_turns",
    "text_after_end",
    "tools_not_given",
]


def observe(turn: Turn, message: Message, ids: Sequence[int] = (), *, loops: bool = True) -> list[Diagnostic]:
    """What all observers find in an answer. The message stays as it is, complete or not.

    ``message`` is what ``turn`` read, once it is whole; ``ids``: what it read it from, if not from text. ``loops``:
    whether loops are looked for.
    """
    return [
        *tools_not_given(turn, message, ids),
        *looks_like_a_call(turn, message),
        *other_type(turn, message, ids),
        *text_after_end(turn, message),
        *(repeated_text(message) if loops else ()),
    ]
