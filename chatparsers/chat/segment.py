"""A segment of a rollout: a rendering, and after it answers and steps, as immutable parts."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import nan
from threading import Lock
from typing import Any, NamedTuple

from ..templates.trace import Trace, part_of
from .around import Lead, Rendered
from .bridge import lead_of
from .parts import Completion, Given, given
from .placeholders import Placeholder
from .places import Place, places_in
from .request import Request
from .sample import Sample
from .spoken import spelt

_growing = Lock()
"""Held while an array of ids grows, which segments of several threads may share."""


class Step(NamedTuple):
    """What follows an answer. ``lead``: all that the template writes there, as the text before the next answer."""

    part: Given
    lead: Lead


@dataclass(slots=True)
class Segment:
    """``lead``: the rendering that it begins with. ``turns``: answers, and the steps after them. ``thoughts``: the
    messages whose thoughts the rendering shows.

    A segment shares the array of its ids with those that it grew from: each has the first ``_held`` of them."""

    opening: tuple[Given | Completion, ...]
    lead: Lead
    turns: tuple[Completion | Step, ...] = ()
    thoughts: frozenset[int] = frozenset()
    _ids: array[int] | None = None
    _held: int = 0

    def answered(self, said: Completion) -> Segment:
        """The segment with an answer after it."""
        return self._grown(said, said.ids)

    def added(self, step: Step) -> Segment:
        """The segment with a step after it."""
        return self._grown(step, step.part.ids)

    def _grown(self, turn: Completion | Step, ids: Sequence[int]) -> Segment:
        other = Segment(self.opening, self.lead, (*self.turns, turn), self.thoughts)
        held = self._ids
        if held is not None:
            with _growing:
                if len(held) > self._held:  # another one has gone on with it
                    held = held[: self._held]
                held.extend(ids)
            other._ids, other._held = held, self._held + len(ids)
        return other

    def parts(self) -> Iterator[Given | Completion]:
        """All parts in their order."""
        yield from self.opening
        for turn in self.turns:
            yield turn.part if isinstance(turn, Step) else turn

    def placeholders(self) -> Iterator[tuple[Placeholder, int, int]]:
        """The placeholders that are not expanded, by the segment's ids, each with the number of its part, and its own
        in the part."""
        at = 0
        for place, part in enumerate(self.parts()):
            for number, one in enumerate(part.placeholders if isinstance(part, Given) else ()):
                if isinstance(part, Given) and number not in part.expanded:
                    yield one._replace(start=one.start + at, end=one.end + at), place, number
            at += len(part.ids)

    def expanded(self) -> Iterator[tuple[Placeholder, Sequence[int]]]:
        """The placeholders that are expanded, by the ids of their parts, and what is there."""
        for part in self.parts():
            if isinstance(part, Given):
                for number in part.expanded:
                    one = part.placeholders[number]
                    yield one, part.ids[one.start : one.end]

    def expand(self, place: int, number: int, ids: Sequence[int]) -> Segment:
        """The segment with other ids for a placeholder of the part at a place."""

        def changed(at: int, turn: Completion | Step | Given) -> Any:
            if at != place or isinstance(turn, Completion):
                return turn
            if isinstance(turn, Step):
                return turn._replace(part=turn.part.expand(number, ids))
            return turn.expand(number, ids)

        opening = tuple(changed(at, part) for at, part in enumerate(self.opening))
        turns = tuple(changed(at, turn) for at, turn in enumerate(self.turns, len(opening)))
        return Segment(opening, self.lead, turns, self.thoughts)

    def said(self) -> Iterator[Completion]:
        """The answers."""
        return (part for part in self.parts() if isinstance(part, Completion))

    def answers(self) -> Iterator[tuple[Lead, Completion]]:
        """The answers that came after the rendering, each with the text before it."""
        lead = self.lead
        for turn in self.turns:
            if isinstance(turn, Step):
                lead = turn.lead
            else:
                yield lead, turn

    @property
    def last(self) -> Completion:
        """The answer that it ends with. Raises ValueError if it ends otherwise."""
        turn = self.turns[-1] if self.turns else None
        if not isinstance(turn, Completion):
            raise ValueError("the segment ends with no answer")
        return turn

    def ids(self, start: int = 0) -> list[int]:
        """A new list of all ids, from a place on."""
        return self._array()[start : self._held].tolist()

    def _array(self) -> array[int]:
        found = self._ids
        if found is None:
            found = array("q")
            for part in self.parts():
                found.extend(part.ids)
            self._ids, self._held = found, len(found)
        return found

    def __len__(self) -> int:
        self._array()
        return self._held

    def text(self, tokenizer: Any) -> str:
        """What the ids spell."""
        parts = [self.lead.text]
        for turn in self.turns:
            parts.append(turn.part.text if isinstance(turn, Step) else spelt(tokenizer, turn.ids))
        return "".join(parts)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("opening", "lead", "turns", "thoughts")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._ids, self._held = None, 0


def opened(
    request: Request,
    whole: Rendered,
    messages: Sequence[Mapping[str, Any]],
    begun: bool,
    held: Mapping[int, Completion],
) -> Segment:
    """The segment of a rendering. ``begun``: the last message is the beginning of the answer. ``held``: answers that
    were sampled, by their index; one whose text stands unchanged keeps its ids."""
    turn, trace = whole.turn, whole.trace
    text = trace.text
    places = places_in(whole, messages, request.around(turn.polyfills), begun)
    tokenizer = request.chat.tokenizer
    kept = [
        (found[0], held[index])
        for index, found in places.items()
        if index in held
        and index < len(messages) - begun
        and len(found) == 1
        and held[index].spoken.text(tokenizer) == text[found[0].start : found[0].stop]
    ]

    def stretch(start: int, end: int, first: int, last: int, before: str | None) -> Given:
        """The part of the prompt between two positions, with the answers between two indices."""
        answers = {
            index: [
                Place(place.start - start, place.stop - start, place.end - start, place.prefix)
                for place in places[index]
            ]
            for index in range(first, last)
            if index in places
        }
        indexed = tuple((index, messages[index]) for index in range(first, last))
        part = part_of(trace, start, end)
        return given(request, part, messages, indexed, before, answers=answers, reader=turn)

    parts: list[Given | Completion] = []
    at, first = 0, 0
    stop: str | None = None
    for place, said in kept:
        parts.append(stretch(at, place.start, first, said.index, stop))
        sampled = said.spoken.stop
        wanted = text[place.stop : place.end]
        same = bool(sampled) and spelt(tokenizer, sampled).strip() == wanted.strip()
        parts.append(replace(said, context=True, bare=not same))
        at, first = place.end if same else place.stop, said.index + 1
        stop = wanted.strip() if same else ""
    parts.append(stretch(at, len(text), first, len(messages), stop))
    lead = lead_of(request, turn, () if begun else messages, text)
    return Segment(tuple(part for part in parts if part.ids), lead, (), thoughts_in(trace))


def thoughts_in(trace: Trace) -> frozenset[int]:
    """The messages whose thoughts a rendering shows."""
    return frozenset(span.message for span in trace.spans if span.field == "reasoning")


def sample_of(
    tokenizer: Any, parts: Sequence[Given | Completion], seen: set[str], *, truncated: bool
) -> Sample:
    """The sample of these parts. ``seen``: the chunks that were counted before; those that count here are added."""
    columns = [part.column(seen) if isinstance(part, Completion) else part.column() for part in parts]
    probs: list[float] = []
    versions: list[int] = []
    for part, column in zip(parts, columns, strict=True):
        chunks = part.chunks() if isinstance(part, Completion) else ()
        for chunk in chunks:
            probs += chunk.logprobs or (nan,) * len(chunk.ids)
            versions += (chunk.version,) * len(chunk.ids)
        if not chunks:
            probs += (nan,) * len(column.ids)
            versions += (-1,) * len(column.ids)
    starts = accumulate((len(column.ids) for column in columns), initial=0)
    placed = list(zip(starts, parts, columns, strict=False))  # the last start is the end
    return Sample(
        [id for column in columns for id in column.ids],
        [(a + at, b + at) for at, _, column in placed for a, b in column.counted],
        kinds=[(a + at, b + at, kind) for at, _, column in placed for a, b, kind in column.kinds],
        messages=[(a + at, b + at, index) for at, _, column in placed for a, b, index in column.messages],
        logprobs=probs,
        versions=versions,
        placeholders=[
            one._replace(start=one.start + at, end=one.end + at)
            for at, part, _ in placed
            if isinstance(part, Given)
            for one in part.placeholders
        ],
        text="".join(part.text if isinstance(part, Given) else spelt(tokenizer, part.ids) for part in parts),
        truncated=truncated,
    )
