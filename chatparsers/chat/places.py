"""Where each answer stands in a rendering: from behind the generation prompt to the end of its stop.

Strategy. The frames around answers are known (`Frames`), and so are the words of the messages between them. One walk
through the text looks for them in their order: an answer begins behind the last message's words and the header, and it
ends at the stop before the next message's words. It begins no earlier than where the prompt that asked for it and the
text part, and no marker is divided. Where the walk loses its way (a template that writes words in another form),
the renderings of the conversation's beginnings show the place, if they are beginnings of the text.

Invariant: spans are in the order of the text and do not overlap. An answer without a span was not found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core.errors import ChatParsersError
from ..core.format import Turn
from ..templates.messages import reasoning_of
from ..templates.probe.turns import MARKER, common, outside_marker
from .frames import NEEDLE_ID, Frames, shape_of

__all__ = ["NUMBER", "Place", "Places", "find_places", "missing", "words_of"]


_ID = r"([^\s\"']{1,99})"
NUMBER = re.compile(r"(?<!\w)\d+(?!\w)")
"""What may count the messages; not the number in a special token's name."""
_ESCAPED = re.compile(r"[^ !#-\[\]-~]")
"""What JSON spells otherwise in a text."""


@dataclass(frozen=True, slots=True)
class Place:
    """An answer's span. ``stop``: where its stop begins. ``prefix``: what of the answer the prompt wrote."""

    start: int
    stop: int
    end: int
    prefix: str


@dataclass(slots=True)
class Places:
    """``answers``: the place of each answer that was found, by the message's index. ``words``: the spans of the words
    of other messages, as far as the walk saw them."""

    answers: dict[int, Place] = field(default_factory=dict)
    words: dict[int, tuple[int, int]] = field(default_factory=dict)


def words_of(message: Mapping[str, Any]) -> list[str]:
    """The texts of a message's content."""
    content = message.get("content")
    if isinstance(content, str):
        return [content] if content else []
    if not isinstance(content, (list, tuple)):
        return []
    texts = (part.get("text") if isinstance(part, Mapping) else part for part in content)
    return [text for text in texts if isinstance(text, str) and text]


def find_places(
    text: str, messages: Sequence[Mapping[str, Any]], frames: Frames, prepare: Callable[..., Turn]
) -> Places:
    """The places of all answers of ``messages`` in ``text``, their rendering."""
    places = Places()
    at = 0
    for index, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        start = _start(text, at, index, messages, frames, places)
        end = None if start is None else _end(text, start[0], index, messages, frames, places)
        if start is None or end is None:
            place = _by_rendering(text, at, index, messages, frames, prepare)
            if place is None:
                continue
        else:
            place = Place(start[0], end[0], end[1], start[1])
        places.answers[index] = place
        at = place.end
    return places


def _start(
    text: str,
    at: int,
    index: int,
    messages: Sequence[Mapping[str, Any]],
    frames: Frames,
    places: Places,
) -> tuple[int, str] | None:
    """Where the answer begins, and what of it the prompt wrote that the text has not."""
    if not index or messages[index - 1].get("role") == "assistant":
        return None
    before = frames.before(str(messages[index - 1].get("role")))
    if before is None:
        return None
    found = [
        (*stands, number, len(words), header)
        for number, header in enumerate(dict.fromkeys((before.header, before.past)))
        if header.strip()
        for words in _spelt(messages[index - 1], last=True)
        if (stands := _stands(text, words + header, at)) is not None
    ]
    if not found:
        return None
    place, id, _, length, header = min(found)
    header, before = header.replace(NEEDLE_ID, id), before.with_id(id)
    behind = place + length
    if length:
        places.words[index - 1] = (place, behind)
    asked = before.asked
    shared = outside_marker(
        asked, outside_marker(text[behind:], common(text[behind : behind + len(asked)], asked))
    )
    if shared <= len(header):
        return behind + len(header), ""
    return behind + shared, asked[len(before.header) : shared]


def _stands(text: str, wanted: str, at: int) -> tuple[int, str] | None:
    """Where a text stands next, and what it has in the place of the needle's id; ``""`` if there is none."""
    if NEEDLE_ID not in wanted:
        place = text.find(wanted, at)
        return None if place < 0 else (place, "")
    pattern = _ID.join(map(re.escape, wanted.split(NEEDLE_ID)))
    found = re.compile(pattern).search(text, at)
    return None if found is None else (found.start(), found[1])


