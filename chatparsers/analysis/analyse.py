"""One template's analysis: both phases, the format, its proof, and what of it holds."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from ..core.errors import ChatParsersError
from ..core.format import Format
from ..templates import Template
from .calls import find_calls
from .found import Analysis, Refused
from .generate import to_format
from .probes import Asker
from .proof import prove
from .reasoning import find_outline
from .differences import units, is_marker

__all__ = ["Found", "analyse"]


@dataclass(frozen=True, slots=True)
class Found:
    """A format that was found and proved.

    ``analysis`` and ``format`` are those of the last level that holds; ``levels`` says of each level that was tried
    what was wrong with it, ``""`` where nothing was. ``proved`` is how many turns it read back.
    """

    analysis: Analysis | None
    format: Format | None
    levels: tuple[tuple[str, str], ...]
    proved: int


def analyse(template: Template) -> Found:
    """What can be found of a template's format; kept by the template's text."""
    return _analyse(template.source, template.bos_token, template.eos_token)


@lru_cache(maxsize=64)
def _analyse(source: str, bos_token: str, eos_token: str) -> Found:
    asker = Asker(Template(source, bos_token=bos_token, eos_token=eos_token))
    levels: list[tuple[str, str]] = []
    for level, analysis in _levels(asker, levels):
        format = to_format(analysis)
        try:
            proved = prove(asker, analysis, format)
        except (Refused, ChatParsersError) as error:
            levels.append((level, str(error)))
            continue
        levels.append((level, ""))
        return Found(analysis, format, tuple(levels), proved)
    return Found(None, None, tuple(levels), 0)


def _levels(asker, levels):
    try:
        outline = find_outline(asker)
    except Refused as error:
        levels.append(("content", str(error)))
        return
    refused = outline.refused
    markers = outline.markers
    base = Analysis(
        "reasoning" if outline.reasoning else "content",
        outline.header,
        outline.reasoning,
        outline.content,
        None,
        outline.block,
        _stops(outline.end),
        refused,
        markers,
    )
    try:
        found = find_calls(asker, outline)
    except Refused as error:
        levels.append(("tools", str(error)))
        found = None
    if found is not None:
        variant, calls, more = found
        opened = bool(calls.section[0].strip())
        closing = calls.section[1]
        stops = base.stops
        if not calls.parallel and calls.behind.strip() and outline.block:
            variant = "channels"
            stops = tuple(dict.fromkeys((*stops, *_stops(calls.behind))))
            calls = replace(calls, end_optional=True)
        elif outline.block:
            variant = "channels"
        if closing.strip() and not opened and calls.array is None:
            stops = tuple(dict.fromkeys((*stops, *_stops(closing))))
            calls = replace(calls, section=(calls.section[0], ""))
        content = base.content
        if calls.block and content.open:
            content = replace(content, open=calls.block + content.open)
        yield "tools", replace(base, variant=variant, content=content, calls=calls, markers=markers + more, stops=stops)
    if base.reasoning is not None:
        yield "reasoning", base
    yield "content", replace(base, variant="content", reasoning=None)


def _stops(end: str) -> tuple[str, ...]:
    """The texts that end a turn: the first marker of what the template writes behind it."""
    core = end.strip()
    if not core:
        return ()
    first = units(core)[0]
    stop = first if is_marker(first) else core.split()[0]
    before = end[: len(end) - len(end.lstrip())]
    return (before + stop, stop) if before else (stop,)
