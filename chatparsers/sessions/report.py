"""What the logs of a folder say, without a model: how much of each session was kept by its own ids, and why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .log import Logs

_NUMBERS = ("answers", "lines", "sampled", "failed", "undelivered", "damaged")


@dataclass(slots=True)
class Counts:
    """``reasons``: of all answers, why their requests went on as they did. ``forgiven``: of how many, what was spelt
    otherwise than it was told. ``sampled``: how many ids. ``damaged``: how many lines are left out."""

    answers: int = 0
    lines: int = 0
    sampled: int = 0
    failed: int = 0
    undelivered: int = 0
    damaged: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    forgiven: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts) -> None:
        """Adds those of another session."""
        for name in _NUMBERS:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.reasons.update(other.reasons)
        self.forgiven.update(other.forgiven)

    @property
    def exact(self) -> float:
        """The share of the answers after the first of each session whose requests went on by exact ids."""
        later = self.answers - self.reasons["first"]
        return self.reasons["exact"] / later if later else 1.0

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain data."""
        counts = {name: getattr(self, name) for name in _NUMBERS}
        named = {"reasons": dict(self.reasons.most_common()), "forgiven": dict(self.forgiven.most_common())}
        return {**counts, "exact": round(self.exact, 4), **named}


@dataclass(frozen=True, slots=True)
class Witness:
    """Where ids were first not kept for a reason: ``held`` was given or sampled, ``shown`` is there now."""

    reason: str
    session: str
    answer: int
    held: str = ""
    shown: str = ""


@dataclass(slots=True)
class SessionReport:
    """What is said of one session."""

    id: str
    group: str | None = None
    closed: bool = False
    reward: float | None = None
    counts: Counts = field(default_factory=Counts)
    witnesses: list[Witness] = field(default_factory=list)


def sessions_of(logs: Logs) -> Iterator[SessionReport]:
    """What is said of each session in a folder."""
    for id in logs.ids():
        told = SessionReport(id)
        for line in logs.read(id):
            _read(told, line)
        yield told


def first_witnesses(found: Iterator[Witness]) -> list[Witness]:
    """The first one of each reason; those of edited messages are one."""
    first: dict[str, Witness] = {}
    for witness in found:
        first.setdefault(kind_of(witness.reason), witness)
    return [*first.values()]


def kind_of(reason: str) -> str:
    """The reason without the number of the message."""
    return reason.partition("(")[0]


def _read(told: SessionReport, line: Mapping[str, Any]) -> None:
    counts = told.counts
    match line["t"]:
        case "session":
            told.group = line["group"]
        case "answer":
            counts.answers += 1
            counts.lines = max(counts.lines, line["line"])
            counts.sampled += len(line["sampled"])
            counts.undelivered += not line["delivered"]
            counts.failed += line["error"] is not None
            counts.reasons[kind_of(line["reason"])] += 1
            counts.forgiven.update(line["forgiven"])
            if line["reason"] not in ("first", "exact"):
                texts = line.get("texts") or ("", "")
                told.witnesses.append(Witness(line["reason"], told.id, line["answer"], *texts))
        case "failed":
            counts.failed += 1
        case "undelivered":
            counts.undelivered += 1
        case "damaged":
            counts.damaged += 1
        case "closed":
            told.closed = True
        case "reward" if line["answer"] is None:
            told.reward = line["value"]
