"""Finds the format of a chat template, by rendering and parsing back.

Strategy: the template renders a conversation whose messages are known: an answer, an answer after reasoning, a
call. Only renderings are compared, never the template's source, so a cosmetic edit changes nothing. In this order:

1. A format whose markers are all in the renderings is a candidate; its parser reads each rendered turn, and the format
   that returns exactly the messages wins.
2. Else a template may write the calls of one family under the role headers of another, or with reasoning that the first
   family has not. Then some of the markers are enough, but the format must also write the call as the template does,
   so that its grammar is right too.
3. Else the model's files may have a ``response_template``, as transformers wants it. It is read into a format, which
   counts if it returns all messages.
4. A template that none of these explains is analysed, and the format made of what was found.

Markers only rank: among formats that read the same wire, the one with the more specific markers is named. If two have
equal markers, the one that also reads reasoning is named. The evidence lists the formats that share the definition of
the one that is named. Many templates never show reasoning but cut it out of past answers. The text that they cut is as
good as a marker, and formats must read it. If a template silently drops calls, only markers and content can be
compared: the score is half, and the evidence says whether the template leaves a call whole that is written as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from ..core.definition.format import Format
from ..core.definition.idioms import THOUGHTS
from ..core.errors import ChatParsersError, DefinitionError, TemplateError
from ..core.message import Message
from ..interop import read_response_template
from ..registry import FormatInfo, get_format, list_formats
from ..templates import Template
from ..templates.builtins import builtin_named
from ..templates.jinja.limits import DEFAULT, Limits, account
from ..templates.probe.edges import opening as prompt_prefix
from ..tokens.loaders import is_template_text, read_model, template_text
from .analysis import analyse

__all__ = ["CONTENT_ONLY", "Detection", "analysed", "detect", "detect_in", "prompt_prefix"]

CONTENT_ONLY = "content-only"
"""The format of templates that know neither tools nor reasoning."""

_TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "probe_tool",
            "description": "Looks a thing up.",
            "parameters": {
                "type": "object",
                "properties": {
                    "thing": {"type": "string", "description": "What."},
                    "count": {"type": "integer", "description": "How many."},
                },
                "required": ["thing"],
            },
        },
    }
]
_ARGUMENTS = {"thing": "needle in hay", "count": 7}
_CALL = {
    "id": "probe0001",
    "type": "function",
    "function": {"name": "probe_tool", "arguments": json.dumps(_ARGUMENTS)},
}
_HISTORY = [{"role": "user", "content": "Find it."}]
_AND_ON = {"role": "user", "content": "Go on."}
_CONTENT = "The probe answers."
_REASONING = "The probe thinks."


@dataclass(frozen=True, slots=True)
class Detection:
    """What was found.

    ``name`` is the format's name, None if no format explains the template. ``score`` from 0 to 1 is the share of
    the probe turns that its parser returned exactly (at most 0.5 if the template renders no calls). ``evidence``
    says what was seen, a line each. ``format``: the format that the analysis of the template found, None if a
    known format has the name. If the analysis cannot find out how calls are written, there is no name, and the
    format has no calls.
    """

    name: str | None
    score: float
    evidence: tuple[str, ...]
    format: Format | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.name is not None


@dataclass(frozen=True, slots=True)
class _Probe:
    """A message that the template rendered: the message itself, the prompt, the part of the prompt that opens the
    assistant's turn, and the turn as the model would have written it."""

    what: str
    message: Mapping[str, Any]
    prompt: str
    opening: str
    wire: str


def detect(
    template: str | PathLike[str],
    *,
    limits: Limits = DEFAULT,
    response_template: Mapping[str, Any] | None = None,
) -> Detection:
    """The format of a chat template, given as its source or as a path that `load` takes.

    Asks plugins first, knows the built-in templates by their text, then renders and parses back. ``limits``: how much
    the template may do in total. ``response_template``: that of the model's files; a path brings its own. Raises
    `TemplateError` if the source is not a template or does more, `LoadError` if a file cannot be read.
    """
    from ..plugins import plugins

    if response_template is None and not is_template_text(template):
        response_template = read_model(template).response_template
    template = template_text(template)
    for origin, name in plugins().detect(template):
        try:
            get_format(name)
        except ChatParsersError as error:
            plugins().complain(origin, f"named a format that cannot be had: {error}")
            continue
        return Detection(name, 1.0, (f"the plugin {origin} knows the template",))
    own = builtin_named(template)
    if any(
        own == info.name for info in list_formats()
    ):  # it leaves calls to the polyfills, so it renders none
        return Detection(own, 1.0, (f"the template is the built-in one named {own!r}",))
    return detect_in(Template(template, limits=limits), response_template)


