"""Limits a grammar's size and the work that it takes, because tools come from strangers."""

from __future__ import annotations

from dataclasses import dataclass

MAX_SIZE = 16_000_000
"""How many characters a grammar may have."""
MAX_WORK = 3_000_000
"""How many steps of work its schemas may take: alternatives, judged values, transitions of automata. On a machine
of 2024 a million steps take about one to two seconds."""


@dataclass(slots=True)
class Budget:
    """The size and work that a grammar has left. Past either limit, schemas are written as any value."""

    size: int = MAX_SIZE
    work: int = MAX_WORK
    limit: str = "max_size"
    """What a grammar without size is past."""

    def over(self) -> str:
        """The limit that is passed, "" if the grammar is within both."""
        return self.limit if self.size < 0 else "max_work" if self.work < 0 else ""
