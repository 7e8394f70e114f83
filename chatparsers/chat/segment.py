"""A segment of a rollout: a rendering, and after it answers and steps, as immutable parts."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from threading import Lock
from typing import Any, TypeAlias

from ..templates.borders import Lead
from ..templates.trace import Trace, part_of
from .around import Rendered
from .bridge import lead_of
from .parts import Completion, Given, given
from .placeholders import Placeholder
from .places import Place, places_in
from .sample import Mark, Sample, Span
from .spoken import spelt

_growing = Lock()
"""Held while an array of ids grows, which segments of several threads may share."""


Part: TypeAlias = Given | Completion


@dataclass(slots=True)
class Segment:
    """``lead``: the rendering that it begins with, which are the first ``begun`` of its ``parts``. ``thoughts``: the
    messages whose thoughts the rendering shows.

    A segment shares the array of its ids with those that it grew from: each has the first ``_held`` of them."""

    parts: tuple[Part, ...]
    lead: Lead
    begun: int = 0
    thoughts: frozenset[int] = frozenset()
    _ids: array[int] | None = None
    _held: int = 0

    def added(self, part: Part) -> Segment:
        """The segment with an answer after it, or with what the template writes after an answer."""
        other = Segment((*self.parts, part), self.lead, self.begun, self.thoughts)
        held = self._ids
        if held is not None:
            with _growing:
                if len(held) > self._held:  # another one has gone on with it
                    held = held[: self._held]
                held.extend(part.ids)
            other._ids, other._held = held, self._held + len(part.ids)
        return other

    def placeholders(self) -> Iterator[tuple[Placeholder, int, int]]:
        """The placeholders that are not expanded, by the segment's ids, each with the number of its part, and its own
        in the part."""
        at = 0
        for place, part in enumerate(self.parts):
            for number, one in enumerate(part.placeholders if isinstance(part, Given) else ()):
                if isinstance(part, Given) and number not in part.expanded:
                    yield one._replace(start=one.start + at, end=one.end + at), place, number
            at += len(part.ids)

    def expanded(self) -> Iterator[tuple[Placeholder, Sequence[int]]]:
        """The placeholders that are expanded, by the ids of their parts, and what is there."""
        for part in self.parts:
            if isinstance(part, Given):
                for number in part.expanded:
                    one = part.placeholders[number]
                    yield one, part.ids[one.start : one.end]

    def expand(self, place: int, number: int, ids: Sequence[int]) -> Segment:
        """The segment with other ids for a placeholder of the part at a place."""
        parts = list(self.parts)
        part = parts[place]
        if isinstance(part, Given):
            parts[place] = part.expand(number, ids)
        return Segment(tuple(parts), self.lead, self.begun, self.thoughts)

    def said(self) -> Iterator[Completion]:
        """The answers."""
        return (part for part in self.parts if isinstance(part, Completion))

    def answers(self) -> Iterator[tuple[Lead, Completion]]:
        """The answers that came after the rendering, each with the text before it."""
        lead = self.lead
        for part in self.parts[self.begun :]:
            if isinstance(part, Completion):
                yield lead, part
            elif part.lead is not None:
                lead = part.lead

    @property
    def last(self) -> Completion:
        """The answer that it ends with. Raises ValueError if it ends otherwise."""
        part = self.parts[-1] if self.parts else None
        if not isinstance(part, Completion):
            raise ValueError("the segment ends with no answer")
        return part

    def ids(self, start: int = 0) -> list[int]:
        """A new list of all ids, from a place on."""
        return self._array()[start : self._held].tolist()

    def _array(self) -> array[int]:
        found = self._ids
        if found is None:
            found = array("q")
            for part in self.parts:
                found.extend(part.ids)
            self._ids, self._held = found, len(found)
        return found

    def __len__(self) -> int:
        self._array()
        return self._held

    def text(self, tokenizer: Any) -> str:
        """What the ids spell."""
        return self.lead.text + _text(tokenizer, self.parts[self.begun :])

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("parts", "lead", "begun", "thoughts")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._ids, self._held = None, 0


def opened(
    whole: Rendered,
    messages: Sequence[Mapping[str, Any]],
    begun: bool,
    held: Mapping[int, Completion],
) -> Segment:
    """The segment of a rendering. ``begun``: the last message is the beginning of the answer. ``held``: answers that
    were sampled, by their index; one whose text stands unchanged keeps its ids."""
    turn, trace = whole.turn, whole.trace
    text = trace.text
    places = places_in(whole, messages, begun)
    tokenizer = turn.tokenizer
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
        part = whole._replace(trace=part_of(trace, start, end))
        return given(part, messages, indexed, before, answers=answers, reader=turn)

    parts: list[Part] = []
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
    lead = lead_of(whole.around, turn, () if begun else messages, text)
    shown = tuple(part for part in parts if part.ids)
    return Segment(shown, lead, len(shown), thoughts_in(trace))


def thoughts_in(trace: Trace) -> frozenset[int]:
    """The messages whose thoughts a rendering shows."""
    return frozenset(span.message for span in trace.spans if span.field == "reasoning")


def sample_of(tokenizer: Any, parts: Sequence[Part], seen: set[str]) -> Sample:
    """The sample of these parts. ``seen``: the chunks that were counted before; those that count here are added."""
    ids: list[int] = []
    counted: list[Span] = []
    marks: list[Mark] = []
    probs: list[float] = []
    versions: list[int] = []
    placeholders: list[Placeholder] = []
    for part in parts:
        at = len(ids)
        column = part.column(seen)
        ids += column.ids
        counted += ((start + at, end + at) for start, end in column.counted)
        marks += ((start + at, end + at, kind, index) for start, end, kind, index in column.marks)
        if isinstance(part, Completion):
            for chunk in part.chunks():
                probs += chunk.logprobs or (nan,) * len(chunk.ids)
                versions += (chunk.version,) * len(chunk.ids)
        else:
            placeholders += (
                one._replace(start=one.start + at, end=one.end + at) for one in part.placeholders
            )
        probs += (nan,) * (len(ids) - len(probs))
        versions += (-1,) * (len(ids) - len(versions))
    last = parts[-1] if parts else None
    return Sample(
        ids,
        counted,
        marks,
        logprobs=probs,
        versions=versions,
        placeholders=placeholders,
        text=_text(tokenizer, parts),
        truncated=isinstance(last, Completion) and last.spoken.cut,
    )


def _text(tokenizer: Any, parts: Sequence[Part]) -> str:
    """What the parts spell."""
    return "".join(part.text if isinstance(part, Given) else spelt(tokenizer, part.ids) for part in parts)
