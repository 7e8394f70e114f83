"""The verdict as one page: the raw text coloured by its regions, beside what the server made of it."""

from __future__ import annotations

import json
from html import escape
from itertools import groupby

from ..display.looks import STYLE, for_html
from ..display.strip import strip
from .rows import Row
from .text import SILENT, curl
from .verdict import Verdict

_ROWS = 3
"""How many rows of one code are shown."""
_STYLE = """
.row { display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; } .row > div { min-width: 0; }
@media (max-width: 50rem) { .row { grid-template-columns: 1fr; } }
.server, .likely { border-left: 4px solid #d55e00; padding-left: .75rem; }
.unknown, .policy, .model { border-left: 4px solid #767676; padding-left: .75rem; }
.verify pre { white-space: pre-wrap; overflow-wrap: anywhere; }
"""


def page(verdict: Verdict, *, texts: bool = False) -> str:
    """The page. It asks no other host for anything. ``texts``: also those of replayed requests."""
    facts = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in verdict.facts.items()
    )
    parts = [f"<table>{facts}</table>"]
    for (blame, code), group in groupby(verdict.rows, key=lambda row: (row.blame, row.code)):
        found = list(group)
        judged = max(verdict.judged.get(code, 0), len(found))
        parts.append(f"<section class='{blame}'><h2>{escape(code)} · {len(found)} of {judged} · {blame}</h2>")
        parts += [_row(row, verdict, texts) for row in found[:_ROWS]]
        parts.append("</section>")
    title = f"What {escape(str(verdict.facts['url']))} says"
    left = "".join(f"<li>{escape(each)}</li>" for each in [*verdict.not_judged, "speed, quality, weights"])
    parts.append(f"<h2>Not judged</h2><ul>{left}</ul>")
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>chatparsers verify</title><style>:root {{ color-scheme: light dark; }}{STYLE}{_STYLE}</style>"
        f'<main class="cp verify"><h1>{title}</h1>{"".join(parts)}</main></html>\n'
    )


def _row(row: Row, verdict: Verdict, texts: bool) -> str:
    head = f"<h3>{escape(row.api)}: {escape(row.probe)}</h3><p>{escape(row.what)}</p>"
    if row.private and not texts:
        return f"{head}<p>{escape(SILENT)}</p>"
    raw = (
        strip(row.reading).body()
        if row.reading is not None
        else f"<pre>{for_html(row.raw or 'not known')}</pre>"
    )
    at = f"<p>They differ from character {row.at} on.</p>" if row.at is not None else ""
    request = escape(curl(row, str(verdict.facts["url"]), keyed=bool(verdict.facts.get("keyed"))))
    mend = f"<p>→ {escape(row.mend)}</p>" if row.mend else ""
    return (
        f"{head}<div class='row'><div><p class='head'>what the model wrote</p>{raw}</div>"
        f"<div><p class='head'>what the server said</p>{_value(row.said)}"
        f"<p class='head'>what it should have said</p>{_value(row.should)}{at}</div></div>{mend}"
        f"<details><summary>the request</summary><pre>{request}</pre></details>"
    )


def _value(value: object) -> str:
    if value is None:
        return "<p>that is not known</p>"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, default=str)
    return f"<pre>{for_html(text, breaks=False)}</pre>"
