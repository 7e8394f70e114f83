"""What was given and sampled, compared with the rendering of the whole conversation.

Answers are compared as messages: the template may write arguments anew, or other white space. All else is compared as
text. What a generation prompt wrote and the history lacks is no change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..core.message import Message
from ..core.parser.turn import Turn
from ..templates.messages import reasoning_of
from ..templates.probe.turns import common, outside_marker
from .bridge import Delta, is_header
from .frames import Shape, shape_of
from .parts import Said
from .request import Request
from .segment import Segment

__all__ = ["Break", "Difference", "Verdict", "compare"]


@dataclass(frozen=True, slots=True)
class Break:
    """Where the template rewrote what was given or sampled. ``reason``: ``thought`` (one was dropped), ``moved`` (a
    text stands elsewhere), ``variables`` (the request changed) or ``unproved``. ``message``: the index of the first
    message that stands otherwise. ``kept``: how many ids both segments begin with. ``held``, ``shown``: the two texts
    from there on."""

    reason: str
    message: int
    kept: int
    held: str
    shown: str


@dataclass(frozen=True, slots=True)
class Difference:
    """Where the ids are not what the template would write, and stay so. ``what``: ``stop``, ``dropped`` (ids behind
    it), ``order`` (of results), ``prompt`` (a generation prompt's text that the history lacks), or with
    ``history="exact"`` the reason of a break. ``message``: its index. ``held``, ``shown``: the two texts."""

    what: str
    message: int
    held: str
    shown: str


class Verdict(NamedTuple):
    """``reason``: None if nothing was rewritten. ``delta``: what follows the answer. ``proved``: whether a stand-in
    showed it. ``lacking``: what prompts wrote that the history lacks, each with the index of the answer."""

    reason: str | None
    delta: Delta | None
    proved: bool = True
    message: int = -1
    held: str = ""
    shown: str = ""
    lacking: Sequence[tuple[int, str]] = ()
    whole: Turn | None = None

    @property
    def status(self) -> str:
        """What is kept of it: ``kept``, ``tail`` (only the whole rendering shows what follows) or the reason."""
        return self.reason or ("kept" if self.proved else "tail")


def compare(
    request: Request,
    segment: Segment,
    whole: Turn,
    delta: Delta | None,
    messages: Sequence[Mapping[str, Any]],
) -> Verdict:
    """The verdict on a step from ``segment``, which ends in an answer, to the rendering ``whole``."""
    text = whole.prompt
    lacking: list[tuple[int, str]] = []
    stands = outside_marker(segment.rendering, outside_marker(text, common(text, segment.rendering)))
    least = len(segment.rendering) - len(segment.prefix)
    if stands < least:
        return _opening(segment, whole, delta, messages, stands)
    prefix = segment.prefix[: stands - least]
    if len(prefix) < len(segment.prefix):
        lacking.append((_first(segment), segment.prefix[len(prefix) :]))
    at = stands
    said: Said | None = None
    for number, turn in enumerate(segment.turns):
        if isinstance(turn, Said):
            said = turn
            continue
        core = turn.delta[: len(turn.delta) - len(turn.prefix)]
        found = text.find(core, at)
        if found < 0 or said is None:
            index = said.index + 1 if said is not None else 0
            return Verdict("moved", delta, True, index, core, text[at:], (), whole)
        wrong = _otherwise(request, said, messages, text[at:found], prefix)
        if wrong is not None:
            return Verdict(
                wrong, delta, True, said.index, said.spoken.message.text, text[at:found], (), whole
            )
        at = found + len(core)
        shared = outside_marker(text, at + common(text[at : at + len(turn.prefix)], turn.prefix))
        prefix = text[at:shared]
        if len(prefix) < len(turn.prefix) and number + 1 < len(segment.turns):
            lacking.append((said.index + 1, turn.prefix[len(prefix) :]))
        at = shared
    assert said is not None  # a step follows an answer
    return _last(request, said, whole, delta, messages, at, prefix, lacking)


def _last(
    request: Request,
    said: Said,
    whole: Turn,
    delta: Delta | None,
    messages: Sequence[Mapping[str, Any]],
    at: int,
    prefix: str,
    lacking: list[tuple[int, str]],
) -> Verdict:
    """The verdict on the last answer and what follows it."""
    text = whole.prompt
    proved = delta is not None and text.endswith(delta.text) and len(text) - len(delta.text) >= at
    if proved and delta is not None:
        end = len(text) - len(delta.text)
        if _otherwise(request, said, messages, text[at:end], prefix) is None:
            return Verdict(None, replace(delta, turn=whole), True, lacking=lacking, whole=whole)
    tail = _tail(request, whole, messages[said.index], at)
    end = at if tail is None else len(text) - len(tail.text)
    wrong = "unproved" if tail is None else _otherwise(request, said, messages, text[at:end], prefix)
    if wrong is None:
        return Verdict(None, tail, False, lacking=lacking, whole=whole)
    return Verdict(wrong, tail or delta, True, said.index, said.spoken.message.text, text[at:end], (), whole)


def _tail(request: Request, whole: Turn, message: Mapping[str, Any], at: int) -> Delta | None:
    """What follows an answer that begins at ``at``, as the whole rendering shows it."""
    shape = shape_of(message)
    shape = Shape(False, shape.content or not shape.calls, shape.calls)
    for role in ("tool", "user", "system") if shape.calls else ("user", "system", "tool"):
        behind = request.frames.behind(shape, role)
        found = whole.prompt.find(behind.text, at) if behind is not None and behind.text.strip() else -1
        if found >= 0 and behind is not None:
            return Delta(whole.prompt[found:], behind.stop, is_header(request.frames, shape, behind), whole)
    return None


def _opening(
    segment: Segment, whole: Turn, delta: Delta | None, messages: Sequence[Mapping[str, Any]], stands: int
) -> Verdict:
    """The verdict if the text that the segment began with is not there."""
    lost = [
        index
        for index, message in enumerate(messages)
        if (thought := reasoning_of(message).strip())
        and thought in segment.rendering
        and thought not in whole.prompt
    ]
    reason = "thought" if lost else "moved"
    return Verdict(
        reason,
        delta,
        True,
        lost[0] if lost else 0,
        segment.rendering[stands:],
        whole.prompt[stands:],
        (),
        whole,
    )


def _first(segment: Segment) -> int:
    return next((turn.index for turn in segment.turns if isinstance(turn, Said)), -1)


def _otherwise(
    request: Request, said: Said, messages: Sequence[Mapping[str, Any]], shown: str, prefix: str
) -> str | None:
    """Why the text ``shown`` is another message than the answer; None if it is the same."""
    own = said.spoken.text(request.chat.tokenizer)
    if shown == own:
        return None
    mine = messages[said.index]
    read = said.spoken.turn._replace(prefix=prefix).parse(shown)
    thought = reasoning_of(mine).strip()
    if thought and thought != read.reasoning.strip():
        return "thought"
    if not said.spoken.message.complete:
        return None  # what the template makes of a broken call is no answer of the model
    if (mine.get("content") or "").strip() != read.content.strip():
        return "unproved"
    return None if _calls(said.spoken.message) == _calls(read) else "unproved"


def _calls(message: Message) -> list[tuple[str, Any]]:
    return [(call.name, _value(call.arguments)) for call in message.tool_calls]


def _value(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments
