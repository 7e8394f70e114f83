"""Writes docs/tables/verified.md: what `chatparsers verify` found in engines.

    python docs/_verified.py add "llama-server b11434" rows/*.json   # keeps verdicts that verify --json wrote
    python docs/_verified.py                                         # writes the page

`docs/_verified.json` holds what is kept: for each engine, format and code one witness. A row to the server's charge is
published only with a note by whoever checked it by hand, under `checked`; without one this stops. `about` has what is
said of an engine as a whole.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
KEPT, PAGE = DOCS / "_verified.json", DOCS / "tables" / "verified.md"
LONGEST = 160
HEAD = """# Engines that were judged

What [`chatparsers verify`](../verify.md) found in engines. They ran tiny random models with the real chat templates, so
the engine's prompts, grammars, parser and streams are judged and not a model. A row is about this version, on this day.
`docs/_verified.py` writes this page.

Each row to a server's charge was checked again before it was kept. What the bodies alone prove (a status, a call that
is missing or has another name, arguments, JSON, a second answer that differs) was proved from the recorded bodies of
every row, by a script that knows nothing of this package. The rows that say what the model wrote were read by hand,
each raw text beside its answer; of dictated texts the message is known from which they were written. Of the others a
witness in each kind was read by hand too. The note says what was seen.
"""


def add(label: str, files: list[Path]) -> None:
    """Keeps the verdicts in files as those of an engine, in the place of what was kept of it."""
    kept = (
        json.loads(KEPT.read_text(encoding="utf-8"))
        if KEPT.exists()
        else {"engines": {}, "checked": {}, "about": {}}
    )
    seen: set[str] = set()
    kept["engines"][label] = [_verdict(json.loads(path.read_text(encoding="utf-8")), seen) for path in files]
    KEPT.write_text(_written(kept), encoding="utf-8")


def _written(kept: dict[str, Any]) -> str:
    """The file: a line for each note and each verdict."""

    def lines(items: dict[str, str]) -> str:
        return ",\n".join(f" {json.dumps(name)}: {value}" for name, value in items.items())

    notes, about = (
        lines({name: json.dumps(note, ensure_ascii=False) for name, note in kept[each].items()})
        for each in ("checked", "about")
    )
    engines = {
        label: "[\n  " + ",\n  ".join(json.dumps(each, ensure_ascii=False) for each in verdicts) + "\n ]"
        for label, verdicts in kept["engines"].items()
    }
    return (
        f'{{"checked": {{\n{notes}\n}},\n"about": {{\n{about}\n}},\n"engines": {{\n{lines(engines)}\n}}}}\n'
    )


def _verdict(verdict: dict[str, Any], seen: set[str]) -> dict[str, Any]:
    """What is kept of a verdict. ``seen``: the faults that have their witness already; each keeps its first one."""
    facts, judged = verdict["facts"], verdict["judged"]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in verdict["rows"]:
        key = row["code"], row["blame"]
        if key not in found:
            found[key] = {name: row[name] for name in ("code", "blame", "what")}
            same = [each for each in verdict["rows"] if (each["code"], each["blame"]) == key]
            answers = len({(each["api"], each["probe"]) for each in same})
            found[key] |= {"answers": answers, "of": judged.get(row["code"], 0)}
            if row["blame"] == "server" and row["code"] not in seen:
                seen.add(row["code"])
                texts = {name: _short(row[name]) for name in ("said", "should", "raw")}
                found[key]["witness"] = {
                    **texts,
                    **{name: row[name] for name in ("probe", "path", "request")},
                }
    about = {
        name: facts[name] for name in ("date", "format", "template", "raw", "requests", "tokens", "seconds")
    }
    return {**about, "found": [one for one in found.values() if one["blame"] != "model"]}


def _short(value: object) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def page() -> str:
    """The page. Exits if a row to the server's charge has no note."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    parts = [HEAD]
    for label, verdicts in kept["engines"].items():
        parts += _engine(label, verdicts, kept["checked"], kept["about"])
    return "\n".join(parts)


def _engine(
    label: str, verdicts: list[dict[str, Any]], checked: dict[str, str], about: dict[str, str]
) -> Iterator[str]:
    requests, seconds = (sum(each[name] for each in verdicts) for name in ("requests", "seconds"))
    formats = len({each["format"] for each in verdicts})
    yield f"## {label}\n"
    yield f"{verdicts[0]['date']}: {formats} formats, {requests:,} requests, {seconds:.0f} s; {verdicts[0]['raw']}.\n"
    rows = [(each["format"], one) for each in verdicts for one in each["found"]]
    faults = sorted((row for row in rows if row[1]["blame"] == "server"), key=lambda row: row[1]["code"])
    if label in about:
        yield f"{about[label]}\n"
    yield "| Fault | Formats | Answers | Seen by hand in a witness |\n|---|---|---|---|"
    witnesses = []
    for code, group in groupby(faults, key=lambda row: row[1]["code"]):
        found = list(group)
        note = checked.get(f"{label}: {code}") or checked.get(f"{label.split()[0]}: {code}")
        if note is None:
            sys.exit(f"{KEPT.name}: checked: expected a note for {label}: {code}")
        answers, of = (sum(one[name] for _, one in found) for name in ("answers", "of"))
        names = ", ".join(f"`{name}`" for name, _ in found)
        yield f"| [`{code}`](verify-codes.md#{code}) | {names} | {answers} of {of} | {note} |"
        witnesses += [(code, name, one) for name, one in found if "witness" in one]
    if not faults:
        yield "| none | | | |"
    others = sorted(
        {(one["blame"], one["code"], one["what"], name) for name, one in rows if one["blame"] != "server"}
    )
    yield "\nChoices of this server, and what nothing proves:\n" if others else ""
    for (blame, code, what), group in groupby(others, key=lambda row: row[:3]):
        yield f"- {blame}: `{code}`: {what} ({', '.join(f'`{row[3]}`' for row in group)})"
    yield "\n<details><summary>A witness of each fault</summary>\n" if witnesses else ""
    for code, name, one in witnesses:
        witness = one["witness"]
        yield f"**{code}**, `{name}`, `{witness['probe']}`: {one['what']}\n"
        shown = {key: witness[key] for key in ("said", "should", "raw") if witness[key] is not None}
        yield "````text"
        yield from (f"{key + ':':8}{json.dumps(value, ensure_ascii=False)}" for key, value in shown.items())
        yield f"POST {witness['path']} {json.dumps(witness['request'], ensure_ascii=False)}"
        yield "````\n"
    yield "</details>\n" if witnesses else ""


if __name__ == "__main__":
    if sys.argv[1:2] == ["add"]:
        add(sys.argv[2], [Path(name) for name in sys.argv[3:]])
    else:
        PAGE.write_text(page(), encoding="utf-8")
