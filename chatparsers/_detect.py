"""Which format a chat template belongs to, found by rendering and parsing back.

Strategy: the template renders a conversation whose messages are known: an answer, an answer behind reasoning, a
call. A format whose markers are all in the renderings is a candidate; its parser reads each rendered turn, and
the format that returns exactly the messages wins. Only renderings are compared, never the template's source, so
a cosmetic edit changes nothing. Among formats that read the same wire the one with the more specific markers is
named. Where a template drops calls without a word, markers and the content are all there is to go by, and the
score says so. A template that no format explains is analysed, and the format made of what was found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from .analysis import analyse
from .core.errors import ChatParsersError, TemplateError
from .core.format import Format
from .core.message import Message
from .registry import FormatInfo, formats, get_format
from .templates import Template
from .templates.edges import opening as prompt_prefix
from .templates.limits import DEFAULT, Limits, account
from .tokens.loaders import template_text

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
_CONTENT = "The probe answers."
_REASONING = "The probe thinks."


@dataclass(frozen=True, slots=True)
class Detection:
    """What was found.

    ``name`` is the format's, None where no format explains the template; ``score`` from 0 to 1 is the share of
    the probe turns that its parser returned exactly (at most 0.5 where the template renders no calls);
    ``evidence`` says what was seen, a line each. ``format``: what the analysis of the template found, None where a
    format is known by its name. A template whose calls it could not tell has no name, and a format without calls.
    """

    name: str | None
    score: float
    evidence: tuple[str, ...]
    format: Format | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.name is not None


@dataclass(frozen=True, slots=True)
class _Probe:
    """A message that the template rendered: what was asked for, the prompt, what of it opens the assistant's
    turn, and the turn as the model would have written it."""

    what: str
    message: Mapping[str, Any]
    prompt: str
    opening: str
    wire: str


def detect(template: str | PathLike[str], *, limits: Limits = DEFAULT) -> Detection:
    """The format of a chat template: its source, or the path of what `load` takes.

    Asks plugins first, then renders and parses back. ``limits``: how much the template may do in all of it. Raises
    `TemplateError` where the source is no template or does more, `LoadError` where a file cannot be read.
    """
    from .plugins import plugins

    template = template_text(template)
    for origin, name in plugins().detect(template):
        try:
            get_format(name)
        except ChatParsersError as error:
            plugins().complain(origin, f"named a format that cannot be had: {error}")
            continue
        return Detection(name, 1.0, (f"the plugin {origin} knows the template",))
    return detect_in(Template(template, limits=limits))


def detect_in(template: Template) -> Detection:
    """As `detect`, for a template that is already compiled, without asking plugins."""
    with account(template.limits, template.name):
        return _found(template)


def _found(template: Template) -> Detection:
    probes = tuple(_probes(template))
    rendered = "\n".join([probe.prompt + probe.wire for probe in probes] + list(_context(template)))
    calls = any("tool_calls" in probe.message for probe in probes)
    best: tuple[float, int, str] | None = None
    evidence: tuple[str, ...] = ()
    tried: list[str] = []
    broken: list[str] = []
    for info in _candidates(rendered):
        try:
            fmt = info.load()
            exact = [probe for probe in probes if _reads(fmt, probe)]
        except Exception as error:  # a broken format must not stop the others
            broken.append(f"{info.name} is left out: {error}")
            continue
        score = len(exact) / len(probes) if probes else 0.0
        tried.append(f"{info.name}: {len(exact)} of {len(probes)} probe turns parsed back exactly")
        if len(exact) == len(probes) and probes:
            rank = (score, sum(map(len, info.markers)), info.name)
            if best is None or rank[:2] > best[:2]:
                best = rank
                evidence = (
                    f"markers in the rendering: {', '.join(map(repr, info.markers))}",
                    f"parsed back exactly: {', '.join(probe.what for probe in exact)}",
                )
    if best is not None:
        dropped = () if calls else ("the template renders no calls: told by its markers",)
        return Detection(best[2], best[0] if calls else 0.5, (*evidence, *dropped, *broken))
    can = template.probe()
    shown = bool(probes) and all(_CONTENT in probe.wire for probe in probes)
    found = analysed(template)
    if shown and not (calls or can.tools or can.reasoning) and _says_nothing(found):
        return Detection(
            CONTENT_ONLY, 1.0, ("the template renders neither tools nor calls nor reasoning", *broken)
        )
    return replace(found, evidence=(*broken, *tried, *found.evidence))


def analysed(template: Template) -> Detection:
    """What the analysis of a template finds: `Detection.format`, proved on the template's own renderings."""
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


def _candidates(rendered: str) -> Iterator[FormatInfo]:
    for info in formats():
        if info.markers and all(marker in rendered for marker in info.markers):
            yield info


def _probes(template: Template) -> Iterator[_Probe]:
    """The turns that the template can render, each with what is in it."""
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
        thinking = True if "reasoning" in what else None
        tools = _TOOLS if can.tools else None
        try:
            turn = template.exchange(message, history=_HISTORY, tools=tools, thinking=thinking)
        except TemplateError:
            continue
        yield _Probe(what, message, *turn)


def _context(template: Template) -> Iterator[str]:
    """Renderings that show markers no answer has: the tools, and a tool's result."""
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


def _said(message: Message) -> tuple[str, str, list[tuple[str, Any]]]:
    calls = [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
    return message.content, message.reasoning, calls


def _asked(probe: _Probe) -> tuple[str, str, list[tuple[str, Any]]]:
    calls = [(call["function"]["name"], _ARGUMENTS) for call in probe.message.get("tool_calls", ())]
    return probe.message["content"], probe.message.get("reasoning_content", ""), calls
