"""What trainers make of conversations: ``trainers.json``, and of it ``trainers.md``.

    python docs/tables/_trainers.py                        # writes the page from the data
    python docs/tables/_trainers.py --check                # fails if the page is not that of the data
    python docs/tables/_trainers.py --run MODELS BATCHES   # judges the batches anew, and writes both

``MODELS`` has a folder for each model, ``BATCHES`` a file ``TRAINER.MODEL.jsonl`` for each trainer and model, with a
line for each row of ``rows.jsonl``, in which it stands with its messages and its name. A line without ``input_ids`` is
a row that the trainer refused or dropped.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from _page import put

HERE = Path(__file__).resolve().parent
DATA, PAGE = HERE / "trainers.json", HERE / "trainers.md"
NAMES = {
    "axolotl": "Axolotl",
    "llamafactory": "LLaMA-Factory",
    "swift": "ms-swift",
    "trl": "TRL",
    "unsloth": "unsloth",
}
VERSIONS = {"axolotl": "0.19", "llamafactory": "0.9.5", "swift": "4.6", "trl": "1.16", "unsloth": "2026.10"}
REFUSED = "refused"
Cells = dict[str, dict[str, list[str]]]
"""By trainer and model, the codes of each row by its name."""


def judged(model: Path, batch: Path, rows: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """The codes of each row of a batch, by its name."""
    import chatparsers

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chat = chatparsers.load(model)
        found = {}
        for row, line in zip(rows, batch.read_text("utf-8").splitlines(), strict=True):
            made = json.loads(line)
            if "input_ids" not in made:
                found[row["name"]] = [REFUSED]
                continue
            charges = chat.judge_labels(made["input_ids"], made["labels"], row["messages"], row.get("tools"))
            found[row["name"]] = sorted({charge.code for charge in charges})
    return found


def run(models: Path, batches: Path) -> Cells:
    """The cells of all batches."""
    rows = [json.loads(line) for line in (batches / "rows.jsonl").read_text("utf-8").splitlines()]
    found: Cells = {}
    for batch in sorted(batches.glob("*.*.jsonl")):
        found[batch.stem] = judged(models / batch.stem.partition(".")[2], batch, rows)
    return found


def page(data: Mapping[str, Any]) -> str:
    return "\n".join(_page(data)) + "\n"


def _page(data: Mapping[str, Any]) -> Iterator[str]:
    cells: Cells = data["cells"]
    trainers = sorted({name.partition(".")[0] for name in cells})
    versions = ", ".join(f"{NAMES[name]} {data['versions'][name]}" for name in trainers)
    rows = list(next(iter(cells.values())))
    yield from (
        "# What trainers teach",
        "",
        "What trainers' own preparation makes of 17 valid conversations, judged by `chatparsers labels` beside their",
        "rows: each code is one of [labels.md](../labels.md). “–”: nothing is charged.",
        "",
        f"Made on {data['date']} with {versions}. `python docs/tables/_trainers.py` makes the",
        "page, and `--run` judges batches anew.",
        "",
        "## In most rows",
        "",
        "Codes of more than half of the rows that the trainer took, and how many it refused or dropped:",
        "",
        "| Trainer | Model | In most rows | Refused |",
        "|---|---|---|---|",
    )
    for name, found in cells.items():
        trainer, _, model = name.partition(".")
        refused = sum(codes == [REFUSED] for codes in found.values())
        yield f"| {NAMES[trainer]} | {model} | {_codes(_usual(found))} | {refused or '–'} |"
    yield from ("", "## By kind of row", "", "What is charged besides, by model.", "")
    heads = " | ".join(NAMES[name] for name in trainers)
    yield f"| Row | {heads} |"
    yield f"|---|{'---|' * len(trainers)}"
    for row in rows:
        shown = []
        for trainer in trainers:
            by_codes: dict[tuple[str, ...], list[str]] = {}
            for name, found in cells.items():
                if name.startswith(f"{trainer}."):
                    codes = tuple(code for code in found[row] if code not in _usual(found))
                    by_codes.setdefault(codes, []).append(name.partition(".")[2])
            shown.append(
                "; ".join(
                    f"{', '.join(models)}: {_codes(codes)}" for codes, models in by_codes.items() if codes
                )
                or "–"
            )
        yield f"| {row} | {' | '.join(shown)} |"


def _usual(found: Mapping[str, Sequence[str]]) -> list[str]:
    """The codes of more than half of the rows that were taken."""
    taken = [codes for codes in found.values() if codes != [REFUSED]]
    every = sorted({code for codes in taken for code in codes})
    return [code for code in every if 2 * sum(code in codes for codes in taken) > len(taken)]


def _codes(codes: Sequence[str]) -> str:
    return ", ".join(code if code == REFUSED else f"`{code}`" for code in codes) or "–"


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--run", nargs=2, type=Path, metavar=("MODELS", "BATCHES"))
    options = parser.parse_args(given)
    if options.run:
        data = {"date": date.today().isoformat(), "versions": VERSIONS, "cells": run(*options.run)}
        DATA.write_text(json.dumps(data, indent=1) + "\n", "utf-8")
    return put(PAGE, page(json.loads(DATA.read_text("utf-8"))), options.check)


if __name__ == "__main__":
    sys.exit(main())
