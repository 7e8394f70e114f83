"""The report as text: a line for each code, and under it the first witness."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from ..display.looks import for_terminal
from .apis import APIS
from .rows import Row
from .statistics import interval
from .verdict import Verdict

_LONGEST = 400
_PROBES = 6
SILENT = "left out: the texts of this request are your own (--show-texts)"


def lines(verdict: Verdict, *, texts: bool = False) -> Iterator[str]:
    """The lines of the report. ``texts``: also those of replayed requests."""
    facts = verdict.facts
    yield (
        f"{facts['url']}: {facts['engine']} {facts['version']}".rstrip()
        + f", {facts['model']} as {facts['format']}"
    )
    yield (
        f"{facts['date']}: {facts['requests']} requests, {facts['tokens']} tokens, {facts['seconds']} s; "
        f"raw text by {facts['raw']}"
    )
    for _, group in groupby(verdict.rows, key=lambda row: (row.blame, row.code)):
        yield from _found(verdict, list(group), texts)
    fine = [code for code in verdict.judged if not any(row.code == code for row in verdict.rows)]
    if fine:
        yield f"\nfine: {', '.join(f'{code} ({verdict.judged[code]})' for code in sorted(fine))}"
    yield from _model(facts)
    yield from (f"not judged: {each}" for each in verdict.not_judged)
    yield "not judged: speed, quality, weights"


def _found(verdict: Verdict, rows: list[Row], texts: bool) -> Iterator[str]:
    first = rows[0]
    probes = list(dict.fromkeys(row.probe if row.api == "chat" else f"{row.api}:{row.probe}" for row in rows))
    more = f" and {len(probes) - _PROBES} more" if len(probes) > _PROBES else ""
    answers = len({(row.api, row.probe) for row in rows})
    judged = max(verdict.judged.get(first.code, 0), answers)
    yield f"\n{first.code} · {answers} of {judged} · {first.blame} · {', '.join(probes[:_PROBES])}{more}"
    yield f"    {first.what}" + (f" (answer {first.id})" if first.id else "")
    if first.private and not texts:
        yield f"    {SILENT}"
        return
    if first.said is not None:
        yield f"    said:    {_shown(first.said)}"
    if first.should is not None:
        yield f"    should:  {_shown(first.should)}"
    if first.at is not None:
        yield f"    differs: from character {first.at}"
    if first.raw is not None:
        yield f"    raw:     {_shown(first.raw)}"
    if first.request:
        yield f"    request: {curl(first, str(verdict.facts['url']), keyed=bool(verdict.facts.get('keyed')))}"
    if first.mend:
        yield f"  → {first.mend}"


def _model(facts: Any) -> Iterator[str]:
    if facts.get("model called"):
        done, of = facts["model called"]
        low, high = interval(done, of)
        yield f"the model called in {done} of {of} requests that ask for it ({low:.0%} to {high:.0%})"
    for code, number in (facts.get("model's mistakes") or {}).items():
        yield f"the model's own: {code} in its text, {number} times"
    known, again = facts.get("prompts cached") or (1, 0)
    if not known:
        yield f"the server says of none of {again} prompts that it had some in its cache, though it had just read them"
    for each in facts.get("refused") or ():
        yield f"refused and left out: {each}"


def _shown(value: object) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = repr(text) if isinstance(value, str) else text
    return for_terminal(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")


def curl(row: Row, url: str, *, keyed: bool = False) -> str:
    """The request as a command. The key stays in the environment."""
    key = ' -H "Authorization: Bearer $CHATPARSERS_VERIFY_KEY"' if keyed else ""
    body = shlex.quote(json.dumps(row.request, ensure_ascii=False))
    where = shlex.quote(url + (row.path or APIS[row.api].path))
    return f"curl -s {where} -H 'content-type: application/json'{key} -d {body}"
