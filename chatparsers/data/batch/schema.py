"""Rows of JSON lines as tables of one schema, that of the first rows. What does not fit it is kept as JSON text.

Nested values are JSON text, as their Arrow type would depend on the row. A key that comes later, or a value of another
type than the first rows have, goes to the column ``extra``: nothing is lost, and the note says where it began.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..arrow import pyarrow as pa
from ..columns import array
from ..shapes.talk import json_text
from ..typed import RowReport, column_values
from .units import Bad

EXTRA = "extra"
_TYPES = {
    "text": pa.string(),
    "json": pa.string(),
    "bool": pa.bool_(),
    "int": pa.int64(),
    "float": pa.float64(),
    "ids": pa.list_(pa.int64()),
}
_NONE = {type(None)}
_PLAIN = {"text": {str, *_NONE}, "bool": {bool, *_NONE}, "float": {float, *_NONE}}
"""The types whose values a column of such a kind has as they are."""
_LARGEST = 2**63


@dataclass(frozen=True)
class Schema:
    """The columns of lines and their kinds: ``text``, ``json`` (JSON text), ``bool``, ``int``, ``float``, ``ids``."""

    kinds: Mapping[str, str] = field(default_factory=dict)

    def table(
        self, rows: Sequence[dict[str, Any] | Bad], numbers: Sequence[int], where: str
    ) -> tuple[Any, dict[str, str]]:
        """The rows as a table, and for each key that does not fit where it was found first."""
        columns: dict[str, list[Any]] = {}
        left: dict[int, dict[str, Any]] = {}
        notes: dict[str, str] = {}
        objects = [{} if isinstance(row, Bad) else row for row in rows]
        for name, kind in self.kinds.items():
            values = columns[name] = [row.get(name) for row in objects]
            if set(map(type, values)) <= _PLAIN.get(kind, _NONE):
                continue  # most columns: nothing to look at, value by value
            for place, value in enumerate(values):
                fits, values[place] = _fitting(value, kind)
                if not fits:
                    left.setdefault(place, {})[name] = value
                    found = type(value).__name__
                    notes.setdefault(
                        name, f"{where}, row {numbers[place]}: {name!r} is {found}, before it was {kind}"
                    )
        for place, row in enumerate(rows):
            if isinstance(row, Bad):
                left[place] = {"line": row.text}
            elif not row.keys() <= self.kinds.keys():
                for name in row.keys() - self.kinds.keys():
                    if row[name] is not None:
                        left.setdefault(place, {})[name] = row[name]
                        notes.setdefault(name, f"{where}, row {numbers[place]}: the column {name!r} is new")
        extra = [json_text(left[place]) if place in left else None for place in range(len(rows))]
        arrays = [array(columns[name], _TYPES[kind]) for name, kind in self.kinds.items()]
        return (
            pa.table([*arrays, array(extra, pa.string())], names=[*self.kinds, self.extra]),
            notes,
        )

    @property
    def extra(self) -> str:
        """The name of the column for what does not fit."""
        return EXTRA if EXTRA not in self.kinds else f"{EXTRA}_columns"


def schema_of(rows: Iterable[dict[str, Any] | Bad], ids: str | None = None) -> Schema:
    """The schema that the rows have. ``ids``: a column that holds lists of numbers, not JSON text, if it has lists."""
    found: dict[str, set[str]] = {}
    for row in rows:
        if isinstance(row, Bad):
            continue
        for name, value in row.items():
            kinds = found.setdefault(name, set())
            if value is not None:
                kinds.add(_kind(value, name == ids))
    return Schema({name: _joined(kinds) for name, kinds in found.items()})


def _kind(value: Any, ids: bool) -> str:
    if isinstance(value, str):
        return "text"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -_LARGEST <= value < _LARGEST else "json"
    if isinstance(value, float):
        return "float"
    if ids and isinstance(value, list) and all(type(item) is int for item in value):
        return "ids"
    return "json"


def _joined(kinds: set[str]) -> str:
    if not kinds:
        return "text"
    if kinds == {"int", "float"}:
        return "float"
    return next(iter(kinds)) if len(kinds) == 1 else "json"


def _fitting(value: Any, kind: str) -> tuple[bool, Any]:
    """Whether a value fits its column, and how the column has it."""
    if value is None:
        return True, None
    own = _kind(value, kind == "ids")
    if own == kind and kind != "json":
        return True, value
    if kind == "float" and own == "int":
        return True, float(value)
    if kind == "json":
        return True, value if isinstance(value, str) else json_text(value)
    return False, None


def conform(table: Any, schema: Any, where: str, extra: str | None) -> tuple[Any, dict[str, str]]:
    """A table with the columns of ``schema``; what does not fit it goes to the column ``extra``, with notes."""
    if extra is None:
        return table, {}
    notes: dict[str, str] = {}
    left: dict[str, list[Any]] = {}
    columns = []
    for wanted in schema:
        if wanted.name not in table.column_names:
            columns.append(pa.nulls(table.num_rows, wanted.type))
            continue
        column = table.column(wanted.name)
        try:
            columns.append(column if column.type == wanted.type else column.cast(wanted.type))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            columns.append(pa.nulls(table.num_rows, wanted.type))
            left[wanted.name] = column_values(column)
            notes[wanted.name] = f"{where}: {wanted.name!r} is {column.type}, before it was {wanted.type}"
    for name in table.column_names:
        if schema.get_field_index(name) < 0:
            left[name] = column_values(table.column(name))
            notes[name] = f"{where}: the column {name!r} is new"
    rows = [
        {
            name: RowReport(name).settled(name, values[row])
            for name, values in left.items()
            if values[row] is not None
        }
        for row in range(table.num_rows)
    ]
    columns.append(array([json_text(row) if row else None for row in rows], pa.string()))
    return pa.table(columns, names=[*schema.names, extra]), notes
