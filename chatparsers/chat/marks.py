"""What each stretch of a rendering is: kinds by character, and the same by token."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core.message import Message
from .placeholders import Placeholder
from .places import Place, Places, words_of
from .sample import Kind, Run

__all__ = ["Span", "answer_runs", "in_tokens", "inside", "other_runs", "starting", "stop_run"]

_KINDS = {"reasoning": Kind.REASONING, "content": Kind.CONTENT, "markup": Kind.ANSWER_MARKUP}
_ROLES = {"system": Kind.SYSTEM, "developer": Kind.SYSTEM, "user": Kind.USER, "tool": Kind.RESULT}
Span = tuple[int, int]


def answer_runs(message: Message, *, tokens: bool = False) -> Iterator[Run]:
    """The runs of kinds of an answer that was read; ``tokens``: in tokens, else in characters. A token belongs to the
    region in which it begins."""
    names = iter([name for call in message.tool_calls for name in (call.name, call.id)])
    waiting = set(names)
    begun = 0
    for region in message.regions:
        start, end = region.start, region.end
        kind = _KINDS.get(region.kind, Kind.ARGUMENT)
        text = message.text[start:end]
        named = 0
        if region.kind == "call":
            name = next((name for name in waiting if name and _names(text, name)), None)
            if name is not None:
                waiting.discard(name)
                named = text.index(name) + len(name)
                if not text[named:].strip("\"' "):
                    kind, named = Kind.CALL, 0
        if tokens:
            first, last = region.token_start or 0, region.token_end or 0
            yield max(first, begun), last, kind  # a token over the border is the former region's
            begun = last
        elif named:
            yield start, start + named, Kind.CALL
            yield start + named, end, kind
        else:
            yield start, end, kind


def _names(text: str, name: str) -> bool:
    """Whether a region is a name, as it is or behind its namespace (``functions.get_weather``)."""
    bare = text.strip("\"' ")
    return bare.startswith(name) or bare.rpartition(".")[2] == name


def other_runs(text: str, messages: Sequence[Mapping[str, Any]], places: Places) -> Iterator[tuple[Run, Run]]:
    """The runs of the words of all messages that are no answers: of kinds, and of messages."""
    at = 0
    for index, message in enumerate(messages):
        place = places.answers.get(index)
        if place is not None:
            at = place.end
            continue
        if message.get("role") == "assistant":
            continue
        end = _bound(index, places, len(text))
        for span in _spans(text, at, end, index, message, places):
            at = span[1]
            kind = _ROLES.get(str(message.get("role")), Kind.USER)
            yield (*span, int(kind)), (*span, index)


def _bound(index: int, places: Places, length: int) -> int:
    """The position before which the words of message ``index`` stand."""
    return min((place.start for later, place in places.answers.items() if later > index), default=length)


def _spans(
    text: str, at: int, end: int, index: int, message: Mapping[str, Any], places: Places
) -> Iterator[Span]:
    words = words_of(message)
    known = places.words.get(index)
    if known is not None and len(words) == 1:
        yield known
        return
    for one in words:
        for way in dict.fromkeys((one, one.strip())):
            found = text.find(way, at, end) if way else -1
            if found >= 0:
                at = found + len(way)
                yield found, at
                break


def inside(offsets: Sequence[Span], start: int, end: int) -> Span:
    """The tokens that lie wholly between two positions. One that lies over a border is not inside."""
    first = bisect_left(offsets, (start,))
    last = bisect_left(offsets, (end,), lo=first)
    while last > first and offsets[last - 1][1] > end:
        last -= 1
    return first, last


def starting(offsets: Sequence[Span], runs: Iterable[Run]) -> list[Run]:
    """The runs in tokens: a token belongs to the run in which it begins."""
    return [(bisect_left(offsets, (start,)), bisect_left(offsets, (end,)), kind) for start, end, kind in runs]


def in_tokens(offsets: Sequence[Span], found: Iterable[Placeholder]) -> Iterator[Placeholder]:
    """The placeholders, from their first token to their last."""
    for one in found:
        first, last = inside(offsets, one.start, one.end)
        yield one._replace(start=first, end=last)


def stop_run(place: Place) -> Run:
    """The run of an answer's stop."""
    return place.stop, place.end, int(Kind.STOP)
