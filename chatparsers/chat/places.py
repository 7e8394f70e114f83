"""Where each answer is in a rendering: from the generation prompt on to the end of its stop.

Strategy. The trace of the rendering says where the words of each message are (`Trace`). The text between the words of
an answer and those before it holds the end of what was before, the header, and what of the answer is markup. The answer
begins where that text and the prompt that asks for it part (`Around.asked`), never inside a marker and never in its own
words. It ends at the first stop after its words. An answer that is written as several turns has a place for each.

Invariant: places are in the order of the text and do not overlap. An answer without a place is not shown as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..templates.jinja.traced import interleaved
from ..templates.messages import reasoning_of
from ..templates.probe.parts import part_kind
from ..templates.probe.turns import MARKER, aligned, common, outside_marker
from ..templates.trace import Trace, covered
from .around import Around, Lead, Rendered, turns_of

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
    places: Places = {}
    ends: tuple[int, ...] = (0,)  # of the last turn, and where the words of a message after it would stand
    for index, message in enumerate(messages):
        if message.get("role") != "assistant" or not index:
            continue
        for number, turn in enumerate(turns_of(trace, index, around.stops)):
            before, first = trace.spans[turn[0] - 1].end if turn[0] else 0, trace.spans[turn[0]].start
            roles = ("assistant" if number else str(messages[index - 1].get("role")), "user")
            starts = (_start_after(trace.text, max(before, end), first, roles, around) for end in ends)
            start = next((found for found in starts if found is not None), None)
            if start is None:
                continue
            stop, end, following = _end(trace, turn[-1], messages, index, around)
            ends = (end, following) if index + 1 not in trace.places else (end,)
            places.setdefault(index, []).append(Place(start[0], stop, end, start[1]))
    return places


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
    turns = turns_of(shown.trace, index, shown.around.stops)
    return _end(shown.trace, turns[-1][-1], messages, index, shown.around)[:2] if turns else None


def _start_after(
    text: str, at: int, first: int, roles: Sequence[str], around: Around
) -> tuple[int, str] | None:
    """As `_start`, after a message of the first of these roles, which the template may show as one of the last."""
    for blank in (False, True):  # a header of white space alone is everywhere
        for role in dict.fromkeys(roles):
            asked = around.asked(role)
            same = asked is not None and blank == (not asked.header.strip())
            found = _start(text, at, first, asked) if asked is not None and same else None
            if found is not None:
                return found
    return None


def _start(text: str, at: int, first: int, asked: Lead) -> tuple[int, str] | None:
    """Where the answer begins whose words begin at ``first``, and what of it the prompt wrote that the text has not;
    None if no part of the header is before it."""
    gap, header = text[at:first], asked.header
    found = aligned(gap, header, [len(header)]) if header.strip() else (common(gap, header), 0)
    if found is None:
        shared = outside_marker(gap, common(gap, header))
        return (at + shared, "") if gap[:shared].strip() else None
    begin, prefix = found[0], asked.prefix
    shared = outside_marker(gap, begin + common(gap[begin:], prefix)) - begin
    shared = outside_marker(asked.text, len(header) + max(shared, 0)) - len(header)
    return at + begin + shared, prefix[: max(shared, 0)]


def _up_to_next(after: str, followed: str) -> str:
    """The text after a turn up to the next message, which is not shown, such as an empty result. ``followed``: that
    text in a stand-in."""
    marker = MARKER.search(followed)
    at = after.find(marker[0]) if marker else -1
    if marker is None or at < 0:
        return after
    return after[: at + common(after[at:], followed[marker.start() :])]


def _end(
    trace: Trace,
    last: int,
    messages: Sequence[Mapping[str, Any]],
    index: int,
    around: Around,
) -> tuple[int, int, int]:
    """Where the stop of a turn begins and ends, and where the next message begins. ``last``: the turn's last span."""
    end, calls = trace.spans[last].end, bool(messages[index].get("tool_calls"))
    after = trace.text[end : trace.spans[last + 1].start if last + 1 < len(trace.spans) else None]
    if index + 1 < len(messages) and index + 1 not in trace.places:
        after = _up_to_next(after, around.followed(calls) or "")
    found = around.first_stop(after) if after else (0, 0)
    if found is None:
        alone = around.alone(calls) or ""
        ended = around.first_stop(alone)
        closed = _closed(after, alone[: ended[0]] if ended else alone.rstrip(), around, calls)
        # The template may write another marker in the place of the stop.
        marker = MARKER.match(after, closed) if ended is not None else None
        found = closed, marker.end() if marker else closed
    return end + found[0], end + found[1], end + len(after)


def _closed(after: str, alone: str, around: Around, calls: bool) -> int:
    """Where what closes an answer ends. ``alone``: what closes one that ends in a text."""
    if not calls:
        shared = common(around.followed(calls) or "", alone)
        return outside_marker(after, min(common(after, alone), shared))
    # The last argument may be no text, so what closes a call is looked for: its end, or what follows it.
    for marker in MARKER.finditer(alone):
        closer = alone[marker.start() :]
        if closer in after:
            return after.index(closer) + len(closer)
    if not alone.strip():
        return 0
    followed = around.followed(calls) or ""
    next_begins = followed[common(followed, alone) :]
    at = after.find(next_begins) if next_begins.strip() else -1
    ends = (found.start() for found in MARKER.finditer(after))
    return at if at >= 0 else next(ends, len(after))


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
