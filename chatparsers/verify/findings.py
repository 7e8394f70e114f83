"""The verdict as a report of the doctor, in whose forms other programs read it: GitHub, SARIF, JUnit."""

from __future__ import annotations

import json

from ..doctor.report import Finding, Report, Severity
from .rows import Blame, Row
from .text import SILENT, curl
from .verdict import Verdict

RULES = "https://github.com/chatparsers/chatparsers/blob/main/docs/tables/verify-codes.md"
"""Where the page is that explains each code."""
_SEVERITY: dict[Blame, Severity] = {
    "server": "error",
    "likely": "warning",
    "unknown": "note",
    "policy": "note",
    "model": "note",
}


def report_of(verdict: Verdict, source: str, *, texts: bool = False) -> Report:
    """The rows as findings on the model's file ``source``; one for each code and blame, with the first witness."""
    findings: dict[tuple[str, Blame], Finding] = {}
    for row in verdict.rows:
        if (row.code, row.blame) not in findings:
            findings[row.code, row.blame] = _finding(row, verdict, texts)
    found = {row.code for row in verdict.rows}
    fine = tuple(sorted(code for code, number in verdict.judged.items() if number and code not in found))
    skipped = tuple(("not judged", each) for each in verdict.not_judged)
    facts = tuple((name, str(value)) for name, value in verdict.facts.items())
    return Report(source, str(verdict.facts.get("format")), tuple(findings.values()), fine, skipped, facts)


def _finding(row: Row, verdict: Verdict, texts: bool) -> Finding:
    many = sum(each.code == row.code and each.blame == row.blame for each in verdict.rows)
    message = f"{row.what} ({row.blame}, {row.probe}; {many} of {verdict.judged.get(row.code, many)} answers)"
    return Finding(row.code, _SEVERITY[row.blame], message, _witness(row, verdict, texts), row.mend)


def _witness(row: Row, verdict: Verdict, texts: bool) -> str:
    if row.private and not texts:
        return SILENT
    told = {"said": row.said, "should": row.should, "raw": row.raw}
    lines = [
        f"{name}: {json.dumps(value, ensure_ascii=False, default=str)}"
        for name, value in told.items()
        if value is not None
    ]
    if row.request:
        lines.append(curl(row, str(verdict.facts["url"]), keyed=bool(verdict.facts.get("keyed"))))
    return "\n".join(lines)
