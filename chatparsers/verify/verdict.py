"""The verdict: all rows of a run, what was judged how often, and the facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..lazy import load_reference
from ..public import public
from .rows import BLAMES, OTHER_MODEL, Blame, Row


@public
@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found in a server's answers. Made by `chatparsers.verify`; it is true if nothing is to the server's
    charge, and something was judged.

    ``rows``: what is wrong, the server's own faults first. ``facts``: what was asked of whom, and when. ``judged``: how
    many answers each code was judged in. ``not_judged``: what could not be judged, and why.
    """

    rows: tuple[Row, ...]
    facts: Mapping[str, Any]
    judged: Mapping[str, int]
    not_judged: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.status() == 0

    def __repr__(self) -> str:
        counts = Counter(row.blame for row in self.rows)
        told = ", ".join(f"{counts[blame]} {blame}" for blame in BLAMES if counts[blame])
        return f"<Verdict: {self.facts.get('url')}, {told or 'nothing found'}>"

    def status(self, *, strict: bool = False) -> int:
        """The exit status: 0 nothing to the server's charge, 1 at least one row, 2 nothing could be judged, as nothing
        answered or the files seem to be another model's. ``strict``: what is likely counts too.

        >>> from chatparsers.verify import Row, Verdict
        >>> row = Row("call-lost", "server", "auto", "0 of the 1 calls that the model wrote")
        >>> verdict = Verdict((row,), {"url": "http://127.0.0.1:8080", "answers": 1}, {"call-lost": 1})
        >>> verdict.status()
        1
        """
        if any(row.code == OTHER_MODEL for row in self.rows):
            return 2
        charged = ("server", "likely") if strict else ("server",)
        if any(row.blame in charged for row in self.rows):
            return 1
        return 0 if self.facts.get("answers") else 2

    def blamed(self, *blames: Blame) -> list[Row]:
        """The rows with one of these blames.

        >>> from chatparsers.verify import Row, Verdict
        >>> row = Row("call-lost", "server", "auto", "0 of the 1 calls that the model wrote")
        >>> verdict = Verdict((row,), {"url": "http://127.0.0.1:8080", "answers": 1}, {"call-lost": 1})
        >>> [found.code for found in verdict.blamed("server", "likely")]
        ['call-lost']
        """
        return [row for row in self.rows if row.blame in blames]

    def to_dict(self, *, texts: bool = False) -> dict[str, Any]:
        """The verdict as plain values, for JSON. ``texts``: also the texts of replayed requests.

        >>> from chatparsers.verify import Row, Verdict
        >>> row = Row("call-lost", "server", "auto", "0 of the 1 calls that the model wrote")
        >>> verdict = Verdict((row,), {"url": "http://127.0.0.1:8080", "answers": 1}, {"call-lost": 1})
        >>> verdict.to_dict()["rows"][0]["code"]
        'call-lost'
        """
        return {
            "facts": dict(self.facts),
            "judged": dict(self.judged),
            "not_judged": list(self.not_judged),
            "rows": [row.to_dict(texts=texts) for row in self.rows],
        }

    def __str__(self) -> str:
        lines = load_reference("chatparsers.verify.text:lines")
        return "\n".join(lines(self))


def ranked(rows: list[Row]) -> tuple[Row, ...]:
    """The worst first; rows of one code beside each other. What doubts all others stands before them."""
    many = Counter((row.blame, row.code) for row in rows)
    return tuple(
        sorted(
            rows,
            key=lambda row: (
                row.code != OTHER_MODEL,
                BLAMES.index(row.blame),
                -many[row.blame, row.code],
                row.code,
            ),
        )
    )
