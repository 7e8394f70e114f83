"""Tables of figures, each row with its budget: for the terminal, as Markdown, as JSON, and for a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Budget", "Row", "Table", "as_json", "as_markdown", "as_text", "write_between", "write_page"]


@dataclass(frozen=True)
class Budget:
    """The most that a figure may be (``least``: the least), in ``unit``. ``worst`` is the measured figure."""

    limit: float
    unit: str
    worst: float
    least: bool = False

    @property
    def ok(self) -> bool:
        return self.worst >= self.limit if self.least else self.worst <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.least else '≤'} {number(self.limit)} {self.unit}: {'ok' if self.ok else 'over'}"


@dataclass(frozen=True)
class Row:
    """A line of figures in the order of the table's columns; None for an empty cell."""

    name: str
    figures: Sequence[float | str | None]
    budgets: Sequence[Budget] = ()


@dataclass(frozen=True)
class Table:
    """Rows of one kind. ``columns`` are the columns after the name."""

    key: str
    title: str
    columns: Sequence[str]
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def budgets(self) -> list[Budget]:
        return [budget for row in self.rows for budget in row.budgets]


def number(value: float | str | None) -> str:
    """A figure with three significant digits."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if float(value).is_integer():
        return f"{value:,.0f}"
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.2f}"


def _cells(table: Table) -> list[list[str]]:
    budgeted = any(row.budgets for row in table.rows)
    lines = [[table.key, *table.columns, *(["budget"] if budgeted else [])]]
    for row in table.rows:
        budget = [", ".join(map(str, row.budgets))] if budgeted else []
        lines.append([row.name, *map(number, row.figures), *budget])
    return lines


def as_markdown(lines: list[list[str]]) -> list[str]:
    """A table of cells in Markdown. The first line is its head."""
    head, *rest = (f"| {' | '.join(line)} |" for line in lines)
    rule = "|---|" + "---:|" * (len(lines[0]) - 2) + ("---|" if lines[0][-1] == "budget" else "---:|")
    return [head, rule, *rest]


def _plain(lines: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    left = {0, len(widths) - 1} if lines[0][-1] == "budget" else {0}
    lines = [lines[0], ["─" * width for width in widths], *lines[1:]]
    return [
        "  ".join(
            cell.ljust(width) if place in left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]


def as_text(tables: Iterable[Table], markdown: bool) -> str:
    """The tables, one below the other."""
    texts = []
    for table in tables:
        title = f"### {table.title}\n" if markdown else table.title
        lines = (as_markdown if markdown else _plain)(_cells(table)) if table.rows else []
        texts.append("\n".join([title, *lines, *(["", *table.notes] if table.notes else [])]))
    return "\n\n".join(texts)


def as_json(tables: Iterable[Table], machine: dict[str, str]) -> dict[str, Any]:
    """All figures as plain data."""
    return {
        "machine": machine,
        "tables": [
            {
                "key": table.key,
                "title": table.title,
                "columns": list(table.columns),
                "rows": [
                    {
                        "name": row.name,
                        "figures": dict(zip(table.columns, row.figures, strict=True)),
                        "budgets": [{**asdict(budget), "ok": budget.ok} for budget in row.budgets],
                    }
                    for row in table.rows
                ],
                "notes": table.notes,
            }
            for table in tables
        ],
    }


def write_page(
    path: Path, pieces: Table, others: Sequence[tuple[str, str, str]], machine: dict[str, str]
) -> None:
    """Puts the table of pieces and a table of the other figures between the two comments of a page.

    Raises ValueError if the comments are missing.
    """
    said = (
        f"CPU time, medians, on {machine['cpu']}, {machine['python']}, one process; `python benchmarks/parse.py` "
        "measures and prints all of it."
    )
    tables = [
        *as_markdown(_cells(pieces)),
        "",
        *as_markdown([["also", "measured", "budget"], *map(list, others)]),
    ]
    write_between(path, "benchmarks", [*tables, "", said])


def write_between(path: Path, name: str, lines: Iterable[str]) -> None:
    """Puts lines between the two comments of that name in a page. Raises ValueError if the comments are missing."""
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, begun, rest = path.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(end)
    if not begun or not ended:
        raise ValueError(
            f"{path}: expected the lines {begin} and {end}: add them where the tables are to stand"
        )
    path.write_text("\n".join([before + begin, *lines, end + after]), encoding="utf-8")