def detect_in(template: Template, response_template: Mapping[str, Any] | None = None) -> Detection:
    """As `detect`, for a template that is already compiled, without asking plugins."""
    with account(template.limits, template.name):
        return _found(template, response_template)


def _found(template: Template, response_template: Mapping[str, Any] | None) -> Detection:
    can = template.probe()
    probes = list(_probes(template))
    calls = any("tool_calls" in probe.message for probe in probes)
    hidden = None if can.reasoning else _cut_out(template)
    cuts: tuple[str, ...] = ()
    if hidden is not None:
        cuts = (f"the template cuts reasoning between {hidden[0]} and {hidden[1]} out of past answers",)
        probes += _behind_thoughts(probes, hidden)
    shown = [probe.prompt + probe.wire for probe in probes] + list(_context(template))
    contest = _Contest("\n".join((*shown, *(hidden or ()), "")), probes)
    for info in list_formats():
        if info.markers and contest.seen(info) == info.markers:
            contest.enter(info)
    if calls and not contest.settled:
        contest.probes = _without_end(template, [*probes, *_several_calls(template)])
        for info in list_formats():
            if contest.seen(info) not in ((), info.markers):
                contest.enter(info, writing=True)
    if contest.best is not None:
        best = get_format(contest.best)
        unseen = not calls and (can.tools or best.features.tools)
        dropped = _dropped(template, best) if unseen else ()
        evidence = (*contest.evidence, *_equals(best.name), *cuts, *dropped, *contest.broken)
        return Detection(best.name, 0.5 if unseen else 1.0, evidence)
    said: tuple[str, ...] = ()
    if response_template is not None:
        told = _told(response_template, _without_end(template, [*probes, *_several_calls(template)]))
        if told.format is not None:
            return replace(told, score=1.0 if calls else 0.5, evidence=(*told.evidence, *cuts))
        said = told.evidence
    answered = bool(probes) and all(_CONTENT in probe.wire for probe in probes)
    found = analysed(template)
    if answered and not (calls or can.tools or can.reasoning) and _says_nothing(found):
        nothing = "the template renders neither tools nor calls nor reasoning"
        return Detection(CONTENT_ONLY, 1.0, (nothing, *said, *cuts, *contest.broken))
    return replace(found, evidence=(*contest.broken, *contest.tried, *said, *cuts, *found.evidence))


def _dropped(template: Template, fmt: Format) -> tuple[str, ...]:
    """What the evidence says of a template that renders no calls: whether a call comes through it as text."""
    dropped = "the template drops calls, so only markers tell the format"
    if not fmt.features.tools:
        return (dropped,)
    call = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
    probe = _turn(template, "a call", {"role": "assistant", "content": fmt.render(call, _TOOLS)})
    read = probe is not None and _reads(fmt, replace(probe, message=call))
    return (
        dropped,
        f"a call as text, as {fmt.name} writes it, is {'' if read else 'not '}read back from the template's rendering",
    )


def _told(response_template: Mapping[str, Any], probes: list[_Probe]) -> Detection:
    """The format that the response template describes. Without a format, the evidence says why it does not count."""
    try:
        fmt = read_response_template(response_template)
    except DefinitionError as error:
        return Detection(None, 0.0, (f"the response_template is not used: {error}",))
    wrong = [probe.what for probe in probes if not _reads(fmt, probe)]
    if wrong or not probes:
        why = f"it does not read back {', '.join(wrong)}" if wrong else "the template renders no turn"
        return Detection(None, 0.0, (f"the response_template is not used: {why}",))
    exact = f"parsed back exactly: {', '.join(probe.what for probe in probes)}"
    return Detection(fmt.name, 1.0, ("read from the model's response_template", exact), fmt)


