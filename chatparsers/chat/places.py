"""Where each answer is in a rendering: from the generation prompt on to the end of its stop.

Strategy. The trace of the rendering says where the words of each message are (`Trace`). An answer begins where the text
before its words and the prompt that asks for it part, and ends at the first stop after them (`templates/borders.py`).
What the template writes there is asked before any text is compared, for the roles and the kinds of answers that the
conversation has (`Around`). An answer that is written as several turns has a place for each.

Invariant: places are in the order of the text and do not overlap. An answer without a place is not shown as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..templates.borders import Ends, begin_in
from ..templates.jinja.traced import interleaved
from ..templates.messages import reasoning_of
from ..templates.probe.parts import part_kind
from ..templates.trace import Trace, covered
from .around import Around, Rendered, turns_of

NUMBER = re.compile(r"(?<!\w)\d+(?!\w)")
"""What may count the messages; not the number in a special token's name."""


@dataclass(frozen=True, slots=True)
class Place:
    """A turn of an answer. ``stop``: where its stop begins. ``prefix``: what of the answer the prompt wrote."""

    start: int
    stop: int
    end: int
    prefix: str


Places = dict[int, list[Place]]
"""The places of each answer that was found, by the message's index."""


def words_of(message: Mapping[str, Any]) -> list[str]:
    """The texts of a message's content."""
    content = message.get("content")
    if isinstance(content, str):
        return [content] if content else []
    if not isinstance(content, (list, tuple)):
        return []
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
    return [text for text in texts if isinstance(text, str) and text]


def in_one_text(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message; if its content are texts in parts, they are joined as templates get them."""
    content = message.get("content")
    if not isinstance(content, (list, tuple)) or any(part_kind(part) is not None for part in content):
        return message
    return {**message, "content": interleaved("\n", words_of(message))}


def find_places(trace: Trace, messages: Sequence[Mapping[str, Any]], around: Around) -> Places:
    """The places of all answers of ``messages``, whose rendering is traced."""
    answers = [at for at, message in enumerate(messages) if at and message.get("role") == "assistant"]
    turns = [turn for at in answers for turn in _turns(trace, messages, at, around.stops)]
    asked = {role: around.asked(role) for turn in turns for role in turn.roles}
    kinds = _kinds(turns, around)
    places: Places = {}
    ends: tuple[int, ...] = (0,)  # of the last turn, and where the words of a message after it would stand
    for turn in turns:
        leads = [lead for role in turn.roles if (lead := asked[role]) is not None]
        for at in (max(turn.before, end) for end in ends):
            begin = begin_in(trace.text[at : turn.first], leads)
            if begin is not None:
                stop = kinds[turn.calls].stop_in(turn.after, turn.unshown)
                place = Place(at + begin.at, turn.end + stop.begin, turn.end + stop.end, begin.prefix)
                places.setdefault(turn.message, []).append(place)
                follows = turn.message + 1 in trace.places
                ends = (place.end,) if follows else (place.end, turn.end + stop.following)
                break
    return places


class _Turn(NamedTuple):
    """A turn of an answer. ``message``: its index; ``roles``: after a message of which it may be, as the template shows
    that. ``before``: where the words before it end; ``first``, ``end``: where its own begin and end; ``after``:
    the text up to the next words. ``unshown``: the message after it has none. ``open``: the turn's stop is not seen at
    once."""

    message: int
    roles: Sequence[str]
    before: int
    first: int
    end: int
    after: str
    calls: bool
    unshown: bool
    open: bool


def _turns(
    trace: Trace, messages: Sequence[Mapping[str, Any]], index: int, stops: Sequence[str]
) -> Iterator[_Turn]:
    spans = trace.spans
    calls = bool(messages[index].get("tool_calls"))
    unshown = index + 1 < len(messages) and index + 1 not in trace.places
    role = str(messages[index - 1].get("role"))
    for turn in turns_of(trace, index, stops):
        first, last = turn[0], turn[-1]
        end = spans[last].end
        after = trace.text[end : spans[last + 1].start if last + 1 < len(spans) else None]
        before = spans[first - 1].end if first else 0
        opens = after != "" and (unshown or not any(stop in after for stop in stops))
        yield _Turn(index, (role, "user"), before, spans[first].start, end, after, calls, unshown, opens)
        role = "assistant"


def _kinds(turns: Sequence[_Turn], around: Around) -> dict[bool, Ends]:
    """What comes after each kind of answers, as far as it is needed to find the ends of these turns."""
    kinds = {turn.calls: Ends(around.stops) for turn in turns}
    for calls in {turn.calls for turn in turns if turn.open}:
        ends = around.ends(calls, followed=False)
        open = (turn for turn in turns if turn.open and turn.calls == calls)
        closed = all(ends.closes(turn.after) and not turn.unshown for turn in open)
        kinds[calls] = ends if closed else around.ends(calls)
    return kinds


def places_in(shown: Rendered, messages: Sequence[Mapping[str, Any]], begun: bool) -> Places:
    """The places of all answers of a rendering. ``begun``: the last message is an answer that the prompt has begun,
    with which it ends."""
    places = find_places(shown.trace, messages[:-1] if begun else messages, shown.around)
    if begun:
        end = len(shown.trace.text)
        places[len(messages) - 1] = [Place(end - len(shown.turn.prefix), end, end, "")]
    return places


def turn_end(shown: Rendered, messages: Sequence[Mapping[str, Any]], index: int) -> tuple[int, int] | None:
    """Where the stop of an answer's last turn begins and ends; None if the answer is not shown."""
    *_, last = [None, *_turns(shown.trace, messages, index, shown.around.stops)]
    if last is None:
        return None
    stop = _kinds([last], shown.around)[last.calls].stop_in(last.after, last.unshown)
    return last.end + stop.begin, last.end + stop.end


def missing(message: Mapping[str, Any], index: int, trace: Trace, places: Sequence[Place]) -> str:
    """What of an answer is missing from its places; ``""`` if all is there."""
    inside = [
        span
        for span in trace.of(index)
        if any(place.start - len(place.prefix) <= span.start and span.end <= place.end for place in places)
    ]
    thought = reasoning_of(message)
    if thought and not covered(thought, [span for span in inside if span.field == "reasoning"]):
        return "thought"
    for part, words in parts_of(message):
        if not covered(words, [span for span in inside if span.field == "content" and span.part == part]):
            return "content"
    return ""


def parts_of(message: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """The texts of a message's content, each with the number of its part."""
    content = message.get("content")
    for number, part in enumerate(content if isinstance(content, (list, tuple)) else [content]):
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            yield number, text
