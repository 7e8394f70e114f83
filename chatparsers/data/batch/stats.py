"""What a batch did, counted from its tables: the summary."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ..arrow import pyarrow as pa


@dataclass
class Stats:
    """Counts over rows. ``broken``: rows with calls or text that were cut off or do not fit the format. ``uncounted``:
    samples of which a loss counts no id. ``notes``: what of the input did not fit the first rows, by column."""

    rows: int = 0
    errors: int = 0
    calls: int = 0
    complete: int = 0
    broken: int = 0
    tokens: int = 0
    counted: int = 0
    uncounted: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    losses: Counter[str] = field(default_factory=Counter)
    formats: Counter[str] = field(default_factory=Counter)
    notes: dict[str, str] = field(default_factory=dict)

    def add(self, other: Stats) -> None:
        """Adds the counts of other rows."""
        for name in ("rows", "errors", "calls", "complete", "broken", "tokens", "counted", "uncounted"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("codes", "losses", "formats"):
            getattr(self, name).update(getattr(other, name))
        self.notes = {**other.notes, **self.notes}

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain JSON data."""
        return {
            key: dict(sorted(value.items())) if isinstance(value, dict) else value
            for key, value in self.__dict__.items()
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> Stats:
        """The counts that `to_dict` gave."""
        counters = {name: Counter(found[name]) for name in ("codes", "losses", "formats")}
        return cls(**{**found, **counters})


def stats_of(table: Any) -> Stats:
    """The counts of a table that one of the callables made."""
    stats = Stats(rows=table.num_rows)
    names = table.column_names
    if "error" in names:
        stats.errors = table.num_rows - table.column("error").null_count
    if "tool_calls" in names and pa.types.is_list(table.schema.field("tool_calls").type):
        stats.calls = pa.compute.sum(pa.compute.list_value_length(table.column("tool_calls"))).as_py() or 0
    if "messages" in names and "losses" in names:
        stats.calls = _calls(table.column("messages"))
    if "complete" in names and "diagnostics" in names:
        stats.complete = pa.compute.sum(table.column("complete")).as_py() or 0
        stats.broken = table.num_rows - stats.errors - stats.complete
        codes = pa.compute.list_flatten(table.column("diagnostics"))
        if len(codes):
            stats.codes = _counted(pa.compute.struct_field(codes, "code"))
    if "losses" in names:
        stats.losses = _counted(pa.compute.list_flatten(table.column("losses")))
    if "input_ids" in names and "length" in names:
        stats.tokens = pa.compute.sum(table.column("length")).as_py() or 0
        mask = pa.compute.list_flatten(table.column("loss_mask"))
        stats.counted = pa.compute.sum(mask).as_py() or 0
        stats.uncounted = sum(map(_uncounted, table.column("loss_mask").chunks))
    return stats


def _uncounted(masks: Any) -> int:
    """How many rows have a mask without a 1."""
    values, offsets = masks.values, masks.offsets.to_pylist()
    held = values.buffers()[1]
    marks = b"" if held is None else held.to_pybytes()
    first = values.offset
    return sum(
        masks[row].is_valid and marks.find(1, first + offsets[row], first + offsets[row + 1]) < 0
        for row in range(len(masks))
    )


def _counted(column: Any) -> Counter[str]:
    return Counter({item["values"]: item["counts"] for item in pa.compute.value_counts(column).to_pylist()})


def _calls(messages: Any) -> int:
    flat = pa.compute.list_flatten(messages)
    if not len(flat):
        return 0
    calls = pa.compute.struct_field(flat, "tool_calls")
    return pa.compute.sum(pa.compute.list_value_length(calls)).as_py() or 0
