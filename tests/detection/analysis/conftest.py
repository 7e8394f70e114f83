"""Which templates the analysis is tried on, and the table that it prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

ROWS = pytest.StashKey[list[Mapping[str, Any]]]()


@pytest.fixture
def add_row(request: pytest.FixtureRequest) -> Any:
    """Adds a line to the table of formats that were found."""

    def add(**row: Any) -> None:
        request.node.user_properties.append(("found", row))

    return add


def pytest_terminal_summary(terminalreporter: Any) -> None:
    rows = [
        value
        for kind in ("passed", "failed")
        for report in terminalreporter.stats.get(kind, ())
        for name, value in getattr(report, "user_properties", ())
        if name == "found"
    ]
    if rows:
        terminalreporter.section("formats found by analysis, their modules hidden")
        for line in table(sorted(rows, key=lambda row: (row["format"], row["template"]))):
            terminalreporter.write_line(line)


def table(rows: Iterable[Mapping[str, Any]]) -> Iterable[str]:
    """A line for each template: what the hand-written format reads, and what the found one makes of it."""
    rows = list(rows)
    yield f"{'template':52} {'hand-written':18} {'cells':>5}  {'found':22} {'same':>5} {'refused':>7} {'wrong':>5}"
    for row in rows:
        yield (
            f"{row['template'][:52]:52} {row['format']:18} {row['cells']:>5}  {row['found']:22} {row['same']:>5} "
            f"{row['refused']:>7} {row['wrong']:>5}"
        )
    total = {key: sum(row[key] for row in rows) for key in ("cells", "same", "refused", "wrong")}
    yield (
        f"{len(rows)} templates: of {total['cells']} cells that the hand-written formats read, {total['same']} are "
        f"read alike, {total['refused']} refused, {total['wrong']} wrong"
    )