def _end(
    text: str,
    start: int,
    index: int,
    messages: Sequence[Mapping[str, Any]],
    frames: Frames,
    places: Places,
) -> tuple[int, int] | None:
    """Where the answer's stop begins and ends."""
    shape = shape_of(messages[index])
    if index + 1 == len(messages):
        behind = frames.behind(shape, "")
        if behind is None or not text.endswith(behind.text) or len(text) - len(behind.text) < start:
            return None
        stop = len(text) - len(behind.text)
        return stop, stop + behind.stop
    after = messages[index + 1]
    behind = frames.behind(shape, str(after.get("role")))
    if behind is None or not behind.text.strip():
        return None
    for words in _spelt(after, last=False):
        found, header = _counted(text, behind.text, words if behind.whole else "", start)
        first = text.find(words, header) if found >= 0 else -1
        if first >= 0:
            if words and behind.whole:
                places.words.setdefault(index + 1, (first, first + len(words)))
            return found, found + behind.stop
    # The template may put other words between, such as a system text before the last question.
    found = text.find(behind.text, start)
    if not behind.stop or found < 0 or missing(messages[index], text[start:found]):
        return None
    return found, found + behind.stop


def _counted(text: str, frame: str, words: str, at: int) -> tuple[int, int]:
    """Where a frame stands next before these words, from and to; -1 if nowhere. Its numbers may be others: they count
    the messages."""
    found = text.find(frame + words, at)
    if found >= 0 or not NUMBER.search(frame):
        return found, found + len(frame)
    pattern = r"\d+".join(map(re.escape, NUMBER.split(frame)))
    stands = re.compile(f"({pattern}){re.escape(words)}").search(text, at)
    return (-1, -1) if stands is None else stands.span(1)


def _spelt(message: Mapping[str, Any], *, last: bool) -> list[str]:
    """The words at the edge of a message, in the ways in which templates write them."""
    words = words_of(message)
    if not words:
        return [""]
    text = words[-1 if last else 0]
    ways = [text, text.rstrip() if last else text.lstrip(), text.strip()]
    if _ESCAPED.search(text) is not None:
        ways += (json.dumps(text, ensure_ascii=ascii)[1:-1] for ascii in (False, True))
    return [*dict.fromkeys(way for way in ways if way)]


def _by_rendering(
    text: str,
    at: int,
    index: int,
    messages: Sequence[Mapping[str, Any]],
    frames: Frames,
    prepare: Callable[..., Turn],
) -> Place | None:
    """The place by the renderings up to the answer: without it, and with it."""
    try:
        asked = prepare(messages[:index], add_generation_prompt=True) if index else None
        whole = prepare(messages[: index + 1], add_generation_prompt=False).prompt
    except ChatParsersError:
        return None
    if asked is None:
        return None
    start = outside_marker(text, outside_marker(asked.prompt, common(text, asked.prompt)))
    header = len(asked.prompt) - len(asked.prefix)
    end = outside_marker(text, outside_marker(whole, common(text, whole)))
    if start < max(at, header) or end <= start:
        return None
    behind = frames.behind(shape_of(messages[index]), "")
    tail = "" if behind is None else behind.text
    if tail and text.endswith(tail, 0, end):
        stop = end - len(tail)
        return Place(start, stop, stop + (behind.stop if behind else 0), asked.prompt[header:start])
    if end == len(whole):
        return Place(start, end, end, asked.prompt[header:start])
    # The history may have another marker where the last answer has its stop, such as gpt-oss' `<|end|>`.
    other = MARKER.match(text, end) if whole[end:].strip() in asked.stops else None
    return Place(start, end, other.end(), asked.prompt[header:start]) if other is not None else None


def missing(message: Mapping[str, Any], text: str) -> str:
    """What of an answer is missing from its ``text``; ``""`` if all is there."""
    thought = reasoning_of(message).strip()
    if thought and thought not in text:
        return "thought"
    if any(words.strip() not in text for words in words_of(message)):
        return "content"
    return ""
