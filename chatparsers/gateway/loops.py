"""What becomes of a model that repeats itself (``--loops``).

``tell``: a diagnostic in the log and the metrics. ``close``: besides, a thought that repeats is closed as one that has
taken all its tokens (`chatparsers.gateway.budget`). ``stop``: besides, the answer ends as one that was cut off. A
conversation whose last rounds are all the same then gets no answer: the model would go on so.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import Any

from ..chat.chat import Chat
from ..streams.message import Diagnostic
from ..watch import repeated_turn, repeated_turns
from ..watch.loops import STUCK_TURNS
from .engine import Batch, End, Engine, Job
from .settings import LoopMode

HEADER = b"x-chatparsers-loop"
"""The header of an answer that was stopped: by what."""


@dataclass(frozen=True, slots=True)
class Loops:
    """What is done about loops in the answer to one request.

    ``notes``: what is told of the conversation. ``stuck``: no answer is sampled. ``closes``: thoughts that repeat are
    closed. ``stops``: answers that repeat are ended.
    """

    notes: Sequence[Diagnostic] = ()
    stuck: bool = False
    closes: bool = False
    stops: bool = False


def loops_of(mode: LoopMode, messages: Sequence[Any], *, counted: bool, recorded: bool) -> Loops | None:
    """What is done in the answer to ``messages``; None: nothing. ``counted``: whether the tokens of thoughts can be.
    ``recorded``: the answer is a step of a session, which none ends but the model and its engine."""
    if mode == "off":
        return None
    stops = mode == "stop" and not recorded
    stuck = stops and repeated_turns(messages) >= STUCK_TURNS
    return Loops(repeated_turn(messages), stuck, mode == "close" and counted, stops)


class Silent(Engine):
    """Stands in place of the engine where no answer is sampled."""

    async def start(self, chat: Chat) -> list[str]:
        return []

    async def generate(self, job: Job) -> AsyncGenerator[Batch, None]:
        yield Batch(end=End("length", completion=0))
