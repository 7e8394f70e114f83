"""A trainer's batch, judged: its rows as they are in files, parted, matched with the messages, and counted.

    file ──rows──> columns ──parted──> conversations ──matched──> messages ──Judge──> charges ──> report

A batch says what counts as ``labels`` (-100), or as a mask. Padding is told by ``attention_mask``. Packed rows are
parted by ``position_ids``, ``segment_ids`` or ``cu_seqlens``. The messages are found by their words, as trainers drop
and shuffle rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import ChatParsersError, RequestError
from ..labels.charges import CODES, Charge
from ..labels.judge import Judge
from ..plain import one_line
from .batch.inputs import BatchError, Input, find_inputs
from .batch.units import Bad, rows_of, tables_of, units
from .columns import plain, table_rows, turns_in
from .rows import tool_list

_MASKS = ("loss_mask", "assistant_masks", "assistant_mask", "completion_mask")
_BORDERS = ("position_ids", "segment_ids", "cu_seqlens")
_COLUMNS = ("input_ids", "labels", *_MASKS, "attention_mask", *_BORDERS)
_NEAREST = 24
"""The most rows of messages with a question in common that are compared with a conversation."""
Messages = Sequence[Mapping[str, Any]]


@dataclass(slots=True)
class Found:
    """A code in a batch: in how many conversations, and the first: its row, and the charge."""

    count: int
    row: int
    charge: Charge


@dataclass(slots=True)
class LabelReport:
    """``conversations``: how many were judged. ``found``: by code. ``untold``: what the template does not show.
    ``unread``: rows that could not be read, and why. ``matched``: conversations whose messages were found; None if no
    messages were given."""

    conversations: int = 0
    found: dict[str, Found] = field(default_factory=dict)
    untold: dict[str, str] = field(default_factory=dict)
    unread: dict[int, str] = field(default_factory=dict)
    matched: int | None = None
    rows: int = 0

    @property
    def status(self) -> int:
        """2 if a row could not be read, 1 with a charge, 0 without one."""
        return 2 if self.unread or not self.conversations else 1 if self.found else 0

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON has it."""
        charges = [
            {
                "code": code,
                "count": one.count,
                "share": round(one.count / self._of(code), 4),
                "row": one.row,
                "place": one.charge.place,
                "says": one.charge.says,
                "witness": one.charge.witness,
            }
            for code, one in self.found.items()
        ]
        return {
            "conversations": self.conversations,
            "rows": self.rows,
            "matched": self.matched,
            "charges": charges,
            "untold": self.untold,
            "unread": [{"row": row, "why": why} for row, why in self.unread.items()],
        }

    def _of(self, code: str) -> int:
        return max(self.rows if code == "row-lost" else self.conversations, 1)

    def lines(self) -> Iterator[str]:
        """The report for a terminal."""
        for row, why in self.unread.items():
            yield f"row {row}: {one_line(why)}"
        if not self.conversations:
            return
        for code, one in sorted(self.found.items(), key=lambda item: -item[1].count):
            share = f"{one.count} of {self._of(code)} ({one.count / self._of(code):.0%})"
            yield f"{code:<22} {share:<16} {CODES[code]}"
            yield f"{'':<22} row {one.row}: {one_line(one.charge.says)}"
            if one.charge.witness:
                yield f"{'':<22} {one_line(one.charge.witness)}"
        for code in self.untold:
            yield f"{code:<22} cannot be told  of this template"
        if self.matched is not None and self.matched < self.conversations:
            yield f"{self.conversations - self.matched} of {self.conversations} conversations: no messages were found"
        if not self.found:
            yield f"{self.conversations} conversations: nothing to say"


def judge_batch(
    judge: Judge, batch: Sequence[str], rows: Sequence[str] = (), *, limit: int | None = None
) -> LabelReport:
    """The report of the files of a batch. ``rows``: files of the messages that it was made from. Raises `BatchError`
    for a file that cannot be read."""
    report = LabelReport(untold=dict(judge.untold))
    given = _Given(judge, rows) if rows else None
    read = list(_conversations(batch, limit, report))
    found = [None if given is None else given.of(judge, row, ids) for row, ids, _ in read]
    shares = Counter(at for at in found if at is not None)
    for (row, ids, labels), at in zip(read, found, strict=True):
        messages, tools = (None, None) if given is None or at is None else given.rows[at]
        if messages is not None and at is not None and shares[at] > 1:
            messages = None  # several conversations of one row: each has a part of it
        try:
            charges = judge.judge(ids, labels, messages, tools)
        except ChatParsersError as error:
            report.unread.setdefault(row, str(error))
            continue
        report.conversations += 1
        for charge in charges:
            one = report.found.setdefault(charge.code, Found(0, row, charge))
            one.count += 1
    if given is not None:
        report.rows, report.matched = len(given.rows), sum(at is not None for at in found)
        lost = [at for at in range(len(given.rows)) if not shares[at]]
        if lost and report.conversations:
            says = f"{given.shown(lost[0])!r}"
            report.found["row-lost"] = Found(len(lost), lost[0], Charge("row-lost", 0, says))
    return report


def _conversations(
    names: Sequence[str], limit: int | None, report: LabelReport
) -> Iterator[tuple[int, list[int], list[int]]]:
    """The number of a row, and the ids and labels of each conversation in it."""
    for number, row in _rows(find_inputs(names), _COLUMNS, limit):
        try:
            if isinstance(row, Bad):
                raise RequestError(row.error)
            for ids, labels in _parted(row):
                yield number, ids, labels
        except RequestError as error:
            report.unread[number] = str(error)


