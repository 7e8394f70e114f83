"""Finds the format of a chat template, by rendering and parsing back.

Strategy: the template renders a conversation whose messages are known: an answer, an answer after reasoning, a
call. Only renderings are compared, never the template's source, so a cosmetic edit changes nothing. In this order:

1. A format whose markers are all in the renderings is a candidate; its parser reads each rendered turn, and the format
   that returns exactly the messages wins. If its grammar does not generate the call as it is rendered, the analysis
   comes first, as far as it proves all that it finds.
2. Else a template may write the calls of one family under the role headers of another, or with reasoning that the first
   family has not. Then some of the markers are enough, but the format must also write the call as the template does,
   so that its grammar is right too.
3. Else the prompt may tell a known form, though the template writes its past calls in another one. A model follows the
   prompt, so that format is named, with a limit.
4. Else the model's files may have a ``response_template``, as transformers wants it. It is read into a format, which
   counts if it returns all messages.
5. A template that none of these explains is analysed, and the format made of what was found.

Markers only rank: among formats that read the same wire, the one with the more specific markers is named. If two have
equal markers, the one that also reads reasoning is named. The evidence lists the formats that share the definition of
the one that is named. Many templates never show reasoning but cut it out of past answers. The text that they cut is as
good as a marker, and formats must read it. If a template silently drops calls, only markers and content can be
compared: the score is half, and the evidence says whether the template leaves a call whole that is written as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Any

from ..answers.format import Format
from ..errors import ChatParsersError, DefinitionError, LoadError
from ..public import public
from ..registry import get_format, list_formats
from ..shown import Shown
from ..templates import Template
from ..templates.builtins import builtin_named
from ..templates.jinja.limits import DEFAULT, Limits, account
from ..templates.probe.edges import edges_of
from ..templates.probe.stand_ins import ANSWER, TOOLS
from ..tokens.loaders import is_template_text, read_model
from .contest import Contest, loses_calls, reads, writes
from .described import describes, unread_forms
from .limits import Limit
from .shown import (
    CALL,
    CONTENT_ONLY,
    Probe,
    after_thoughts,
    call_after_text,
    context_of,
    cut_out,
    probes_of,
    several_calls,
    turn_of,
    without_end,
)


@public
@dataclass(frozen=True, slots=True)
class Detection(Shown):
    """What was found.

    ``name`` is the format's name, None if no format explains the template. ``score`` from 0 to 1 is the share of
    the probe turns that its parser returned exactly (at most 0.5 if the template renders no calls). ``evidence``
    says what was seen, a line each. ``format``: the format that the analysis of the template found, None if a
    known format has the name. If the analysis cannot find out how calls are written, there is no name, and the
    format has no calls. ``limits``: what is not proved of the format with this template; whoever binds tools that need
    it is warned.
    """

    name: str | None
    score: float
    evidence: tuple[str, ...]
    format: Format | None = field(default=None, repr=False)
    limits: tuple[Limit, ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        return self.name is not None


@public
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

    >>> found = chatparsers.detect(chat.template().source)
    >>> found.name
    'qwen3'
    """
    if isinstance(template, str) and is_template_text(template):
        return detect_in(Template(template, limits=limits), response_template)
    files = read_model(template)
    name = files.template_name()
    if name is None:
        raise LoadError(f"{template}: no chat template there; pass the template's own file or text")
    bos, eos = files.bos_token or "", files.eos_token or ""
    read = Template(files.templates[name], bos_token=bos, eos_token=eos, name=str(template), limits=limits)
    return detect_in(read, response_template or files.response_template)


def detect_in(template: Template, response_template: Mapping[str, Any] | None = None) -> Detection:
    """As `detect`, for a template that is already compiled."""
    from ..plugins import plugins

    source = template.source
    for origin, name in plugins().detect(source):
        try:
            get_format(name)
        except ChatParsersError as error:
            plugins().complain(origin, f"named a format that cannot be had: {error}")
            continue
        return Detection(name, 1.0, (f"the plugin {origin} knows the template",))
    own = builtin_named(source)
    if any(
        own == info.name for info in list_formats()
    ):  # it leaves calls to the polyfills, so it renders none
        return Detection(own, 1.0, (f"the template is the built-in one named {own!r}",))
    with account(template.limits, template.name):
        found = _found(template, response_template)
        fmt = found.format or (get_format(found.name) if found.name else None)
        return found if fmt is None else _with_limits(found, unread_forms(template, fmt))


