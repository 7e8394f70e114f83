"""The parts of a segment of a rollout: text that was given, and answers that were sampled, each with its ids.

A part never changes. So copies of a rollout share their parts, and a step adds parts and touches no others. What a part
has for each id are the machine's numbers, as a session may hold millions of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, NamedTuple

from ..core.format import Turn
from ..templates.trace import Trace
from ..tokens.pieces import as_text, encoded
from .marks import Indexed, Span, all_runs, in_tokens, starting, token_runs, traced_runs
from .placeholders import Placeholder, find_placeholders, has_parts
from .places import Places
from .quoted import quoted_in
from .request import Request
from .sample import Kind, Run
from .spoken import Chunk, Spoken, pieces

Messages = tuple[tuple[int, Mapping[str, Any]], ...]


class Column(NamedTuple):
    """What a part adds to a sample; the runs count from the part's first id."""

    ids: Sequence[int]
    counted: Sequence[Span]
    kinds: Sequence[Run]
    messages: Sequence[Run]


@dataclass(frozen=True, slots=True)
class Given:
    """Text that was given, with its ids and their ``spans``: where each begins in the text, and where it ends.
    ``messages``: those that are in it, with their indices. ``words``: the runs of their words, of kinds and of
    messages. ``stop``: the ids that are the stop of the answer before it, and whether it is ``counted``. ``answers``:
    the places of answers that are context, which ``reader`` reads. ``placeholders``: of images and other parts, in
    tokens; ``expanded``: the numbers of those in whose place the engine's ids are."""

    ids: Sequence[int]
    text: str
    spans: Sequence[int]
    messages: Messages = ()
    stop: Span = (0, 0)
    counted: bool = False
    answers: Places = field(default_factory=dict)
    reader: Turn | None = None
    words: tuple[tuple[Run, Run], ...] = ()
    placeholders: tuple[Placeholder, ...] = ()
    expanded: frozenset[int] = frozenset()

    def expand(self, number: int, ids: Sequence[int]) -> Given:
        """The part with other ids in the place of a placeholder, each with the span of its text."""
        start, end = self.placeholders[number].start, self.placeholders[number].end
        more = len(ids) - (end - start)
        span = array("I", [self.spans[2 * start], self.spans[2 * end - 1]])
        placed = [
            one._replace(start=one.start + more * (one.start >= end), end=one.end + more * (one.end >= end))
            for one in self.placeholders
        ]
        return replace(
            self,
            ids=array("q", [*self.ids[:start], *ids, *self.ids[end:]]),
            spans=array("I", [*self.spans[: 2 * start], *span * len(ids), *self.spans[2 * end :]]),
            placeholders=tuple(placed),
            expanded=self.expanded | {number},
        )

    def column(self) -> Column:
        """What it adds to a sample."""
        runs = all_runs(self.words, self.answers, self.reader, self.text, dict(self.messages))
        kinds, indices = starting(self.spans[::2], *runs)
        if self.stop[1] > self.stop[0]:
            kinds.append((*self.stop, int(Kind.STOP)))
        return Column(self.ids, [self.stop] if self.counted else [], kinds, indices)


@dataclass(frozen=True, slots=True)
class Completion:
    """An answer. ``index``: of its message. ``context``: it was sampled in an earlier segment, so it is not counted
    here; then it may be ``bare``, without its stop."""

    spoken: Spoken
    index: int
    context: bool = False
    bare: bool = False

    @property
    def ids(self) -> list[int]:
        """Its ids."""
        ids = self.spoken.ids
        return ids[: len(ids) - len(self.spoken.stop)] if self.bare else ids

    def chunks(self) -> tuple[Chunk, ...]:
        """Its ids as they were sampled."""
        if not self.bare or not self.spoken.stop:
            return self.spoken.chunks
        left = len(self.ids)
        found = []
        for chunk in self.spoken.chunks:
            found.append(chunk.first(min(left, len(chunk.ids))))
            left -= len(found[-1].ids)
        return tuple(found)

    def column(self, seen: set[str]) -> Column:
        """What it adds to a sample. ``seen``: the chunks that were counted before."""
        ids = self.ids
        counted: list[Span] = []
        at = 0
        for chunk in self.chunks():
            if not self.context and chunk.serial not in seen:
                seen.add(chunk.serial)
                counted += _runs(chunk.counted, at)
            at += len(chunk.ids)
        tokenizer = self.spoken.turn.tokenizer
        kinds = list(token_runs(self.spoken.message, pieces(tokenizer, ids)))
        if not self.bare:
            kinds.append((len(ids) - len(self.spoken.stop), len(ids), int(Kind.STOP)))
        kinds = [(start, min(end, len(ids)), kind) for start, end, kind in kinds]
        return Column(ids, counted, kinds, [(0, len(ids), self.index)])


def _runs(marks: bytes, at: int) -> Iterator[Span]:
    start = 0
    for place in range(len(marks) + 1):
        if place == len(marks) or not marks[place]:
            if place > start:
                yield at + start, at + place
            start = place + 1


def given(
    request: Request, trace: Trace, known: Indexed, messages: Messages, before: str | None, **more: Any
) -> Given:
    """The part of a text, of which the trace is known. ``known``: the messages that the trace may name; ``messages``:
    those that are here. ``before``: the stop that it follows; None at the beginning of all."""
    tokenizer = request.chat.tokenizer
    text = trace.text
    ids, spans = encoded(tokenizer, text, before)
    quoted = quoted_in(request, trace, known)
    if quoted:
        ids, spans = as_text(tokenizer, text, ids, spans, quoted)
    if has_parts(message for _, message in messages):
        found = find_placeholders(trace, messages, request)
        more["placeholders"] = tuple(in_tokens(spans, found))
    packed = array("I", chain.from_iterable(spans))
    return Given(array("q", ids), text, packed, messages, words=tuple(traced_runs(trace, known)), **more)
