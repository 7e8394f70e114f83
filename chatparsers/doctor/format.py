"""The check of the format: which one, by which evidence, and whether another fits as well."""

from __future__ import annotations

from collections.abc import Iterator

from ..detection.detect import CONTENT_ONLY
from ..detection.names import known
from .report import Finding
from .subject import Subject

__all__ = ["format_found"]


def format_found(model: Subject) -> Iterator[Finding]:
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
            "warning",
            f"the format {found.name} reads only part of what the template writes (score {found.score:.2f})",
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
    limits = getattr(found, "limits", ())
    for limit in limits:
        yield Finding("format-in-part", "warning", "the format is read in part", str(limit), "")
