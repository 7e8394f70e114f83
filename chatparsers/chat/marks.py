"""What each stretch of a rendering is: kinds by character, and the same by token."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from ..answers.format import Turn
from ..streams.message import Message, Region
from ..templates.trace import Trace
from .places import Place, Places
from .sample import Kind, Mark, Run, Span
from .shapes import read_answer

_KINDS = {
    "reasoning": Kind.REASONING,
    "content": Kind.CONTENT,
    "call": Kind.ARGUMENT,
    "markup": Kind.ANSWER_MARKUP,
}
_ROLES = {"system": Kind.SYSTEM, "developer": Kind.SYSTEM, "user": Kind.USER, "tool": Kind.RESULT}
Indexed = Sequence[Mapping[str, Any]] | Mapping[int, Mapping[str, Any]]
"""Messages by their indices."""


def kind_of(message: Mapping[str, Any]) -> Kind:
    """What the words of a message are that is no answer."""
    return _ROLES.get(str(message.get("role")), Kind.USER)


def answer_runs(message: Message) -> Iterator[Run]:
    """The runs of kinds of an answer that was read, in characters."""
    for region, named in _with_names(message):
        cut = region.start + named
        if named:
            yield region.start, cut, Kind.CALL
        if cut < region.end:
            yield cut, region.end, _KINDS[region.kind]


def token_runs(message: Message, texts: Sequence[str]) -> Iterator[Run]:
    """The same in tokens, of which each spells one of ``texts``. A token belongs to the run in which it begins."""
    firsts = [*accumulate(map(len, texts), initial=0)][:-1]
    for start, end, kind in answer_runs(message):
        yield bisect_left(firsts, start), bisect_left(firsts, end), kind


def _with_names(message: Message) -> Iterator[tuple[Region, int]]:
    """The regions, each with how many characters at its beginning are a call's name or id."""
    names = [name for call in message.tool_calls for name in (call.name, call.id) if name]
    for region in message.regions:
        named = 0
        if region.kind == "call":
            text = message.text[region.start : region.end]
            found = next(((name, end) for name in names if (end := _named(text, name))), None)
            if found is not None:
                names.remove(found[0])
                named = found[1]
        yield region, named


def _named(text: str, name: str) -> int:
    """Where a name ends in a region that begins with it, as it is or after its namespace (``functions.find``); 0 if
    the region is something else. Gemma writes arguments right after the name."""
    bare = text.strip("\"' ")
    if bare == name or bare.rpartition(".")[2] == name:
        return len(text)
    return len(name) if text.startswith(name + "{") else 0


def marks_of_words(trace: Trace, messages: Indexed) -> Iterator[Mark]:
    """What the words of all messages are that are no answers."""
    for span in trace.spans:
        message = messages[span.message]
        if span.field == "content" and message.get("role") != "assistant":
            yield span.start, span.end, int(kind_of(message)), span.message


def all_marks(
    words: Iterable[Mark], places: Places, reader: Turn | None, text: str, messages: Indexed
) -> list[Mark]:
    """What a rendering is, in characters: its ``words`` that are no answers', and the answers at ``places``, as
    ``reader`` reads them."""
    found = [*words]
    for index, turns in places.items():
        for place in turns:
            found.append((place.start, place.end, int(Kind.MARKUP), index))
            if reader is not None:
                runs = answer_at(place, reader, text, messages[index])
                found += ((start, end, int(kind), index) for start, end, kind in runs)
            found.append((place.stop, place.end, int(Kind.STOP), index))
    return found


def answer_at(place: Place, reader: Turn, text: str, given: Mapping[str, Any]) -> Iterator[Run]:
    """The runs of kinds of the answer ``given`` at a place of a rendering, in its characters."""
    read = read_answer(reader._replace(prefix=place.prefix), text[place.start : place.stop], given)
    for start, end, kind in answer_runs(read):
        yield place.start + start, place.start + end, kind


def inside(offsets: Sequence[Span], start: int, end: int) -> Span:
    """The tokens that lie wholly between two positions. One that lies over a border is not inside."""
    first = bisect_left(offsets, (start,))
    last = bisect_left(offsets, (end,), lo=first)
    while last > first and offsets[last - 1][1] > end:
        last -= 1
    return first, last


def starting(firsts: Sequence[int], marks: Iterable[Mark]) -> list[Mark]:
    """The marks in tokens: a token belongs to the one in which it begins. ``firsts``: where each token begins."""
    return [
        (bisect_left(firsts, start), bisect_left(firsts, end), kind, message)
        for start, end, kind, message in marks
    ]
