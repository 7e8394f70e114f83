"""What the ids and the labels of a conversation show by themselves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from ..chat.inline import Marks
from ..chat.sample import Kind
from .charges import Charge
from .row import AFTER, SILENT, WORDS, Placed, Row

_NOT_OURS = {
    Kind.MARKUP: "header-counted",
    Kind.SYSTEM: "user-counted",
    Kind.USER: "user-counted",
    Kind.RESULT: "result-counted",
    AFTER: "after-stop-counted",
}


def alone(row: Row, marks: Sequence[Marks], left_open: bool) -> Iterator[Charge]:
    """The charges, each code once for an answer at most. ``marks``: of thoughts. ``left_open``: whether the template
    writes no stop after the last answer."""
    seen: set[str] = set()
    for at, kind in enumerate(row.kinds):
        code = _NOT_OURS.get(kind, "") if row.counts[at] else ""
        if code and code not in seen and at not in row.stopped:
            seen.add(code)
            yield Charge(code, at, f"{row.text[row.starts[at] : row.starts[at + 1]]!r} counts")
    for index, one in enumerate(row.parts):
        if one.part.written:
            yield from _silent(row, one, marks)
            if row.counted(one):
                yield from _answer(row, one, index + 1 == len(row.parts), left_open)


def _silent(row: Row, one: Placed, marks: Sequence[Marks]) -> Iterator[Charge]:
    """The opener of an empty thought. Its closer alone is the model's, after a prompt that opened it."""
    text = row.text[one.part.silent : one.part.start]
    closer = min((at for mark in marks if (at := text.find(mark.end)) >= 0), default=0)
    for at in range(one.first - 1, -1, -1):
        if row.kinds[at] != SILENT:
            return
        start = row.starts[at]
        if (
            row.counts[at]
            and start < one.part.silent + closer
            and row.text[start : row.starts[at + 1]].strip()
        ):
            yield Charge(
                "empty-thought-counted", at, f"{text.strip()!r} counts, and the answer has no thought"
            )
            return


def _answer(row: Row, one: Placed, last: bool, left_open: bool) -> Iterator[Charge]:
    kinds, counts = row.kinds, row.counts
    words = [at for at in range(one.first, one.stop) if kinds[at] in WORDS]
    said = [at for at in words if counts[at]]
    called = [at for at in words if kinds[at] in (Kind.CALL, Kind.ARGUMENT)]
    uncalled = bool(called) and (not counts[called[0]] or 2 * sum(counts[at] for at in called) < len(called))
    for start, text in _twice(one):
        yield Charge("arguments-twice", _id_at(row, one, start), f"{text[:60]!r}")
    if uncalled:
        yield Charge("call-not-counted", called[0], f"{_words(row, called)[:60]!r} does not count")
    yield from _stops(row, one, last, left_open, words)
    rest = [at for at in words if kinds[at] != Kind.REASONING]
    for before, at in pairwise(rest):
        if counts[before] and not counts[at] and kinds[before] == kinds[at] and at == before + 1:
            yield Charge("words-end-mask", at, f"from {_words(row, [at, at + 1])!r} on")
            break
    if said and not uncalled:
        place = _masked(row, one, said)
        if place is not None:
            yield Charge("opener-not-counted", place, f"{_words(row, [place])!r} does not count")


def _stops(row: Row, one: Placed, last: bool, left_open: bool, words: Sequence[int]) -> Iterator[Charge]:
    ends = bool(words) and row.counts[words[-1]]
    if one.stop < one.last:
        if ends and not row.counts[one.stop] and one.stop not in row.stopped:
            yield Charge("stop-not-counted", one.stop, f"{_words(row, [one.stop])!r} does not count")
    elif not last:
        if not row.stopped & {one.last, one.last - 1}:
            yield Charge("stop-missing", min(one.last, len(row.ids) - 1), "the next header follows")
    elif ends:
        read = one.part.read
        whole = read is not None and all(call.complete for call in read.tool_calls)
        whole = whole and row.kinds[words[-1]] != Kind.REASONING
        yield Charge("stop-not-counted" if left_open and whole else "cut", one.last - 1, "the row ends there")


def _masked(row: Row, one: Placed, said: Sequence[int]) -> int | None:
    """The first id of the answer that does not count and that the model must write: its first, or markup between words
    that count. Thoughts may be left out whole, with their markers."""
    first = next((at for at in range(one.first, one.stop) if row.kinds[at] >= 0), one.stop)
    begins = next((at for at in range(first, one.stop) if row.counts[at]), one.stop)
    thought = [at for at in range(one.first, one.stop) if row.kinds[at] == Kind.REASONING]
    if first < begins and not (thought and thought[-1] < begins):
        return first
    for at in range(begins, said[-1]):
        if (
            not row.counts[at]
            and row.kinds[at] == Kind.ANSWER_MARKUP
            and row.text[row.starts[at] :][:8].strip()
        ):
            return at
    return None


def _twice(one: Placed) -> Iterator[tuple[int, str]]:
    """Arguments that are an object as JSON text in a JSON text: where they stand, and how."""
    read = one.part.read
    for region in read.regions if read is not None else ():
        text = (
            read.text[region.start : region.end].strip() if read is not None and region.kind == "call" else ""
        )
        if text.startswith('"') and isinstance(once(once(text)), dict):
            yield one.part.at + region.start, text


def once(text: Any) -> Any:
    """The value of a JSON text; what is none, as it is."""
    if isinstance(text, str):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            return text
    return text


def _id_at(row: Row, one: Placed, start: int) -> int:
    return next((at for at in range(one.first, one.last) if row.starts[at + 1] > start), one.first)


def _words(row: Row, places: Sequence[int]) -> str:
    return row.text[row.starts[places[0]] : row.starts[min(places[-1] + 1, len(row.ids))]]
