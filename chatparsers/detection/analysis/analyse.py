"""One template's analysis: both phases, the format, its proof, and what of it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...answers.format import Format
from ...errors import ChatParsersError
from ...kept import Kept
from ...templates import Template
from ...templates.jinja.limits import account
from .calls import find_calls
from .found import Analysis, CallMarkers, Refused, Variant
from .generate import to_format
from .probes import ASKED, Asker, Rendering
from .proof import prove
from .reasoning import one_call, stops_of, turn_of, without_calls


@dataclass(frozen=True, slots=True)
class Found:
    """A format that was found and proved.

    ``analysis`` and ``format`` belong to the last level that holds; None if no level holds. ``levels`` has, for each
    level that was tried, its first fault, or ``""`` if it has no fault. ``proved``: how many turns the format read
    back. ``renderings``: the turns from which the markers were cut.
    """

    analysis: Analysis | None
    format: Format | None
    levels: tuple[tuple[str, str], ...]
    proved: int
    renderings: tuple[Rendering, ...] = ()


_KNOWN: Kept[Found] = Kept(1_048_576, largest=65_536)
"""What was found for templates of late, by their text and tokens; of a million characters in all."""


def analyse(template: Template) -> Found:
    """The format that can be found for a template. It is kept by the template's text, unless that is very long.

    Raises `TemplateError` if the template does more than its limits allow.
    """
    key = template.source, template.bos_token, template.eos_token, template.limits
    found = _KNOWN.get(key)
    if found is None:
        with account(template.limits, template.name):
            found = _analysed(Asker(template))
        _KNOWN.add(key, found, len(template.source))
    return found


def _analysed(asker: Asker) -> Found:
    levels: list[tuple[str, str]] = []
    renderings: tuple[Rendering, ...] = ()
    for level, analysis in _levels(asker, levels):
        format = to_format(analysis)
        renderings = renderings or asker.answers
        try:
            analysis, proved = prove(asker, analysis, format)
        except (Refused, ChatParsersError) as error:
            levels.append((level, str(error)))
            continue
        levels.append((level, ""))
        return Found(analysis, format, tuple(levels), proved, renderings)
    return Found(None, None, tuple(levels), 0, renderings or asker.answers)


def _levels(asker: Asker, levels: list[tuple[str, str]]) -> Iterator[tuple[str, Analysis]]:
    """The analyses to try, the fullest first. What cannot be found out goes to ``levels``."""
    try:
        base = without_calls(asker)
    except Refused as error:
        levels.append(("content", str(error)))
        return
    if base.reasoning is not None and not asker.template.can.bare_calls:
        asker.after = base.reasoning.close.strip()
    try:
        found = find_calls(asker, base)
    except Refused as error:
        levels.append(("tools", str(error)))
        found = None
    if found is not None:
        yield "tools", _with_calls(asker, base, *found)
    if base.reasoning is not None:
        yield "reasoning", base
    yield "content", replace(base, variant="content", reasoning=None, block="")


def _with_calls(asker: Asker, base: Analysis, variant: Variant, calls: CallMarkers) -> Analysis:
    """The analysis with the calls that were found."""
    calls, stops = _ends(base, calls)
    called = asker.shown("a call", calls=one_call())
    calls, content = _around(base, calls, called), base.content
    if base.block or content.close:
        beside = asker.shown("text beside a call", content=ASKED.content, calls=one_call())
        if beside is not None and base.block:
            content = replace(content, also=_opener(beside, base))
        elif beside is not None:
            content = replace(content, close=content.close + _gap(beside, content.close, calls.lead))
    opener = (calls.section[0] + calls.before).lstrip()
    sep = next((stop for stop in stops if opener.startswith(stop)), "")
    return replace(
        base,
        sep=sep,
        variant="channels" if base.block else variant,
        content=content,
        calls=calls,
        stops=tuple(stop for stop in stops if not sep or not stop.lstrip().startswith(sep)),
    )


def _ends(base: Analysis, calls: CallMarkers) -> tuple[CallMarkers, tuple[str, ...]]:
    """The calls, and the stops of the turn with what ends the turn after a call."""
    stops = base.stops
    if base.block and not calls.parallel and calls.after.strip():
        stops = tuple(dict.fromkeys((*stops, *stops_of(calls.after))))
        calls = replace(calls, end_optional=True)
    opening, closing = calls.section
    if closing.strip() and not opening.strip() and calls.array is None:
        stops = tuple(dict.fromkeys((*stops, *stops_of(closing))))
        calls = replace(calls, section=(opening, ""))
    return calls, stops


def _around(base: Analysis, calls: CallMarkers, called: Rendering | None) -> CallMarkers:
    """The calls, with the markers of content that a turn of calls alone writes too."""
    content = base.content
    turn = None if called is None else turn_of(called, base.header)
    if content.lead and turn is not None:
        calls = replace(calls, led=turn.startswith(content.lead))
    if base.block:
        calls = replace(calls, block="")  # of each block, not of calls alone
    wrapped = content.open + content.close
    if turn is not None and content.close and wrapped + calls.section[0] + calls.before in turn:
        calls = replace(calls, empty=wrapped)
    return calls


def _gap(beside: Rendering, close: str, lead: str) -> str:
    """The white space after content that is closed, before the white space that is before every call."""
    rest = beside.wire.partition(ASKED.content)[2].removeprefix(close)
    space = rest[: len(rest) - len(rest.lstrip())]
    return space.removesuffix(lead) if space != lead else ""


def _opener(beside: Rendering, base: Analysis) -> str:
    """The text that opens content beside a call, if another text opens an answer."""
    before = turn_of(beside, base.header).partition(ASKED.content)[0].strip()
    known = (base.content.open.strip(), base.reasoning.open.strip() if base.reasoning else "")
    return "" if before.endswith(known) else before
