"""The turns that a template renders of known messages, by which formats are told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ..answers.features import reasoning_spans
from ..answers.format import Format
from ..answers.idioms import Options
from ..answers.thoughts import THOUGHTS
from ..core.tree import first
from ..errors import TemplateError
from ..registry import get_format
from ..templates import Template
from ..templates.probe.stand_ins import (
    ANSWER,
    NAME,
    THOUGHT,
    TOOLS,
    answer,
    call_of,
    ending_in,
    question,
    results,
)

CONTENT_ONLY = "content-only"
"""The format of templates that know neither tools nor reasoning."""

CALL = call_of()
HISTORY = [question()]
_AND_ON = question("Go on.")


@dataclass(frozen=True, slots=True)
class Probe:
    """A message that the template rendered: the message itself, the prompt, the part of the prompt that opens the
    assistant's turn, and the turn as the model would have written it."""

    what: str
    message: Mapping[str, Any]
    prompt: str
    opening: str
    wire: str


def probes_of(template: Template) -> Iterator[Probe]:
    """The turns that the template can render, each with its kind of message."""
    can = template.can
    wanted = [("an answer", answer())]
    if can.reasoning:
        wanted.append(("an answer after reasoning", answer(thought=THOUGHT)))
    if can.tool_calls:
        if can.bare_calls:
            wanted.append(("a call", answer("", calls=1)))
        if can.reasoning_with_calls:
            wanted.append(("a call after reasoning", answer("", thought=THOUGHT, calls=1)))
    for what, message in wanted:
        probe = turn_of(template, what, message)
        if probe is not None:
            yield probe


def turn_of(template: Template, what: str, message: dict[str, Any]) -> Probe | None:
    """The message as the template renders it; None if the template refuses it."""
    thinking = True if "reasoning" in what else None
    tools = TOOLS if template.can.tools else None
    try:
        turn = template.exchange(message, history=HISTORY, tools=tools, thinking=thinking)
    except TemplateError:
        return None
    return Probe(what, message, *turn)


def several_calls(template: Template) -> list[Probe]:
    """A turn with two calls, if the template shows both."""
    can = template.can
    if not can.parallel_calls:
        return []
    both = answer("", thought="" if can.bare_calls else THOUGHT, calls=2)
    probe = turn_of(template, "two calls" if can.bare_calls else "two calls after reasoning", both)
    return [] if probe is None else [probe]


def call_after_text(template: Template) -> Probe | None:
    """A turn with a text and a call, if the template shows both, in this order."""
    can = template.can
    probe = (
        turn_of(template, "a call after text", answer(calls=1)) if can.tool_calls and can.bare_calls else None
    )
    at = -1 if probe is None else probe.wire.find(ANSWER)
    return probe if probe is not None and 0 <= at < probe.wire.find(NAME) else None


def without_end(template: Template, probes: list[Probe]) -> list[Probe]:
    """The turns without their ends: another family's end of turn is not a stop of the format."""
    end = next(iter(template.end_of_turn(get_format(CONTENT_ONLY))), "").strip()
    return [replace(probe, wire=probe.wire.rstrip().removesuffix(end)) for probe in probes]


def cut_out(template: Template) -> tuple[str, str] | None:
    """The markers of the thoughts that the template cuts out of a past answer; None if it leaves all of them in."""
    thoughts = {pair: f"{THOUGHT} {number}" for number, pair in enumerate(THOUGHTS)}
    text = "".join(f"{begin}\n{thought}\n{end}\n\n" for (begin, end), thought in thoughts.items()) + ANSWER
    try:
        rendered = template.probed([*HISTORY, answer(text), _AND_ON])
    except TemplateError:
        return None
    if ANSWER not in rendered:
        return None
    # What comes before the thought goes with it, so the last one that is missing is the one that was looked for.
    return next((pair for pair in reversed(THOUGHTS) if thoughts[pair] not in rendered), None)


def knows_reasoning(template: Template, format: Format) -> bool:
    """Whether the template shows that its model writes reasoning as the format has it.

    It writes reasoning, has a switch for it, tells a marker of it or opens it in a prompt, or cuts it out of a past
    answer.
    """
    if template.can.full.reasoning_as is not None or template.thinking_kwargs(False):
        return True
    prompt = prompt_of(template)
    spans = reasoning_spans(format.tree(Options(tools=True)))
    edges = (edge for span in spans for edge in (span.open, span.close) if edge is not None)
    markers = (text.strip() for edge in edges for text in first(edge))
    return any(marker and marker in prompt for marker in markers) or cut_out(template) is not None


def prompt_of(template: Template) -> str:
    """The prompt for a question with tools; ``""`` if the template refuses it."""
    try:
        return template.probed(HISTORY, tools=TOOLS, add_generation_prompt=True)
    except TemplateError:
        return ""


def call_spaces(
    render: Callable[[Sequence[Mapping[str, Any]], bool], str], format: Format, prefix: str
) -> tuple[tuple[str, ...], ...]:
    """The white space at the start of an answer before a call and before a thought, and between the two.

    As ``render`` (messages with `TOOLS`, with a generation prompt or without) writes it in later prompts. None where it
    does not tell; of the first two, one is as the other then. ``prefix``: what a prompt for an answer has of it.
    """
    spans = reasoning_spans(format.tree(Options(tools=True)))
    closers = [text.strip() for span in spans if span.close is not None for text in first(span.close)]
    closer = next(filter(prefix.startswith, closers), "")
    begun = prefix.removeprefix(closer)  # a closer alone is before the answer
    found: tuple[dict[str, None], ...] = ({}, {}, {})
    for thought in ("", THOUGHT):
        said = answer("", thought=thought, calls=1)
        try:
            prompt, later = render(HISTORY, True), render([*HISTORY, said, *results(1)], False)
        except TemplateError:
            continue
        wire, _, called = (begun + later[len(prompt) :]).partition(NAME)
        if not (called and later.startswith(prompt) and prompt.endswith(prefix) and thought in wire):
            continue
        ends = [wire.rfind(closer) + len(closer) for closer in closers if closer in wire]
        for place, at in ((1 if ends or thought else 0, 0), *((2, end) for end in ends)):
            rest = wire[at:]
            found[place][rest[: len(rest) - len(rest.lstrip())]] = None
    call, think, between = map(tuple, found)
    return call or think, think or call, between


def after_thoughts(probes: list[Probe], markers: tuple[str, str]) -> list[Probe]:
    """The answer after a thought between these markers, which the prompt may have opened but not closed."""
    begin, end = markers
    found = []
    for probe in probes:
        if probe.what == "an answer" and end not in probe.opening:
            thought = ("" if begin in probe.opening else begin) + THOUGHT + end
            message = {**probe.message, "reasoning_content": THOUGHT}
            what = "an answer after reasoning that the template cuts out"
            found.append(replace(probe, what=what, message=message, wire=thought + probe.wire))
    return found


def context_of(template: Template) -> Iterator[str]:
    """Renderings that show markers no answer has: the system's text without tools, the tools, and a tool's result."""
    with suppress(TemplateError):
        yield template.probed(HISTORY, add_generation_prompt=True)
    for messages, thinking in ((HISTORY, None), (HISTORY, True), (ending_in("tool"), None)):
        with suppress(TemplateError):
            yield template.probed(
                messages, tools=TOOLS, add_generation_prompt=True, **template.thinking_kwargs(thinking)
            )
