"""A finished conversation as a sample: its ids, and the loss mask of its answers.

    messages ──render──> text ──find places──> spans of answers ──tokenizer──> ids, mask

The text is rendered once and encoded once. An answer counts from after its generation prompt to the end of its stop,
if it is in the text as it would be written at its turn. One whose thought or content the template dropped is
context: it would teach the model to answer without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from ..errors import RequestError
from ..templates.messages import reasoning_of
from ..templates.trace import Trace
from .around import Rendered
from .inline import Marks, beside_thoughts
from .marks import all_marks, answer_at, inside, marks_of_words, starting
from .parts import in_ids
from .places import Place, Places, missing, places_in
from .request import Request
from .rows import Rows
from .sample import Kind, Mark, Sample, Span
from .shapes import shape_of

TrainOn: TypeAlias = Literal["all", "last"] | Callable[[Mapping[str, Any], int], bool]
"""Which answers a loss counts: all, the last, or those for which a function of the message and its index is true."""


@dataclass(frozen=True, slots=True)
class How:
    """What of a conversation is counted, and how it is encoded: the options of `Chat.encode`."""

    train_on: TrainOn = "all"
    reasoning: bool = True
    rewritten: bool = False
    split: bool = False
    final_stop: bool = True

    def __post_init__(self) -> None:
        if not callable(self.train_on) and self.train_on not in ("all", "last"):
            raise RequestError(f"train_on: expected 'all', 'last' or a function, found {self.train_on!r}")


@dataclass(frozen=True, slots=True)
class _Shown:
    """Rows as the template shows them, and the places of their answers. ``begun``: the last is only begun. ``marks``:
    the markers of thoughts."""

    rows: Rows
    whole: Rendered
    places: Places
    begun: bool
    marks: Sequence[Marks]


def encode(request: Request, rows: Rows, how: How, only: range | None = None) -> Sample:
    """The sample of a conversation. ``only``: the messages of which answers may count. Raises the errors of
    `Chat.prepare`."""
    shown = _shown(request, rows, how)
    counted, left_out = _counted(shown, how, only)
    return _sample(shown, counted, left_out, how.split)


def encode_turns(request: Request, rows: Rows, how: How) -> list[Sample]:
    """A sample for each question, in which its own answers count; one for an answer that is shown whole only while it
    is the last."""
    found: list[Sample] = []
    for cycle in _cycles(rows.messages):
        sample = encode(request, rows.until(cycle.stop), how, cycle)
        context = [at for at, why in sample.left_out.items() if why != rows.noted.get(at)]
        for index in [index for index in context if index + 1 < cycle.stop]:
            alone = encode(request, rows.until(index + 1), how, range(index, index + 1))
            if alone.counted:
                del sample.left_out[index]
                found.append(alone)
        found.append(sample)
    return [sample for sample in found if sample.counted or sample.left_out]


def _cycles(messages: Sequence[Mapping[str, Any]]) -> Iterator[range]:
    """The messages of each question: up to the next message of a user that follows another role."""
    start = 0
    for index in range(1, len(messages) + 1):
        if index == len(messages) or (
            messages[index].get("role") == "user" and messages[index - 1].get("role") in ("assistant", "tool")
        ):
            yield range(start, index)
            start = index


def _shown(request: Request, rows: Rows, how: How) -> _Shown:
    generate, begun = (request.options.get(at) for at in ("add_generation_prompt", "continue_final_message"))
    messages = rows.messages
    whole = request.traced(messages)
    places = places_in(whole, messages, bool(begun))
    if how.final_stop and not generate and not begun and messages[-1].get("role") == "assistant":
        whole = _stopped(whole, places, len(messages) - 1, bool(messages[-1].get("tool_calls")))
    return _Shown(rows, whole, places, bool(begun), request.marks)


def _stopped(whole: Rendered, places: Places, last: int, calls: bool) -> Rendered:
    """The rendering with the stop of its last answer, if the template leaves that open: the one that would follow.
    ``last``: its index; ``calls``: whether it calls."""
    turns = places.get(last)
    rest = whole.around.ends(calls).left_out if turns and turns[-1].end == turns[-1].stop else ""
    if not turns or not rest:
        return whole
    place = turns[-1]
    places[last] = [*turns[:-1], replace(place, end=place.stop + len(rest))]
    return whole._replace(trace=Trace(whole.trace.text[: place.stop] + rest, whole.trace.spans))


def _counted(shown: _Shown, how: How, only: range | None) -> tuple[list[Span], dict[int, str]]:
    """What counts, in characters; and which answers do not that were asked for, and why."""
    counted: list[Span] = []
    left_out: dict[int, str] = {}
    messages, noted = shown.rows
    finished = range(len(messages) - shown.begun)
    may = finished if only is None else finished[only.start : only.stop]
    answers = [at for at, message in enumerate(messages) if message.get("role") == "assistant"]
    for index in answers:
        message, turns = messages[index], shown.places.get(index, ())
        if index not in may or not wanted(how.train_on, message, index, answers[-1]):
            continue
        if not turns:
            left_out[index] = "moved" if any(shape_of(message)) else "empty"
        elif (lost := missing(message, index, shown.whole.trace, turns)) and not how.rewritten:
            left_out[index] = lost
        else:
            if index in noted:
                left_out[index] = noted[index]
            thought = bool(reasoning_of(message)) and lost != "thought"
            for number, place in enumerate(turns):
                counted += _spans(shown, message, place, how, thought=thought, first=not number)
    return counted, left_out


def wanted(train_on: TrainOn, message: Mapping[str, Any], index: int, last: int) -> bool:
    """Whether an answer is to count. One of weight 0 never does. ``last``: the index of the last one."""
    if message.get("weight") == 0:
        return False
    if callable(train_on):
        return bool(train_on(message, index))
    return train_on == "all" or index == last


_NAMES = {Kind.REASONING: "reasoning", Kind.ANSWER_MARKUP: "markup", Kind.CONTENT: "content"}


def _spans(
    shown: _Shown, message: Mapping[str, Any], place: Place, how: How, *, thought: bool, first: bool
) -> Iterator[Span]:
    """What counts of an answer's turn: all but what the template writes for no thought, and if thoughts do not count,
    them and their markers. ``thought``: whether one is shown."""
    marks, whole = shown.marks, shown.whole
    text, at = whole.trace.text[place.start : place.stop], place.start
    if (thought and not how.reasoning) or (not thought and first and any(one.end in text for one in marks)):
        runs = answer_at(place, whole.turn, whole.trace.text, message)
        found = [(start - at, end - at, _NAMES.get(Kind(kind), "call")) for start, end, kind in runs]
        for start, end in beside_thoughts(text, found, marks, thought=thought, reasoning=how.reasoning):
            yield at, place.start + start
            at = place.start + end
    yield at, place.end


def _sample(shown: _Shown, counted: Sequence[Span], left_out: Mapping[int, str], split: bool) -> Sample:
    messages, whole, places = shown.rows.messages, shown.whole, shown.places
    turn, trace = whole.turn, whole.trace
    borders = [at for turns in places.values() for place in turns for at in (place.start, place.end)]
    ids, offsets, placeholders = in_ids(whole, messages, enumerate(messages), None, borders if split else ())

    def marks() -> list[Mark]:
        words = marks_of_words(trace, messages)
        return starting([at for at, _ in offsets], all_marks(words, places, turn, trace.text, messages))

    return Sample(
        ids,
        [inside(offsets, *span) for span in counted],
        marks,
        placeholders=placeholders,
        text=trace.text,
        left_out=left_out,
        unit="character" if turn.tokenizer is None else "token",
    )