def by_name(template: Template, found: Detection, name: str, model: str) -> Detection:
    """The detection by the model's name, for a template that tells no format.

    A name alone never decides against the template's own words: if the template shows turns that the format does not
    read, the detection is ``found``, and its evidence says so.
    """
    fmt = get_format(name)
    with account(template.limits, template.name):
        probes = without_end(template, list(probes_of(template)))
        # A plain answer tells nothing of a format: without a generation prompt it begins with the role's header.
        telling = [p for p in probes if p.message.get("tool_calls") or p.message.get("reasoning_content")]
        wrong = [probe.what for probe in telling if not reads(fmt, probe)]
        if wrong:
            line = f"not {name}, as the model's name {model} has it: it does not read {', '.join(wrong)}"
            return replace(found, evidence=(*found.evidence, line))
        by = Detection(name, 0.5, (*found.evidence, f"the model's name: {model}"))
        other = [probe for probe in probes if not writes(fmt, probe)][:1]
        limits = tuple(Limit("grammar", f"{name} does not write {probe.wire!r:.200}") for probe in other)
        return _with_limits(by, (*limits, *unread_forms(template, fmt)))


def _with_limits(found: Detection, limits: tuple[Limit, ...]) -> Detection:
    """The detection with these limits, each of which takes off its score and is in its evidence."""
    if not limits:
        return found
    lines = tuple(f"not proved: {limit}" for limit in limits)
    score = round(max(found.score - 0.1 * len(limits), min(found.score, 0.4)), 1)
    return replace(found, score=score, evidence=(*found.evidence, *lines), limits=(*found.limits, *limits))


def _found(template: Template, response_template: Mapping[str, Any] | None) -> Detection:
    can = template.can
    probes = list(probes_of(template))
    calls = any("tool_calls" in probe.message for probe in probes)
    hidden = None if can.reasoning else cut_out(template)
    cuts: tuple[str, ...] = ()
    if hidden is not None:
        cuts = (f"the template cuts reasoning between {hidden[0]} and {hidden[1]} out of past answers",)
    thoughts = after_thoughts(probes, hidden) if hidden is not None else []
    shown = [probe.prompt + probe.wire for probe in (*probes, *thoughts)] + list(context_of(template))
    # A prompt that opens a thought shows that the model thinks; else the guard that cuts it may be copied.
    opened = [probe for probe in thoughts if hidden is not None and hidden[0] in probe.opening]
    probes += opened
    cut = [probe for probe in thoughts if probe not in opened]
    contest = Contest("\n".join((*shown, *(hidden or ()), "")), probes, cut)
    for info in contest.formats(whole=True):
        contest.enter(info)
    if calls and not contest.settled:
        contest.probes = without_end(template, [*probes, *several_calls(template)])
        for info in contest.formats(whole=False):
            contest.enter(info, writing=True)
    if contest.best is not None:
        best = get_format(contest.best)
        unseen = not calls and (can.tools or best.features.tools)
        dropped = _dropped(template, best) if unseen else ()
        evidence = (*contest.evidence, *_equals(best.name, contest), *cuts, *dropped, *contest.broken)
        missed = [Limit("reasoning", f"{best.name} does not read {probe.what}") for probe in contest.missed]
        unproved: list[Limit] = []
        beside = call_after_text(template)
        if beside is not None and loses_calls(best, beside) and not describes(template, best, 2):
            why = f"{best.name} does not read {beside.what}: {beside.wire!r:.200}"
            unproved.append(Limit("text beside calls", why))
        other = _unwritten(template, best, probes)
        if other is not None:
            why = f"{best.name} reads {other.what}, but does not write {other.wire!r:.200}"
            if describes(template, best):
                evidence = (*evidence, f"{why}; the prompt tells to write as {best.name} does")
            else:
                unproved.append(Limit("grammar", why))
        better = analysed(template) if unproved else None
        if better and not better.limits:
            why = unproved[0].why
            return _in_place_of(best.name, replace(better, evidence=(why, *better.evidence)), why)
        return _with_limits(Detection(best.name, 0.5 if unseen else 1.0, evidence), (*missed, *unproved))
    told_of = _by_prompt(template, contest) if calls else None
    if told_of is not None:
        return replace(told_of, evidence=(*told_of.evidence, *cuts, *contest.broken))
    said: tuple[Limit, ...] = ()
    if response_template is not None:
        told = _told(response_template, without_end(template, [*probes, *several_calls(template)]))
        if isinstance(told, Detection):
            return replace(told, score=1.0 if calls else 0.5, evidence=(*told.evidence, *cuts))
        said = (told,)
    answered = bool(probes) and all(ANSWER in probe.wire for probe in probes)
    found = analysed(template)
    if answered and not (calls or can.tools or can.reasoning) and _says_nothing(found):
        nothing = "the template renders neither tools nor calls nor reasoning"
        return _with_limits(Detection(CONTENT_ONLY, 1.0, (nothing, *cuts, *contest.broken)), said)
    evidence = (*contest.broken, *contest.tried, *cuts, *found.evidence)
    if contest.nearest is not None:
        name, wrong = contest.nearest
        unread = [Limit("turn", f"{name} does not read {probe.what}: {probe.wire!r:.200}") for probe in wrong]
        if found.name is None or found.limits:
            near = Detection(name, round(1 - len(wrong) / len(contest.probes), 1), evidence)
            return replace(near, evidence=(*evidence, *map(str, unread)), limits=(*unread, *said))
        return _in_place_of(name, _with_limits(replace(found, evidence=evidence), said), unread[0].why)
    return _with_limits(replace(found, evidence=evidence), said)


