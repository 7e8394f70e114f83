"""Writes tables/real.md out of what was measured: ``python docs/_real.py [--check]``.

The rows are in ``tests/real/measured/``: ``tests/real/measure.py`` and ``tests/real/times.py`` write them. ``--check``
fails if the page is stale.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "tables" / "real.md"
MEASURED = ROOT / "tests" / "real" / "measured"
TITLES = {
    "qwen15": "Qwen2.5-Coder-1.5B",
    "qwen05": "Qwen2.5-Coder-0.5B",
    "gemma270": "Gemma 3 270M",
    "smollm2": "SmolLM2-135M",
}
HEAD = """# What small real models do

Four small models answer questions of the Berkeley Function Calling Leaderboard, through the gateway and through
llama-server's own chat endpoint on the same weights. The leaderboard's checker says whether the calls are right. All
is greedy, with at most 128 tokens an answer, or 256 where several calls are right. A small model is often wrong. What
the package promises is that a forced answer ends, that its calls are valid, and that it reads every call that
llama-server reads.

`python docs/_real.py` writes this page out of the rows in `tests/real/measured`, which `tests/real/measure.py` wrote.
[CONTRIBUTING.md](../../CONTRIBUTING.md#real-models) says how. Nightly tests ask a part of these cases anew. The engine
was llama-server b10434 of August 2026, with one thread. *Before* is an earlier state, on the first of these cases: its
prompts had other ids than the engine's, its grammars could not end, and offered thoughts that the models do not have.
The rest was measured on 26 November 2026.
"""
ROADS = """- *auto*: the model may call or not; the grammar begins at a call. *no grammar*: nothing holds the call.
- *--lenient-calls*: the same, and a whole answer that is a call in a fence or bare is read as a call
  ([contract.md](../contract.md#lenient_calls)). Where no call is meant, an answer in that shape is one all the same.
- *required*, *named*: the answer must be calls, or one call of the named tool, which is the right one here.
- *none*: no call may come, though the tools are in the prompt. Right is an answer that has text and no call.
- *llama-server*: its own endpoint, asked for one call where one is right, and for several where several are. For
  *required*, its grammar lets any text stand before the call: Qwen2.5-Coder writes a fenced call and then empty lines,
  up to the limit. It holds no answer of a model whose template has no tools.
"""
_ORDER = [
    "auto",
    "auto, no grammar",
    "auto, --lenient-calls",
    "required",
    "named",
    "none",
    "llama-server, auto",
    "llama-server, required",
]
_LONGEST = 300

__all__ = ["page"]


def page() -> str:
    """The text of the page."""
    before, after = _rows("before"), _rows("after")
    parts = [HEAD, "## The roads\n", ROADS, _table(before, after)]
    parts += ["## Beside llama-server\n", _beside(after)]
    if times := _json(MEASURED / "times.json"):
        parts += ["## Times\n", _times(times)]
    parts += ["## Answers that are wrong\n", _wrong(after)]
    return "\n".join(parts)


def _rows(name: str) -> list[dict[str, Any]]:
    with gzip.open(MEASURED / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def _figures(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "– | – | – | –"
    ended = sum(row["end"] in ("stop", "tool_calls") for row in rows)
    tokens = sum(row.get("tokens") or 0 for row in rows) / len(rows)
    return f"{len(rows)} | {sum(row['right'] for row in rows)} | {ended} | {tokens:.0f}"


def _table(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> str:
    lines = [
        "| Model | Road | Cases | Right | Ended | Tokens a case | Before: cases | right | ended | tokens |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for model, title in TITLES.items():
        for road in _ORDER:
            now, old = (
                [row for row in rows if (row["model"], row["road"]) == (model, road)]
                for rows in (after, before)
            )
            if now:
                lines.append(f"| {title} | {road} | {_figures(now)} | {_figures(old)} |")
    return "\n".join(lines) + "\n"


def _beside(after: list[dict[str, Any]]) -> str:
    explained = _json(ROOT / "tests" / "real" / "explained.json")
    pairs = {"auto": "llama-server, auto", "required": "llama-server, required"}
    by_key = {(row["model"], row["case"], row["road"]): row for row in after}
    lines = [
        "| Road | Cases | Both right | Only the gateway | Only llama-server | Neither |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for ours, theirs in pairs.items():
        both = [
            (row["right"], by_key[row["model"], row["case"], theirs]["right"])
            for row in after
            if row["road"] == ours and (row["model"], row["case"], theirs) in by_key
        ]
        counts = [both.count(kind) for kind in ((True, True), (True, False), (False, True), (False, False))]
        lines.append(f"| {ours} | {len(both)} | " + " | ".join(map(str, counts)) + " |")
    lines += ["", *(f"- {name}: {why}" for name, why in explained.items())]
    return "\n".join(lines).rstrip() + "\n"


def _times(rows: list[dict[str, Any]]) -> str:
    lines = [
        "The gateway's time by llama-server's, each the median of pairs that follow one another. The machine had other",
        "work, which the CPU does not show, and the other columns do:",
        "",
        "| | Pairs | CPU of all processes | To the first token | A token |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row['what']} | {row['pairs']} | {row['cpu']:.2f} | {row['first']:.2f} | {row['token']:.2f} |"
        )
    return "\n".join(lines) + "\n"


def _wrong(after: list[dict[str, Any]]) -> str:
    lines = [
        "Each with the checker's words and with what the model wrote. Left out are answers of *auto* with a fenced",
        "block, which Qwen2.5-Coder likes: no server reads them as calls, but for `--lenient-calls`.",
        "",
    ]
    for model, title in TITLES.items():
        shown = list(_shown([row for row in after if row["model"] == model]))
        if shown:
            summary = f"<details><summary>{title}: {len(shown) // 2} answers</summary>"
            lines += [summary, "", "```text", *shown, "```", "", "</details>", ""]
    return "\n".join(lines).rstrip() + "\n"


def _shown(rows: list[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        raw = row.get("raw") or ""
        fenced = row["road"].startswith("auto") and "```" in raw
        if row["right"] or fenced or row["road"] == _ORDER[1] or row["road"].startswith("llama-server"):
            continue
        yield f"{row['case']}, {row['road']}: {row['why']}"
        yield f"    {json.dumps(raw, ensure_ascii=False)[:_LONGEST]}".replace("```", "'''")


def main() -> int:
    text = page()
    if "--check" in sys.argv:
        stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text
        if stale:
            print("docs/tables/real.md is stale: python docs/_real.py", file=sys.stderr)
        return int(stale)
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
