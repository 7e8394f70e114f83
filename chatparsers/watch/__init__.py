"""Observers of answers: what is found in a stream or a message from outside, and no machine knows."""

from __future__ import annotations

from collections.abc import Sequence

from ..answers.format import Turn
from ..streams.message import Diagnostic, Message
from .looks_like import looks_like_a_call
from .not_given import tools_not_given

__all__ = ["looks_like_a_call", "observe", "tools_not_given"]


def observe(turn: Turn, message: Message, ids: Sequence[int] = ()) -> list[Diagnostic]:
    """What all observers find in an answer. The message stays as it is, complete or not.

    ``message`` is what ``turn`` read, once it is whole; ``ids``: what it read it from, if not from text.
    """
    return [*tools_not_given(turn, message, ids), *looks_like_a_call(turn, message)]
