"""A finished conversation as a sample: its ids, and the loss mask of its answers.

    messages ──render──> text ──find places──> spans of answers ──tokenizer──> ids, mask

The text is rendered once and encoded once. An answer counts from after its generation prompt to the end of its stop,
if it is in the text as it would be written at its turn. One whose thought or content the template dropped is
context: it would teach the model to answer without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from ..core.format import Turn
from ..errors import RequestError
from ..templates.messages import own
from ..templates.probe.turns import common
from ..templates.trace import Trace
from ..tokens.pieces import Offsets, as_text, encoded
from .marks import Span, all_runs, answer_at, in_tokens, inside, starting, traced_runs
from .placeholders import Placeholder, find_placeholders, has_parts
from .places import Place, Places, missing, places_in
from .quoted import quoted_in
from .request import Request
from .sample import Kind, Run, Sample
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
class _Rendered:
    """A conversation, its rendering and the places of its answers. ``begun``: the last answer is only begun."""

    messages: Sequence[Mapping[str, Any]]
    turn: Turn
    trace: Trace
    text: str
    places: Places
    begun: bool


def encode(
    request: Request, messages: Sequence[Mapping[str, Any]], how: How, only: range | None = None
) -> Sample:
    """The sample of a conversation. ``only``: the messages of which answers may count. Raises the errors of
    `Chat.prepare`."""
    messages = own(messages)
    rendered = _render(request, messages, how)
    counted, left_out = _counted(rendered, how, range(len(messages)) if only is None else only)
    return _sample(request, rendered, counted, left_out, how)


def encode_turns(request: Request, messages: Sequence[Mapping[str, Any]], how: How) -> list[Sample]:
    """A sample for each question, in which its own answers count; one for an answer that is shown whole only while it
    is the last."""
    found: list[Sample] = []
    for cycle in _cycles(messages):
        sample = encode(request, messages[: cycle.stop], how, cycle)
        for index in [index for index in sample.left_out if index + 1 < cycle.stop]:
            alone = encode(request, messages[: index + 1], how, range(index, index + 1))
            if index not in alone.left_out:
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


def _render(request: Request, messages: Sequence[Mapping[str, Any]], how: How) -> _Rendered:
    generate = bool(request.options.get("add_generation_prompt"))
    begun = bool(request.options.get("continue_final_message"))
    shown = request.traced(messages)
    turn, trace = shown.turn, shown.trace
    text = trace.text
    places = places_in(shown, messages, request.around(turn.polyfills), begun)
    if not begun and how.final_stop and not generate and messages[-1].get("role") == "assistant":
        text = _stopped(request, turn, messages, places)
    return _Rendered(messages, turn, trace, text, places, begun)


def _stopped(request: Request, turn: Turn, messages: Sequence[Mapping[str, Any]], places: Places) -> str:
    """The text with the last answer's stop, if the template leaves that answer open: the one that would follow."""
    text, turns = turn.prompt, places.get(len(messages) - 1)
    if not turns or turns[-1].end > turns[-1].stop:
        return text
    place = turns[-1]
    around, calls = request.around(turn.polyfills), bool(messages[-1].get("tool_calls"))
    closer, stop = around.ending(calls)
    if not stop:
        return text
    stop = closer[common(closer, around.alone(calls) or "") :] + stop
    places[len(messages) - 1] = [*turns[:-1], replace(place, end=place.stop + len(stop))]
    return text[: place.stop] + stop


def _counted(rendered: _Rendered, how: How, only: range) -> tuple[list[tuple[int, Place]], dict[int, str]]:
    """The answers that count, and why others do not that were asked for."""
    counted: list[tuple[int, Place]] = []
    left_out: dict[int, str] = {}
    answers = [index for index, message in enumerate(rendered.messages) if message.get("role") == "assistant"]
    for index in answers:
        message = rendered.messages[index]
        if index not in only or not wanted(how.train_on, message, index, answers[-1]):
            continue
        if rendered.begun and index + 1 == len(rendered.messages):
            continue
        places = rendered.places.get(index)
        if not places:
            left_out[index] = "moved" if any(shape_of(message)) else "empty"
            continue
        lost = missing(message, index, rendered.trace, places)
        if lost and not how.rewritten:
            left_out[index] = lost
        else:
            counted += ((index, place) for place in places)
    return counted, left_out


def wanted(train_on: TrainOn, message: Mapping[str, Any], index: int, last: int) -> bool:
    if callable(train_on):
        return bool(train_on(message, index))
    return train_on == "all" or index == last


def _sample(
    request: Request,
    rendered: _Rendered,
    counted: Sequence[tuple[int, Place]],
    left_out: Mapping[int, str],
    how: How,
) -> Sample:
    text, tokenizer = rendered.text, request.chat.tokenizer
    ids, offsets = _encoded(tokenizer, text, rendered.places, how.split)
    quoted = quoted_in(request, rendered.trace, rendered.messages)
    if quoted and offsets is not None:
        ids, offsets = as_text(tokenizer, text, ids, offsets, quoted)
    runs: list[Span] = []
    for index, place in counted:
        spans = [(place.start, place.end)] if how.reasoning else _without_thoughts(rendered, index, place)
        runs += (span if offsets is None else inside(offsets, *span) for span in spans)

    def marks() -> tuple[list[Run], list[Run]]:
        words = traced_runs(rendered.trace, rendered.messages)
        columns = all_runs(words, rendered.places, rendered.turn, rendered.text, rendered.messages)
        return columns if offsets is None else starting([first for first, _ in offsets], *columns)

    found: list[Placeholder] = []
    if has_parts(rendered.messages):
        found = list(find_placeholders(rendered.trace, enumerate(rendered.messages), request))
        found = found if offsets is None else list(in_tokens(offsets, found))
    return Sample(
        ids,
        runs,
        placeholders=found,
        kinds=marks,
        text=text,
        left_out=left_out,
        unit="character" if tokenizer is None else "token",
    )


def _encoded(
    tokenizer: Any, text: str, places: Places, split: bool
) -> tuple[Sequence[int], Sequence[Span] | None]:
    """The ids and their spans in the text; without a tokenizer its code points, and None."""
    if tokenizer is None:
        return list(map(ord, text)), None
    if not split:
        encoding = tokenizer.encode(text, add_special_tokens=False)
        return encoding.ids, Offsets(encoding)
    turns = (place for found in places.values() for place in found)
    borders = sorted({0, len(text), *(at for place in turns for at in (place.start, place.end))})
    ids: list[int] = []
    offsets: list[Span] = []
    for start, end in pairwise(borders):
        found, spans = encoded(tokenizer, text[start:end], "" if start else None)
        ids += found
        offsets += ((start + first, start + last) for first, last in spans)
    return ids, offsets


def _without_thoughts(rendered: _Rendered, index: int, place: Place) -> Iterator[Span]:
    """The parts of an answer that are no reasoning."""
    at = place.start
    for start, end, kind in answer_at(place, rendered.turn, rendered.text, rendered.messages[index]):
        if kind == Kind.REASONING:
            yield at, start
            at = end
    yield at, place.end
