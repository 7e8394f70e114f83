"""What each stretch of a rendering is: kinds by character, and the same by token."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from ..core.format import Turn
from ..core.message import Message, Region
from ..templates.trace import Trace
from .placeholders import Placeholder
from .places import Place, Places
from .sample import Kind, Run
from .shapes import read_answer

_KINDS = {
    "reasoning": Kind.REASONING,
    "content": Kind.CONTENT,
    "call": Kind.ARGUMENT,
    "markup": Kind.ANSWER_MARKUP,
}
_ROLES = {"system": Kind.SYSTEM, "developer": Kind.SYSTEM, "user": Kind.USER, "tool": Kind.RESULT}
Span = tuple[int, int]
Indexed = Sequence[Mapping[str, Any]] | Mapping[int, Mapping[str, Any]]
"""Messages by their indices."""


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


def traced_runs(trace: Trace, messages: Indexed) -> Iterator[tuple[Run, Run]]:
    """The runs of the words of all messages that are no answers: of kinds, and of messages."""
    for span in trace.spans:
        role = messages[span.message].get("role") if span.field == "content" else "assistant"
        if role != "assistant":
            kind = _ROLES.get(str(role), Kind.USER)
            yield (span.start, span.end, int(kind)), (span.start, span.end, span.message)


def all_runs(
    words: Iterable[tuple[Run, Run]], places: Places, reader: Turn | None, text: str, messages: Indexed
) -> tuple[list[Run], list[Run]]:
    """The runs of a rendering in characters, of kinds and of messages: its ``words`` that are no answers', and the
    answers at ``places``, as ``reader`` reads them."""
    kinds: list[Run] = []
    indices: list[Run] = []
    for kind, message in words:
        kinds.append(kind)
        indices.append(message)
    for index, found in places.items():
        for place in found:
            if reader is not None:
                kinds += answer_at(place, reader, text, messages[index])
            kinds.append((place.stop, place.end, int(Kind.STOP)))
            indices.append((place.start, place.end, index))
    return kinds, indices


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


def starting(
    firsts: Sequence[int], kinds: Iterable[Run], messages: Iterable[Run]
) -> tuple[list[Run], list[Run]]:
    """The runs of both columns in tokens: a token belongs to the run in which it begins. ``firsts``: where each token
    begins."""

    def found(runs: Iterable[Run]) -> list[Run]:
        return [(bisect_left(firsts, start), bisect_left(firsts, end), value) for start, end, value in runs]

    return found(kinds), found(messages)


def in_tokens(offsets: Sequence[Span], found: Iterable[Placeholder]) -> Iterator[Placeholder]:
    """The placeholders, from their first token to their last."""
    for one in found:
        first, last = inside(offsets, one.start, one.end)
        yield one._replace(start=first, end=last)