def _in_place_of(name: str, found: Detection, why: str) -> Detection:
    """An analysis that wins over a family whose markers are in the prompt."""
    lost = f"{why}; so {found.name} is read, and the spellings that {name} also reads are lost"
    return _with_limits(found, (Limit("family", lost),))


def _by_prompt(template: Template, contest: Contest) -> Detection | None:
    """The format whose calls the prompt tells, though it does not read the template's past ones as they are."""
    beside = call_after_text(template)
    for info in sorted(contest.formats(whole=True), key=lambda info: -len("".join(info.markers))):
        with suppress(Exception):  # a broken format must not stop the others
            fmt = info.load()
            wrong = [probe for probe in contest.probes if not reads(fmt, probe)]
            if beside is not None and loses_calls(fmt, beside) and not describes(template, fmt, 2):
                continue
            if all("tool_calls" in probe.message for probe in wrong) and describes(template, fmt):
                why = "; ".join(f"{fmt.name} does not read {probe.wire!r:.200}" for probe in wrong[:1])
                evidence = (
                    f"markers in the rendering: {', '.join(map(repr, info.markers))}",
                    f"the prompt tells to write calls as {fmt.name} does",
                )
                return _with_limits(Detection(fmt.name, 1.0, evidence), (Limit("past calls", why),))
    return None


def _unwritten(template: Template, fmt: Format, probes: list[Probe]) -> Probe | None:
    """A call that the format's grammar does not generate as the template writes it. Past calls may lack the last
    closer."""
    for probe in probes:
        if writes(fmt, probe):
            continue
        from .analysis.accepted import accepts, without_ends

        wires = [*without_ends(probe.wire, (*fmt.stops, *template.end_of_turn(fmt)))]
        wires += [wire.replace("'", '"') for wire in wires]  # a string in Python may have either quote
        prefix, thinking = edges_of(fmt).opening(probe.opening), "reasoning_content" in probe.message or None
        turn = fmt.bind(tools=TOOLS, prefix=prefix, thinking=thinking, tool_choice="required")
        written = fmt.render({"content": "", "tool_calls": probe.message["tool_calls"]}, TOOLS).strip()
        if not (written.startswith(wires[-1].strip()) or accepts(turn, *wires)):
            return probe
    return None


def _dropped(template: Template, fmt: Format) -> tuple[str, ...]:
    """What the evidence says of a template that renders no calls: whether a call comes through it as text."""
    dropped = "the template drops calls, so only markers tell the format"
    if not fmt.features.tools:
        return (dropped,)
    call = {"role": "assistant", "content": "", "tool_calls": [CALL]}
    probe = turn_of(template, "a call", {"role": "assistant", "content": fmt.render(call, TOOLS)})
    read = probe is not None and reads(fmt, replace(probe, message=call))
    return (
        dropped,
        f"a call as text, as {fmt.name} writes it, is {'' if read else 'not '}read back from the template's rendering",
    )


def _told(response_template: Mapping[str, Any], probes: list[Probe]) -> Detection | Limit:
    """The format that the response template describes, or why it does not count."""
    from ..interop import read_response_template

    try:
        fmt = read_response_template(response_template)
    except DefinitionError as error:
        return Limit("response template", f"it is not used: {error}")
    wrong = [probe.what for probe in probes if not reads(fmt, probe)]
    if wrong or not probes:
        why = f"it does not read back {', '.join(wrong)}" if wrong else "the template renders no turn"
        return Limit("response template", f"it is not used: {why}")
    exact = f"parsed back exactly: {', '.join(probe.what for probe in probes)}"
    return Detection(fmt.name, 1.0, ("read from the model's response_template", exact), fmt)


def _equals(name: str, contest: Contest) -> tuple[str, ...]:
    """A line of evidence that names the formats whose turns are written alike; no line if there are none.

    Who writes alike has a marker in the renderings too. A tree is not needed to tell, so none is built."""
    build = get_format(name).build
    alike = []
    for info, _ in contest.shown:
        if info.name != name:
            with suppress(Exception):  # a broken format must not stop the others
                if info.format().build == build:
                    alike.append(info.name)
    return (f"written alike, up to the end of the turn: {', '.join(alike)}",) if alike else ()


def analysed(template: Template) -> Detection:
    """The detection by analysis: it finds `Detection.format` and proves it on the template's own renderings."""
    from .analysis import analyse

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
    if found.analysis.calls is None and template.can.tools:
        return Detection(None, 0.0, evidence, found.format)
    score = 1.0 if found.analysis.calls else 0.5
    return _with_limits(Detection(found.format.name, score, evidence, found.format), found.analysis.limits)


def _says_nothing(found: Detection) -> bool:
    return found.format is None or not found.format.features.reasoning
