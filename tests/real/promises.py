"""What must hold of the rows of `roads`, whatever a model writes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from roads import ROADS


def key(row: Mapping[str, Any]) -> str:
    """The name of an answer in ``explained.json``."""
    return f"{row['model']} {row['case']} {row['road']}"


def broken(rows: Iterable[Mapping[str, Any]], explained: Mapping[str, str]) -> list[str]:
    """One line for each answer that breaks a promise. ``explained``: answers that are wrong where llama-server's is
    right, by `key`, and why."""
    by_key = {key(row): row for row in rows}
    roads = {road.name: road for road in ROADS}
    found = []
    for name, row in by_key.items():
        road = roads[row["road"]]
        if road.server == "engine":
            continue
        wrong = []
        if row["end"].startswith("status"):
            wrong.append(f"refused: {row['why']}")
        elif not row["same_ids"]:
            wrong.append("the engine reads other ids in the prompt")
        if road.forced and not row["end"].startswith("status"):
            wrong += (
                ["not ended"] * (row["end"] == "length") + ["no call"] * (not row["calls"]) + row["invalid"]
            )
        if road.name == "none" and row["calls"]:
            wrong.append("a call")
        beside = by_key.get(key({**row, "road": road.beside}))
        if beside and beside["right"] and not row["right"] and name not in explained:
            wrong.append(f"llama-server is right, and this is not: {row['why']}; not explained")
        found += [f"{name}: {said}: {row.get('raw')!r}" for said in wrong]
    return found