def _rows(
    inputs: Sequence[Input], columns: Sequence[str], limit: int | None = None
) -> Iterator[tuple[int, dict[str, Any] | Bad]]:
    for unit in units(inputs, limit=limit):
        input = inputs[unit.file]
        if input.kind == "jsonl":
            for numbers, rows in rows_of(unit, input):
                yield from zip(numbers, rows, strict=True)
        else:
            for first, table in tables_of(unit, input):
                names = [name for name in table.column_names if name in columns]
                yield from enumerate(table_rows(table, names), first)


def _parted(row: Mapping[str, Any]) -> Iterator[tuple[list[int], list[int]]]:
    """The conversations of a row, without padding. Raises `RequestError`."""
    ids = row.get("input_ids")
    if ids is None:
        error = row.get("error")
        raise RequestError(f"expected input_ids, found none{f' ({error})' if error else ''}")
    if isinstance(ids, list) and ids and isinstance(ids[0], list):  # a batch of several
        for at in range(len(ids)):
            yield from _parted(
                {key: value[at] if isinstance(value, list) else value for key, value in row.items()}
            )
        return
    ids = _numbers("input_ids", ids)
    labels = _labels(row, ids)
    for name in ("attention_mask", *_BORDERS[:2]):
        if row.get(name) is not None and len(row[name]) != len(ids):
            raise RequestError(f"{name}: expected {len(ids)} values, one for each id, found {len(row[name])}")
    shown = row.get("attention_mask") or [1] * len(ids)
    # what is counted stays, also where the mask says padding
    kept = [at for at in range(len(ids)) if shown[at] or labels[at] != -100]
    starts = {0, *_starts(row, len(ids))}
    piece: list[int] = []
    for at in kept:
        if at in starts and piece:
            yield [ids[one] for one in piece], [labels[one] for one in piece]
            piece = []
        piece.append(at)
    if piece:
        yield [ids[one] for one in piece], [labels[one] for one in piece]


def _starts(row: Mapping[str, Any], length: int) -> Iterable[int]:
    """Where packed conversations begin."""
    places, segments, ends = (row.get(name) for name in _BORDERS)
    if ends is not None:
        return [at for at in _numbers("cu_seqlens", ends) if at < length]
    if segments is not None:
        return [at for at in range(1, length) if segments[at] != segments[at - 1]]
    if places is not None:
        return [at for at in range(1, length) if places[at] == 0]
    return ()


def _labels(row: Mapping[str, Any], ids: Sequence[int]) -> list[int]:
    name = next((name for name in ("labels", *_MASKS) if row.get(name) is not None), None)
    if name is None:
        raise RequestError(f"expected labels, or a mask ({', '.join(_MASKS)}), found none beside input_ids")
    values = _numbers(name, row[name])
    if len(values) != len(ids):
        raise RequestError(f"{name}: expected {len(ids)} values, one for each id, found {len(values)}")
    return values if name == "labels" else [id if on else -100 for id, on in zip(ids, values, strict=True)]


def _numbers(name: str, values: Any) -> list[int]:
    if not isinstance(values, list) or not all(
        isinstance(one, (int, float)) and one == int(one) for one in values
    ):
        raise RequestError(f"{name}: expected a list of integers, found {values!r:.60}")
    return [int(one) for one in values]


class _Given:
    """The messages and tools of rows, found by the words of their users."""

    def __init__(self, judge: Judge, names: Sequence[str]) -> None:
        self.rows: list[tuple[Messages, Any]] = []
        self._by_text: dict[str, list[int]] = {}
        self._texts: list[frozenset[str]] = []
        for number, row in _rows(find_inputs(names), ("messages", "tools")):
            messages = [] if isinstance(row, Bad) else turns_in(row.get("messages"))
            if (
                not isinstance(messages, list)
                or not all(isinstance(one, Mapping) for one in messages)
                or not messages
            ):
                raise BatchError(f"{', '.join(names)}, row {number}: expected messages, a list of objects")
            tools = None if isinstance(row, Bad) else plain(row.get("tools"))
            self.rows.append((messages, tool_list(tools) or None))
            texts = frozenset(judge.words(messages))
            self._texts.append(texts)
            for text in texts:
                self._by_text.setdefault(text, []).append(number)
        self._taken: set[int] = set()

    def of(self, judge: Judge, row: int, ids: Sequence[int]) -> int | None:
        """The row of which these ids have the most texts and lack the fewest; of several, the nearest by its number."""
        text, parts = judge.read(ids)
        rarest: Sequence[int] = ()
        for part in parts:
            found = self._by_text.get(part, ())
            if found and (not rarest or len(found) < len(rarest)):
                rarest = found
        near = sorted(rarest, key=lambda at: abs(at - row))[:_NEAREST]

        def rank(at: int) -> tuple[int, int, bool, int]:
            there = sum(one in text for one in self._texts[at])
            return -there, len(self._texts[at]) - there, at in self._taken, abs(at - row)

        best = min(near, key=rank, default=None)
        if best is not None:
            self._taken.add(best)
        return best

    def shown(self, at: int) -> str:
        """The first words of a row's user."""
        texts = (str(one.get("content")) for one in self.rows[at][0] if one.get("role") == "user")
        return next(texts, "")[:60]
