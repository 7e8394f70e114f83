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
from ..templates.messages import reasoning_of
from ..templates.probe.turns import MARKER, common, outside_marker
from .around import Rendered
from .bridge import Delta, delta_at
from .parts import Said
from .places import turn_end
from .request import Request
from .segment import Segment, Step
from .shapes import read_answer


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
    whole: Rendered | None = None

    @property
    def status(self) -> str:
        """What is kept of it: ``kept``, ``tail`` (only the whole rendering shows what follows) or the reason."""
        return self.reason or ("kept" if self.proved else "tail")


def compare(
    request: Request,
    segment: Segment,
    whole: Rendered,
    delta: Delta | None,
    messages: Sequence[Mapping[str, Any]],
) -> Verdict:
    """The verdict on a step from ``segment``, which ends in an answer, to the rendering ``whole`` of ``messages``."""
    text = whole.turn.prompt
    lacking: list[tuple[int, str]] = []
    core = segment.rendering[: len(segment.rendering) - len(segment.generated)]
    at = _along(core, text, 0)
    if at < 0:
        return _opening(segment, whole, delta, messages)
    at, prefix = _asked(text, at, segment, lacking, _first(segment))
    said: Said | None = None
    for number, turn in enumerate(segment.turns):
        if isinstance(turn, Said):
            said = turn
            continue
        assert said is not None  # a step follows an answer
        core = turn.delta[: len(turn.delta) - len(turn.generated)]
        found, end = _next(core, text, at)
        if found < 0:
            return Verdict("moved", delta, True, said.index + 1, core, text[at:], (), whole)
        wrong = _otherwise(request, said, messages, text[at:found], prefix)
        if wrong is not None:
            return Verdict(
                wrong, delta, True, said.index, said.spoken.message.text, text[at:found], (), whole
            )
        last = number + 1 == len(segment.turns)
        at, prefix = _asked(text, end, turn, [] if last else lacking, said.index + 1)
    assert said is not None
    return _last(request, said, whole, delta, messages, at, prefix, lacking)


def _asked(
    text: str, at: int, given: Segment | Step, lacking: list[tuple[int, str]], index: int
) -> tuple[int, str]:
    """Where an answer begins in ``text`` behind what asked for it, and how much of its prefix stands there."""
    generation = given.generated
    shared = outside_marker(text, at + common(text[at : at + len(generation)], generation)) - at
    if shared < len(generation):
        lacking.append((index, generation[shared:]))
    return at + shared, generation[len(generation) - len(given.prefix) : shared]


def _next(core: str, text: str, at: int) -> tuple[int, int]:
    """Where ``core`` stands next in ``text``, from and to; -1 if it is not there."""
    found = text.find(core, at)
    if found >= 0:
        return found, found + len(core)
    first = MARKER.search(core)
    if first is None or core[: first.start()].strip():
        return -1, -1
    while (found := text.find(first[0], at)) >= 0:
        end = _along(core[first.start() :], text, found)
        if end >= 0:
            return found, end
        at = found + 1
    return -1, -1


def _along(held: str, text: str, at: int) -> int:
    """Where ``held`` ends if it stands in ``text`` at ``at``, with other white space beside markers; -1 if not."""
    place = 0
    while True:
        shared = common(held[place:], text[at : at + len(held) - place])
        place, at = place + shared, at + shared
        if place == len(held):
            return at
        spaces = _spaces(held, place), _spaces(text, at)
        if spaces == (place, at) or not _beside(held, place, spaces[0]):
            return -1
        # White space that both share may be before the difference.
        if held[spaces[0] : spaces[0] + 1] != text[spaces[1] : spaces[1] + 1]:
            return spaces[1] if spaces[0] == len(held) else -1
        place, at = spaces