class _Contest:
    """Formats tried on the probes. ``best``: the name of the highest-ranked format that returns all probes."""

    def __init__(self, rendered: str, probes: list[_Probe]) -> None:
        self.probes = probes
        self.best: str | None = None
        self.evidence: tuple[str, ...] = ()
        self.tried: list[str] = []
        self.broken: list[str] = []
        self._rendered = rendered
        self._thinks = any("reasoning_content" in probe.message for probe in probes)
        self._rank = (False, 0, False, False)

    @property
    def settled(self) -> bool:
        """Whether a format is found, and one that declares the reasoning which the template shows or cuts out."""
        return self.best is not None and self._rank[0]

    def seen(self, info: FormatInfo) -> tuple[str, ...]:
        """Those of the format's markers that are in the renderings."""
        return tuple(marker for marker in info.markers if marker in self._rendered)

    def enter(self, info: FormatInfo, *, writing: bool = False) -> None:
        """Tries a format. ``writing``: the format must also write the call as the template does."""
        try:
            fmt = info.load()
            exact = [probe for probe in self.probes if _reads(fmt, probe)]
            alike = not writing or all(_writes(fmt, probe) for probe in exact)
            reasoning = fmt.features.reasoning
        except Exception as error:  # a broken format must not stop the others
            self.broken.append(f"{info.name} is left out: {error}")
            return
        self.tried.append(f"{info.name}: {len(exact)} of {len(self.probes)} probe turns parsed back exactly")
        markers = self.seen(info)
        own = fmt.build.__module__.endswith("." + fmt.name.replace("-", "_"))  # not another family's
        rank = (reasoning or not self._thinks, sum(map(len, markers)), reasoning, own)
        if exact and len(exact) == len(self.probes) and alike and rank > self._rank:
            self.best, self._rank = info.name, rank
            self.evidence = (
                f"markers in the rendering: {', '.join(map(repr, markers))}",
                f"parsed back exactly: {', '.join(probe.what for probe in exact)}",
            )


def _equals(name: str) -> tuple[str, ...]:
    """A line of evidence that names the formats whose turns are written alike; no line if there are none."""
    build = get_format(name).build
    alike = []
    for info in list_formats():
        with suppress(Exception):  # a broken format must not stop the others
            if info.name != name and info.load().build == build:
                alike.append(info.name)
    return (f"written alike, up to the end of the turn: {', '.join(alike)}",) if alike else ()


def analysed(template: Template) -> Detection:
    """The detection by analysis: it finds `Detection.format` and proves it on the template's own renderings."""
    found = analyse(template)
    failed = tuple(f"{level} dropped: {why}" for level, why in found.levels if why)
    if found.analysis is None or found.format is None:
        return Detection(None, 0.0, ("the analysis found no format", *failed))
    evidence = (
        f"found by analysis: {found.analysis.variant}",
        f"parsed back exactly: {found.proved} turns that the template renders",
        *found.analysis.refused,
        *failed,
    )
    if found.analysis.calls is None and template.probe().tools:
        return Detection(None, 0.0, evidence, found.format)
    return Detection(found.format.name, 1.0 if found.analysis.calls else 0.5, evidence, found.format)


def _says_nothing(found: Detection) -> bool:
    return found.format is None or not found.format.features.reasoning


def _probes(template: Template) -> Iterator[_Probe]:
    """The turns that the template can render, each with its kind of message."""
    can = template.probe()
    answer = {"role": "assistant", "content": _CONTENT}
    call = {"role": "assistant", "content": "", "tool_calls": [_CALL]}
    wanted: list[tuple[str, dict[str, Any]]] = [("an answer", answer)]
    if can.reasoning:
        wanted.append(("an answer behind reasoning", {**answer, "reasoning_content": _REASONING}))
    if can.tool_calls:
        wanted.append(("a call", call))
        if can.reasoning_with_calls:
            wanted.append(("a call behind reasoning", {**call, "reasoning_content": _REASONING}))
    for what, message in wanted:
        probe = _turn(template, what, message)
        if probe is not None:
            yield probe


