"""A report: the findings of all checks on one model, and what was fine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..public import public
from ..shown import Shown

if TYPE_CHECKING:
    from ..display.card import Card

Severity = Literal["error", "warning", "note"]
LEVELS: tuple[Severity, ...] = ("error", "warning", "note")


@public
@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or that one should know.

    ``code``: stable, such as ``stop-differs``; docs/tables/findings.md has each. ``severity``: ``error`` (answers are
    read or trained wrongly), ``warning`` (something is lost, or costs more) or ``note``. ``message``: one sentence.
    ``witness``: the text, ids or values that prove it. ``mend``: what to do.
    """

    code: str
    severity: Severity
    message: str
    witness: str = ""
    mend: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """What a check saw, wrong or not: a line of the report's table."""

    text: str


@public
@dataclass(frozen=True, slots=True)
class Report(Shown):
    """The findings on one model, the worst first, and the checks that found nothing.

    ``source``: the file or folder. ``format``: the name of the model's format, None if none is known. ``fine``: the
    names of the checks without a finding. ``facts``: what the checks saw, each with the check's name. ``skipped``:
    checks that could not run, each with the reason. Made by `check`; it is false if there is a finding that is more
    than a note.
    """

    source: str
    format: str | None
    findings: tuple[Finding, ...]
    fine: tuple[str, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return not self.count("error", "warning")

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def __repr__(self) -> str:
        counts = ", ".join(f"{self.count(level)} {level}s" for level in LEVELS)
        return f"<Report: {self.source}, {self.format or 'no format'}, {counts}>"

    def count(self, *levels: Severity) -> int:
        """How many findings have one of these severities.

        >>> report = chatparsers.check("{% for m in messages %}{{ m.content }}{% endfor %}", only=["loses"])
        >>> report.count("error", "warning") > 0
        True
        """
        return sum(finding.severity in levels for finding in self.findings)

    def codes(self) -> list[str]:
        """The codes of the findings, each once, in their order.

        >>> report = chatparsers.check("{% for m in messages %}{{ m.content }}{% endfor %}", only=["loses"])
        >>> "loses-calls" in report.codes()
        True
        """
        return list(dict.fromkeys(finding.code for finding in self.findings))

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON.

        >>> report = chatparsers.check("{% for m in messages %}{{ m.content }}{% endfor %}", only=["loses"])
        >>> report.to_dict()["format"]
        'content-only'
        """
        return {
            "source": self.source,
            "format": self.format,
            "findings": [asdict(finding) for finding in self.findings],
            "fine": list(self.fine),
            "facts": [{"check": name, "text": text} for name, text in self.facts],
            "skipped": [{"check": name, "reason": reason} for name, reason in self.skipped],
        }

    def line(self) -> str:
        """The report in one line, for a list of models.

        >>> report = chatparsers.check("{% for m in messages %}{{ m.content }}{% endfor %}", only=["loses"])
        >>> report.line()[:24]
        '<template>: content-only'
        """
        counts = ", ".join(f"{number} {level}s" for level in LEVELS if (number := self.count(level)))
        return f"{self.source}: {self.format or 'no format'}: {counts or 'fine'}" + (
            f" ({', '.join(self.codes())})" if self.findings else ""
        )

    def picture(self) -> Card:
        """The report as a card, which a notebook shows.

        >>> report = chatparsers.check("{% for m in messages %}{{ m.content }}{% endfor %}", only=["loses"])
        >>> report.picture().title[:24]
        '<template>: content-only'
        """
        from ..display.card import Card

        found = [
            (
                f"{finding.severity}: {finding.code}",
                (
                    finding.message,
                    *finding.witness.splitlines(),
                    *((f"→ {finding.mend}",) if finding.mend else ()),
                ),
            )
            for finding in self.findings
        ]
        rows = [*((("fine", ", ".join(self.fine)),) if self.fine else ()), *self.facts]
        rows += [(name, f"not checked: {reason}") for name, reason in self.skipped]
        return Card(self.line(), tuple(rows), tuple(found))

    def lines(self) -> Sequence[str]:
        """The report as text.

        >>> report = chatparsers.check("{% for m in messages %}{{ m.content }}{% endfor %}", only=["loses"])
        >>> report.lines()[0]
        '<template>: content-only'
        """
        out = [f"{self.source}: {self.format or 'no known format'}"]
        for finding in self.findings:
            out.append(f"\n{finding.severity}: {finding.code}: {finding.message}")
            out += [f"    {line}" for line in finding.witness.splitlines()]
            out += [f"  → {finding.mend}"] if finding.mend else []
        if self.fine:
            out.append(f"\nfine: {', '.join(self.fine)}")
        out += [f"{name}: {text}" for name, text in self.facts]
        out += [f"not checked: {name}: {reason}" for name, reason in self.skipped]
        return out
