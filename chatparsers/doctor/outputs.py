"""Reports in the forms that other programs read: annotations of a CI, SARIF, JUnit, a page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from .report import Report

_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}
_SHOWN_ON = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json", "tokenizer.json")
RULES = "https://github.com/chatparsers/chatparsers/blob/main/docs/tables/findings.md"
"""Where the page is that explains each code."""


def github(reports: Sequence[Report]) -> str:
    """Workflow commands of GitHub Actions: one annotation a finding, on the file that was checked."""
    lines = []
    for report in reports:
        for finding in report.findings:
            text = "\n".join(filter(None, (finding.message, finding.witness, finding.mend)))
            lines.append(
                f"::{_GITHUB[finding.severity]} file={_property(_file(report.source))},line=1,"
                f"title={_property(finding.code)}::{_data(text)}"
            )
    return "\n".join(lines)


def _file(source: str) -> str:
    """The file that a finding is shown on: of a folder, the one with the template."""
    folder = Path(source)
    if folder.is_dir():
        found = next((name for name in _SHOWN_ON if (folder / name).is_file()), "")
        return (folder / found).as_posix()
    return folder.as_posix()


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def sarif(reports: Sequence[Report], version: str, rules_page: str = RULES) -> dict[str, Any]:
    """The findings as SARIF 2.1.0, which code hosts show beside a file. ``rules_page`` explains their codes."""
    codes = sorted({finding.code for report in reports for finding in report.findings})
    results = [
        {
            "ruleId": finding.code,
            "level": finding.severity,
            "message": {"text": "\n".join(filter(None, (finding.message, finding.witness, finding.mend)))},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": quote(_file(report.source))},
                        "region": {"startLine": 1},  # code hosts want a line
                    }
                }
            ],
        }
        for report in reports
        for finding in report.findings
    ]
    rules = [
        {
            "id": code,
            "shortDescription": {"text": code.replace("-", " ")},
            "helpUri": f"{rules_page}#{code}",
        }
        for code in codes
    ]
    tool = {"driver": {"name": "chatparsers", "version": version, "rules": rules}}
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": tool, "results": results}],
    }


def junit(reports: Sequence[Report], name: str) -> str:
    """The findings as JUnit's XML: a case for each code, which fails for an error or a warning."""
    suites = []
    for report in reports:
        cases = [
            _case(
                report,
                finding.code,
                f"<failure message={quoteattr(_xml(finding.message))}>"
                f"{escape(_xml(finding.witness))}</failure>"
                if finding.severity != "note"
                else "",
            )
            for finding in report.findings
        ]
        cases += [_case(report, code, "") for code in report.fine]
        cases += [
            _case(report, code, f"<skipped message={quoteattr(_xml(why))}/>") for code, why in report.skipped
        ]
        failures = report.count("error", "warning")
        suites.append(
            f'<testsuite name={quoteattr(name)} tests="{len(cases)}" failures="{failures}" '
            f'skipped="{len(report.skipped)}">{"".join(cases)}</testsuite>'
        )
    return f'<?xml version="1.0" encoding="utf-8"?>\n<testsuites>{"".join(suites)}</testsuites>\n'


def _case(report: Report, code: str, inside: str) -> str:
    return f"<testcase classname={quoteattr(report.source)} name={quoteattr(code)}>{inside}</testcase>"


def _xml(text: str) -> str:
    """A text without the characters that XML cannot hold."""
    return "".join(
        c if c in "\t\n" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c > "\uffff" else "?"
        for c in text
    )


_STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding: .5rem .75rem; border-left: 4px solid; }
pre { background: color-mix(in srgb, canvas, canvastext 6%); }
.error h3::before { content: "✕ error: "; } .warning h3::before { content: "△ warning: "; }
.note h3::before { content: "○ note: "; } h3 { font-size: 1rem; margin-bottom: .25rem; }
"""


def html(reports: Sequence[Report]) -> str:
    """The reports as one page, which asks no other host for anything."""
    parts = []
    for report in reports:
        parts.append(f"<h2>{escape(report.source)}</h2><p>{escape(report.format or 'no known format')}</p>")
        for finding in report.findings:
            witness = f"<pre>{escape(finding.witness)}</pre>" if finding.witness else ""
            mend = f"<p>→ {escape(finding.mend)}</p>" if finding.mend else ""
            parts.append(
                f"<section class='{finding.severity}'><h3>{escape(finding.code)}</h3>"
                f"<p>{escape(finding.message)}</p>{witness}{mend}</section>"
            )
        parts.append(f"<p>Fine: {escape(', '.join(report.fine) or 'nothing')}</p>")
    return (
        "<!doctype html><html lang='en'><meta charset='utf-8'><meta name='viewport' content='width=device-width'>"
        f"<title>chatparsers check</title><style>{_STYLE}</style><main><h1>Report</h1>{''.join(parts)}</main></html>\n"
    )
