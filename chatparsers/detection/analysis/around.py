"""Divides the text around calls into the part of the section and the part of each call.

A text that is both at the end of the text between two calls and before the first call belongs to each call. The rest of
the text before the first call belongs to the section.
"""

from __future__ import annotations

from dataclasses import replace

from ...templates.probe.differences import shared_end, shared_start
from .found import Analysis, CallMarkers


def divide(
    calls: CallMarkers,
    base: Analysis,
    opening: str,
    beside: str | None,
    closing: str,
    between: str | None,
    prefill: str,
    marks: tuple[str, ...] = (),
) -> CallMarkers:
    """The calls with the texts around them: of the section, of each call, between calls.

    ``opening``: before the first call; ``beside``: the same after content. ``closing``: after the last call.
    ``between``: between two calls, None if two are never shown. ``prefill``: the part of the turn that the prompt
    wrote. ``marks``: markers that come before a tag and belong to it."""
    lead, block = "", ""
    if beside is not None:
        close = base.content.close.strip()
        if base.block and base.reasoning is not None:
            close = close or base.reasoning.close.strip()
        if close and beside.strip().startswith(close):
            beside = beside[beside.index(close) + len(close) :]
        shared = shared_end(beside, opening, marks=marks)
        if shared.strip() == beside.strip():
            opening = shared if close else beside
        elif prefill.strip() and beside.strip() and prefill.rstrip().endswith(minus(beside, shared).strip()):
            block, opening = minus(beside, shared).strip(), beside
    elif opening.strip():
        opening = _without_thought(opening, base)
    lead = opening[: len(opening) - len(opening.lstrip())]
    opening = opening.lstrip()
    closing = _without_end(closing, base.end)
    if between is None:
        return replace(calls, before=opening, after=closing, lead=lead, block=block)
    after = shared_start(between, closing, marks=marks)
    for mark in marks:
        after = after.removesuffix(mark)
    rest = between[len(after) :]
    before = shared_end(rest, opening, marks=marks)
    return replace(
        calls,
        section=(minus(opening, before), closing[len(after) :]),
        before=before,
        after=after,
        separator=minus(rest, before),
        lead=lead,
        block=block,
    )


def minus(text: str, end: str) -> str:
    return text[: len(text) - len(end)] if end else text


def _without_end(closing: str, end: str) -> str:
    """The text after the last call, without the end of the turn."""
    stripped = end.strip()
    if stripped and closing.endswith(end):
        return closing[: -len(end)]
    if stripped and closing.rstrip().endswith(stripped):
        return closing.rstrip()[: -len(stripped)]
    return closing


def _without_thought(opening: str, base: Analysis) -> str:
    """The text that opens the calls, without an empty thought or an empty answer before it."""
    reasoning = base.reasoning
    text = opening
    if reasoning is not None:
        at = text.find(reasoning.close.strip())
        if at >= 0:
            text = text[at + len(reasoning.close.strip()) :]
            kept = reasoning.close[len(reasoning.close.rstrip()) :]
            text = text[len(kept) :] if kept and text.startswith(kept) else text
    return text
