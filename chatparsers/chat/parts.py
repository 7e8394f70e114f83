"""The parts of a segment of a rollout: text that was given, and answers that were sampled, each with its ids.

A part never changes. So copies of a rollout share their parts, and a step adds parts and touches no others. What a part
has for each id are the machine's numbers, as a session may hold millions of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, NamedTuple

from ..answers.format import Turn
from ..templates.borders import Lead
from ..tokens.pieces import as_text, encoded
from .around import Rendered
from .marks import Indexed, all_marks, inside, marks_of_words, starting, token_runs
from .placeholders import Placeholder, find_placeholders
from .places import Places
from .quoted import quoted_in
from .sample import Kind, Mark, Span
from .spoken import Chunk, Spoken, pieces

Messages = tuple[tuple[int, Mapping[str, Any]], ...]


class Column(NamedTuple):
    """What a part adds to a sample; the runs count from the part's first id."""

    ids: Sequence[int]
    counted: Sequence[Span]
    marks: Sequence[Mark]


@dataclass(frozen=True, slots=True)
class Given:
    """Text that was given, with its ids and their ``spans``: where each begins in the text, and where it ends.
    ``messages``: those that are in it, with their indices. ``stop``: the ids that are the stop of the answer before it,
    and whether it is ``counted``. ``answers``: the places of answers that are context, which ``reader`` reads.
    ``words``: what the words of all others are. ``placeholders``: of images and other parts, in tokens; ``expanded``:
    the numbers of those in whose place the engine's ids are. ``lead``: after an answer, all that the template writes
    there, as the text before the next answer."""

    ids: Sequence[int]
    text: str
    spans: Sequence[int]
    messages: Messages = ()
    stop: Span = (0, 0)
    counted: bool = False
    answers: Places = field(default_factory=dict)
    reader: Turn | None = None
    words: tuple[Mark, ...] = ()
    placeholders: tuple[Placeholder, ...] = ()
    expanded: frozenset[int] = frozenset()
    lead: Lead | None = None

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

    def column(self, seen: set[str]) -> Column:
        """What it adds to a sample."""
        marks = all_marks(self.words, self.answers, self.reader, self.text, dict(self.messages))
        found = starting(self.spans[::2], marks)
        if self.stop[1] > self.stop[0]:
            found.append((*self.stop, int(Kind.STOP), -1))
        return Column(self.ids, [self.stop] if self.counted else [], found)


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
        kinds = [(0, len(ids), int(Kind.MARKUP)), *token_runs(self.spoken.message, pieces(tokenizer, ids))]
        if not self.bare:
            kinds.append((len(ids) - len(self.spoken.stop), len(ids), int(Kind.STOP)))
        marks = [(start, min(end, len(ids)), int(kind), self.index) for start, end, kind in kinds]
        return Column(ids, counted, marks)


def _runs(marks: bytes, at: int) -> Iterator[Span]:
    start = 0
    for place in range(len(marks) + 1):
        if place == len(marks) or not marks[place]:
            if place > start:
                yield at + start, at + place
            start = place + 1


def given(shown: Rendered, known: Indexed, messages: Messages, before: str | None, **more: Any) -> Given:
    """The part of a rendering. ``shown``: it, or a part of it; ``known``: the messages that its trace may name;
    ``messages``: those that are here. ``before``: the stop that it follows; None at the beginning of all."""
    ids, spans, placeholders = in_ids(shown, known, messages, before)
    packed = array("I", chain.from_iterable(spans))
    words, text = tuple(marks_of_words(shown.trace, known)), shown.trace.text
    return Given(
        array("q", ids), text, packed, messages, words=words, placeholders=tuple(placeholders), **more
    )


def in_ids(
    shown: Rendered,
    known: Indexed,
    messages: Iterable[tuple[int, Mapping[str, Any]]],
    before: str | None,
    borders: Iterable[int] = (),
) -> tuple[Sequence[int], Sequence[Span], list[Placeholder]]:
    """The ids of a rendering, where each of them is in its text, and the placeholders in ids. The parameters are those
    of `given`; what is between ``borders`` is encoded apart."""
    ids, spans = _ids(shown, known, before, borders)
    placeholders = []
    for one in find_placeholders(shown, messages):
        first, last = inside(spans, one.start, one.end)
        placeholders.append(one._replace(start=first, end=last))
    return ids, spans, placeholders


def _ids(
    shown: Rendered, known: Indexed, before: str | None, borders: Iterable[int]
) -> tuple[Sequence[int], Sequence[Span]]:
    """The ids, in which words spell no marker; without a tokenizer, the characters."""
    tokenizer, text = shown.turn.tokenizer, shown.trace.text
    if tokenizer is None:
        return list(map(ord, text)), [(at, at + 1) for at in range(len(text))]
    first, *others = pairwise(sorted({0, len(text), *borders})) if text else [(0, 0)]
    ids, spans = encoded(tokenizer, text[slice(*first)], before)
    for start, end in others:
        more, places = encoded(tokenizer, text[start:end], "")
        ids, spans = [*ids, *more], [*spans, *((start + at, start + to) for at, to in places)]
    quoted = quoted_in(shown, known)
    return as_text(tokenizer, text, ids, spans, quoted) if quoted else (ids, spans)