def _spaces(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _beside(text: str, start: int, end: int) -> bool:
    """Whether a marker stands before or behind this white space."""
    before = text[:start].rstrip()[-1:]
    return before in tuple(">]") or text[end : end + 1] in tuple("<[") or not text[end:]


def _last(
    request: Request,
    said: Said,
    whole: Rendered,
    delta: Delta | None,
    messages: Sequence[Mapping[str, Any]],
    at: int,
    prefix: str,
    lacking: list[tuple[int, str]],
) -> Verdict:
    """The verdict on the last answer and what follows it."""
    text = whole.turn.prompt
    proved = delta is not None and text.endswith(delta.text) and len(text) - len(delta.text) >= at
    if proved and delta is not None:
        end = len(text) - len(delta.text)
        if _otherwise(request, said, messages, text[at:end], prefix) is None:
            shown = replace(delta, turn=whole.turn, trace=whole.trace, messages=messages)
            return Verdict(None, shown, True, lacking=lacking, whole=whole)
    tail = _tail(request, whole, messages, said, at)
    end = at if tail is None else len(text) - len(tail.text)
    wrong = "unproved" if tail is None else _otherwise(request, said, messages, text[at:end], prefix)
    if wrong is None:
        return Verdict(None, tail, False, lacking=lacking, whole=whole)
    if wrong == "unproved" and any(span.start >= end for span in whole.trace.of(said.index, "content")):
        wrong = "moved"
    return Verdict(wrong, tail or delta, True, said.index, said.spoken.message.text, text[at:end], (), whole)


def _tail(
    request: Request, whole: Rendered, messages: Sequence[Mapping[str, Any]], said: Said, at: int
) -> Delta | None:
    """What follows the answer, which begins at ``at``, as the whole rendering shows it."""
    own = said.spoken.text(request.chat.tokenizer)
    new = messages[said.index + 1 :]
    stop = turn_end(whole.trace, messages, said.index, request.around, request.chat.syntax.stops)
    if stop is None or stop[0] < at:
        text = whole.turn.prompt
        if not text.startswith(own, at):
            return None
        found = at + len(own)
        stops = (len(stop) for stop in whole.turn.stops if text.startswith(stop, found))
        stop = found, found + max(stops, default=0)
    return delta_at(request, whole, messages, stop, new)


def _opening(
    segment: Segment, whole: Rendered, delta: Delta | None, messages: Sequence[Mapping[str, Any]]
) -> Verdict:
    """The verdict if the text that the segment began with is not there."""
    prompt = whole.turn.prompt
    stands = common(prompt, segment.rendering)
    lost = [
        index
        for index, message in enumerate(messages)
        if (thought := reasoning_of(message).strip())
        and thought in segment.rendering
        and not any(whole.trace.of(index, "reasoning"))
    ]
    reason, index = ("thought", lost[0]) if lost else ("moved", 0)
    return Verdict(reason, delta, True, index, segment.rendering[stands:], prompt[stands:], (), whole)


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
    read = read_answer(said.spoken.turn._replace(prefix=prefix), shown, mine)
    thought = reasoning_of(mine).strip()
    if thought and thought != read.reasoning.strip():
        return "thought"
    if not said.spoken.message.complete:
        return None  # what the template makes of a broken call is no answer of the model
    if (mine.get("content") or "").strip() != read.content.strip():
        return "unproved"
    return None if _calls(said.spoken.message) == _calls(read) else "unproved"


def same_message(read: Message, given: Mapping[str, Any]) -> bool:
    """Whether a message that was read is the one that is given, but for white space and the spelling of arguments."""
    told = given.get("content") or ""
    calls = [
        call.get("function") or {} for call in given.get("tool_calls") or () if isinstance(call, Mapping)
    ]
    return (
        isinstance(told, str)
        and (told.strip(), reasoning_of(given).strip()) == (read.content.strip(), read.reasoning.strip())
        and [(call.get("name"), _value(call.get("arguments"))) for call in calls] == _calls(read)
    )


def _calls(message: Message) -> list[tuple[str, Any]]:
    return [(call.name, _value(call.arguments)) for call in message.tool_calls]


def _value(arguments: Any) -> Any:
    try:
        return json.loads(arguments)
    except (TypeError, ValueError):
        return arguments