def _turn(template: Template, what: str, message: dict[str, Any]) -> _Probe | None:
    """The message as the template renders it; None if the template refuses it."""
    thinking = True if "reasoning" in what else None
    tools = _TOOLS if template.probe().tools else None
    try:
        turn = template.exchange(message, history=_HISTORY, tools=tools, thinking=thinking)
    except TemplateError:
        return None
    return _Probe(what, message, *turn)


def _several_calls(template: Template) -> list[_Probe]:
    """A turn with two calls, if the template shows both."""
    if not template.probe().parallel_calls:
        return []
    both = {"role": "assistant", "content": "", "tool_calls": [_CALL, {**_CALL, "id": "probe0002"}]}
    probe = _turn(template, "two calls", both)
    return [] if probe is None else [probe]


def _without_end(template: Template, probes: list[_Probe]) -> list[_Probe]:
    """The turns without their ends: another family's end of turn is not a stop of the format."""
    end = next(iter(template.end_of_turn(get_format(CONTENT_ONLY))), "").strip()
    return [replace(probe, wire=probe.wire.rstrip().removesuffix(end)) for probe in probes]


def _cut_out(template: Template) -> tuple[str, str] | None:
    """The markers of the thoughts that the template cuts out of a past answer; None if it leaves all of them in."""
    thoughts = {pair: f"{_REASONING} {number}" for number, pair in enumerate(THOUGHTS)}
    text = "".join(f"{begin}\n{thought}\n{end}\n\n" for (begin, end), thought in thoughts.items()) + _CONTENT
    try:
        rendered = template.render([*_HISTORY, {"role": "assistant", "content": text}, _AND_ON])
    except TemplateError:
        return None
    if _CONTENT not in rendered:
        return None
    # What stands before the thought goes with it, so the last one that is missing is the one that was looked for.
    return next((pair for pair in reversed(THOUGHTS) if thoughts[pair] not in rendered), None)


def _behind_thoughts(probes: list[_Probe], markers: tuple[str, str]) -> list[_Probe]:
    """The answer after a thought between these markers, which the prompt may have opened but not closed."""
    begin, end = markers
    found = []
    for probe in probes:
        if probe.what == "an answer" and end not in probe.opening:
            thought = ("" if begin in probe.opening else begin) + _REASONING + end
            message = {**probe.message, "reasoning_content": _REASONING}
            what = "an answer behind reasoning that the template cuts out"
            found.append(replace(probe, what=what, message=message, wire=thought + probe.wire))
    return found


def _context(template: Template) -> Iterator[str]:
    """Renderings that show markers no answer has: the system's text without tools, the tools, and a tool's result."""
    with suppress(TemplateError):
        yield template.render(_HISTORY, add_generation_prompt=True)
    turns: list[list[dict[str, Any]]] = [
        _HISTORY,
        [
            *_HISTORY,
            {"role": "assistant", "content": "", "tool_calls": [_CALL]},
            {"role": "tool", "tool_call_id": _CALL["id"], "name": "probe_tool", "content": "found"},
        ],
    ]
    for messages in turns:
        for thinking in (None, True):
            try:
                yield template.render(
                    messages, tools=_TOOLS, add_generation_prompt=True, **template.thinking_kwargs(thinking)
                )
            except TemplateError:
                continue


def _reads(fmt: Format, probe: _Probe) -> bool:
    """Whether the format's parser returns the message exactly."""
    try:
        turn = fmt.bind(tools=_TOOLS, prefix=prompt_prefix(fmt, probe.opening))
        message = turn.parse(probe.wire)
    except ChatParsersError:
        return False
    return message.complete and _said(message) == _asked(probe)


def _writes(fmt: Format, probe: _Probe) -> bool:
    """Whether the format writes the calls of the message exactly as the rendering has them."""
    calls = probe.message.get("tool_calls")
    return not calls or fmt.render({"content": "", "tool_calls": calls}, _TOOLS).strip() in probe.wire


def _said(message: Message) -> tuple[str, str, list[tuple[str, Any]]]:
    calls = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
    return message.content, message.reasoning, calls


def _asked(probe: _Probe) -> tuple[str, str, list[tuple[str, Any]]]:
    calls = [(call["function"]["name"], _ARGUMENTS) for call in probe.message.get("tool_calls", ())]
    return probe.message["content"], probe.message.get("reasoning_content", ""), calls
