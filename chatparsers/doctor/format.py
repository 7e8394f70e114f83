"""The check of the format: which one, by which evidence, and whether another fits as well."""

from __future__ import annotations

from collections.abc import Iterator

from ..detection.contest import Contest, reads, writes
from ..detection.names import known
from ..detection.shown import CONTENT_ONLY, probes_of
from ..errors import ChatParsersError
from .report import Fact, Finding
from .subject import Subject


def format_found(model: Subject) -> Iterator[Finding | Fact]:
    """Which format reads the template, how sure that is, and whether the model's name says another."""
    found = model.chat.detection
    evidence = "\n".join(found.evidence)
    if found.name is None:
        yield Finding(
            "format-unknown",
            "error",
            "no known format reads this template's calls, and the analysis of it found none",
            evidence,
            "write a format (docs/formats.md), and send the report: chatparsers report",
        )
    elif found.format is not None:
        yield Finding(
            "format-analysed",
            "warning",
            "no known format reads this template; the analysis of what it renders found one",
            evidence,
            "see what was found: chatparsers inspect MODEL --explain",
        )
    elif found.score < 1 and found.name != CONTENT_ONLY:
        yield Finding(
            "format-partial",
            "warning" if model.can.tool_calls else "note",  # which says itself that calls are lost
            f"what the template writes proves the format {found.name} only in part (score {found.score:.2f})",
            evidence,
            "name the format if it is another: load(…, format=…)",
        )
    named = known(model.chat.files.names)
    if named is not None and named.format and found.name and named.format not in (found.name, CONTENT_ONLY):
        yield Finding(
            "format-name-differs",
            "note",
            f"the model's name says {named.format}, its template says {found.name}",
            f"name: {named.name}\n{evidence}",
            "the template decides; is it the one this model was trained with?",
        )
    for limit in found.limits:
        yield Finding(
            "format-in-part",
            "warning",
            f"the format is read in part: {limit.part}",
            str(limit),
            "bind only tools of the kinds that are proved",
        )
    others = _others(model)
    also = f"; {', '.join(others)} would read it as well" if others else ""
    yield Fact(f"{found.name}, score {found.score:.2f}: {'; '.join(found.evidence[:2])}{also}")


def _others(model: Subject) -> list[str]:
    """Other formats that read and write every turn that the template shows."""
    probes = list(probes_of(model.template))
    if not any(probe.message.get("tool_calls") for probe in probes):
        return []
    contest = Contest("\n".join(probe.prompt + probe.wire for probe in probes), probes)
    found = []
    for info in contest.formats(whole=True):
        if info.name == model.format.name:
            continue
        try:
            format = info.load()
            if all(reads(format, probe) and writes(format, probe) for probe in probes):
                found.append(info.name)
        except ChatParsersError:  # a broken format must not stop the check
            continue
    return found
