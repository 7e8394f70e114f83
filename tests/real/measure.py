"""Asks the leaderboard's cases of real models by all roads, and writes a row for each answer:

    python tests/real/measure.py FOLDER OUT.jsonl.gz MODEL=KIND:COUNT,… [MODEL=…]

``FOLDER``: what ``tests/real/install`` made. ``OUT`` gets the rows that it does not have yet, so a run can go on.
"""

from __future__ import annotations

import gzip
import json
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from leaderboard import Leaderboard
from processes import servers
from roads import rows

_SHOWN = 400


def main(folder: Path, out: Path, asked: list[str]) -> None:
    leaderboard = Leaderboard(folder / "bfcl")
    for one in asked:
        name, _, kinds = one.partition("=")
        counts = {kind: int(count) for kind, count in (pair.split(":") for pair in kinds.split(","))}
        known = read_rows(out) if out.exists() else []
        model = folder / "models" / f"{name}.gguf"
        with tempfile.TemporaryDirectory() as logs, servers(folder, model, Path(logs)) as running:
            for row in rows(running, leaderboard, leaderboard.cases(counts), name, known):
                with gzip.open(out, "at", encoding="utf-8") as file:
                    file.write(json.dumps(_short(row), ensure_ascii=False) + "\n")
                print(name, row["case"], row["road"], row["right"], row["end"], row["why"], flush=True)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _short(row: dict[str, Any]) -> dict[str, Any]:
    """A row with the beginning of its raw text, if it is wrong."""
    return {**row, "raw": None if row["right"] else (row.get("raw") or "")[:_SHOWN]}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers end too
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
