"""The samples of a session: a row for each stretch of ids that the model saw as one, in which each answer counts once.

A row is a segment of a line. Where lines share their beginning, its answers count in the first row that has them, and
are context in the others. Answers that nobody took (`unwanted`) are context, and count nowhere.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from ..chat.parts import Completion, Given
from ..chat.sample import Sample
from ..chat.segment import sample_of
from .session import Answer, Session

Twins = Literal["keep", "context", "drop"]
"""What becomes of answers that nobody took: they count as others do, are context, or are not shown."""
TWINS = get_args(Twins)


@dataclass(frozen=True, slots=True)
class Row:
    """One sample. ``line``, ``segment``: its place. ``answers``: those that count in it."""

    sample: Sample
    line: int
    segment: int
    answers: tuple[int, ...]
    delivered: bool


@dataclass(slots=True)
class Export:
    """The rows of a session. ``sampled``: all ids that its engine sampled; each of them is ``counted``, or left out:
    ``left_out`` has their number by reason."""

    rows: list[Row] = field(default_factory=list)
    sampled: int = 0
    counted: int = 0
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether no id is missing, and none counts twice."""
        return self.counted + sum(self.left_out.values()) == self.sampled


def unwanted(answer: Answer) -> str | None:
    """Why nobody took an answer: ``failed``, ``undelivered``, or ``twin`` of one that was taken. None if it was."""
    if answer.children:
        return None
    if answer.error is not None:
        return "failed"
    if not answer.delivered:
        return "undelivered"
    twins = [
        one for one in answer.asked.asked if one.parent is answer.parent and one.delivered and not one.error
    ]
    taken = any(one.children for one in twins)
    return "twin" if taken or answer is not twins[-1] else None


def export(session: Session, twins: Twins = "context") -> Export:
    """The rows of a session as it is now."""
    with session.lock:
        found = Export(sampled=sum(answer.sampled for answer in session.answers.values()))
        why = (
            {}
            if twins == "keep"
            else {
                number: reason
                for number, answer in session.answers.items()
                if (reason := unwanted(answer)) is not None
            }
        )
        shown = [one for one in session.answers.values() if twins != "drop" or one.number not in why]
        gone_on = {one.parent.number for one in shown if one.parent is not None}
        leaves = [one for one in shown if one.number not in gone_on]
        numbers = _numbers(session.answers.values())
        seen = {serial for serial, number in numbers.items() if number in why}
        for leaf in sorted(leaves, key=lambda one: (one.number in why, one.number)):
            found.rows += _rows(leaf, numbers, seen)
    for row in found.rows:
        found.counted += row.sample.counted
    for number, reason in why.items():
        found.left_out[reason] = found.left_out.get(reason, 0) + _taken(session.answers[number])
    dropped = sum(one.sampled - _taken(one) for one in session.answers.values())
    if dropped:
        found.left_out["after the stop"] = dropped
    return found


def _rows(leaf: Answer, numbers: Mapping[str, int], seen: set[str]) -> Iterable[Row]:
    tokenizer = leaf.rollout.turn_alone.tokenizer
    for segment, parts in enumerate(leaf.rollout.parts()):
        new = [serial for serial in _serials(parts) if serial not in seen]
        sample = sample_of(tokenizer, parts, seen)
        if sample.counted:
            answers = tuple(dict.fromkeys(numbers[serial] for serial in new))
            yield Row(sample, leaf.line, segment, answers, leaf.delivered)


def _serials(parts: Sequence[Given | Completion]) -> list[str]:
    """The chunks that may count in a segment."""
    return [
        chunk.serial
        for part in parts
        if isinstance(part, Completion) and not part.context
        for chunk in part.chunks()
    ]


def _numbers(answers: Iterable[Answer]) -> dict[str, int]:
    """The answer of each chunk."""
    return {
        chunk.serial: answer.number
        for answer in answers
        for chunk in answer.rollout.begun()[-1].spoken.chunks
    }


def _taken(answer: Answer) -> int:
    """How many of its ids are the answer: those after its stop are not."""
    return len(answer.rollout.begun()[-1].ids)


# rows


class About(NamedTuple):
    """What a row says of its session. ``advantage``: of its reward within its group; None without one."""

    session: str
    group: str | None
    reward: float | None
    rewards: Mapping[int, float]
    advantage: float | None = None


def rows_of(found: Export, about: About) -> list[dict[str, Any]]:
    """The rows as plain data. ``weight``: so that each session counts once, however many rows it has."""
    return [
        {
            **row.sample.to_row(),
            "session": about.session,
            "group": about.group,
            "line": row.line,
            "segment": row.segment,
            "answers": list(row.answers),
            "delivered": row.delivered,
            "reward": _reward(row, about),
            "advantage": about.advantage,
            "weight": 1 / len(found.rows),
        }
        for row in found.rows
    ]


def _reward(row: Row, about: About) -> float | None:
    """The rewards of the row's own answers together, if there are such; else the session's."""
    own = [about.rewards[number] for number in row.answers if number in about.rewards]
    return sum(own) if own else about.reward


def summary(found: Sequence[Export]) -> dict[str, Any]:
    """How many rows there are, and what became of all sampled ids. Raises RuntimeError if one is missing, or counts
    twice: that would be a mistake of ours, and no row of it should be trained on."""
    left_out: dict[str, int] = {}
    for one in found:
        for reason, number in one.left_out.items():
            left_out[reason] = left_out.get(reason, 0) + number
    sampled, counted = sum(one.sampled for one in found), sum(one.counted for one in found)
    if counted + sum(left_out.values()) != sampled:
        raise RuntimeError(f"{sampled} ids were sampled, {counted} count, and {left_out} are left out")
    return {
        "rows": sum(len(one.rows) for one in found),
        "sampled": sampled,
        "counted": counted,
        "left_out": left_out,
    }


def to_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """The rows as lines of JSON."""
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def to_arrow(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """The rows as an Arrow stream. Raises ModuleNotFoundError without pyarrow."""
    from ..data.arrow import pyarrow as pa

    kinds = {
        "input_ids": pa.list_(pa.int32()),
        "labels": pa.list_(pa.int32()),
        "loss_mask": pa.list_(pa.int8()),
        "kinds": pa.list_(pa.int8()),
        "length": pa.int32(),
        "truncated": pa.bool_(),
        "left_out": pa.list_(pa.struct([("message", pa.int32()), ("why", pa.string())])),
        "logprobs": pa.list_(pa.float32()),
        "versions": pa.list_(pa.int32()),
        "prompt_length": pa.int32(),
        "session": pa.string(),
        "group": pa.string(),
        "line": pa.int32(),
        "segment": pa.int32(),
        "answers": pa.list_(pa.int32()),
        "delivered": pa.bool_(),
        "reward": pa.float64(),
        "advantage": pa.float64(),
        "weight": pa.float64(),
    }
    table = pa.Table.from_pylist(list(rows), schema=pa.schema(list(kinds.items())))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found
