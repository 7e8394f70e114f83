"""Rows as trainers take them: several samples in one row of ids, and batches of rows as tensors."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, Literal

from ..chat.sample import Kind, Sample
from ..errors import RequestError
from ..public import public


@public
@dataclass(frozen=True, slots=True)
class Packed:
    """Samples one after the other in one row. Made by `pack`.

    ``samples``: them, in the row's order. Positions begin anew with each; ``segment_ids`` number them from 0 on, and
    ``cu_seqlens`` has the place of each border, as attention over rows of several lengths takes it.
    """

    samples: tuple[Sample, ...]
    cu_seqlens: list[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cu_seqlens", [0, *accumulate(map(len, self.samples))])

    def __len__(self) -> int:
        return self.cu_seqlens[-1]

    @property
    def position_ids(self) -> list[int]:
        """The place of each id in its sample."""
        return [place for sample in self.samples for place in range(len(sample))]

    @property
    def segment_ids(self) -> list[int]:
        """The number of each id's sample in the row."""
        return [number for number, sample in enumerate(self.samples) for _ in range(len(sample))]

    def column(self, name: str) -> list[Any]:
        """A column of all samples, as `Sample.column` gives it.

        >>> packed = pack([chat.encode(messages)] * 2, 1_000)[0]
        >>> len(packed.column("loss_mask")) == len(packed)
        True
        """
        return [value for sample in self.samples for value in sample.column(name)]

    def labels(self, ignore: int = -100) -> list[int]:
        """The ids as labels, as `Sample.labels` gives them; the first id of a sample has none, as it follows another
        sample's end.

        >>> packed = pack([chat.encode(messages)] * 2, 1_000)[0]
        >>> len(packed.labels()) == len(packed)
        True
        """
        found: list[int] = []
        for sample in self.samples:
            labels = sample.labels(ignore)
            found += [ignore, *labels[1:]] if labels else []
        return found


@public
def pack(samples: Iterable[Sample], length: int) -> list[Packed]:
    """Puts samples into rows of at most ``length`` ids, the longest first, each into the first row that has room.

    Every sample is in one row, whole. Raises `RequestError` for a sample that is longer: shorten it before.

    >>> rows = pack([chat.encode(messages)] * 5, 2 * len(chat.encode(messages)))
    >>> [len(row.samples) for row in rows]
    [2, 2, 1]
    """
    given = list(samples)
    order = sorted(range(len(given)), key=lambda number: (-len(given[number]), number))
    rows: list[list[int]] = []
    room: list[int] = []
    for number in order:
        size = len(given[number])
        if size > length:
            raise RequestError(
                f"pack: sample {number} has {size} ids, more than {length}: Sample.shortened cuts it"
            )
        row = next((place for place, free in enumerate(room) if free >= size), len(rows))
        if row == len(rows):
            rows.append([])
            room.append(length)
        rows[row].append(number)
        room[row] -= size
    return [Packed(tuple(given[number] for number in sorted(row))) for row in rows]


@public
@dataclass(frozen=True, slots=True)
class Collator:
    """Makes a batch of samples, of rows (`Sample.to_row`, `chatparsers.data.Encode`) or of packed rows: a dictionary of
    arrays with a row for each.

    ``pad_id``: the id after shorter rows, or before them with ``side="left"``. ``multiple_of``: lengths are rounded
    up to it. ``tensors``: arrays of torch or of numpy. The batch has ``input_ids``, ``labels`` (-100 where no loss
    counts), ``attention_mask``, ``loss_mask``; ``position_ids`` and ``segment_ids`` if rows are packed; ``logprobs``
    if a sample has some; and the numbers that `Sample.with_columns` added to all. Integers have 64 bits, numbers 32.

    >>> batch = Collator(pad_id=0, multiple_of=8, tensors="numpy")([chat.encode(messages)])
    >>> batch["input_ids"].shape[1] % 8
    0
    """

    pad_id: int = 0
    multiple_of: int = 1
    side: Literal["left", "right"] = "right"
    tensors: Literal["torch", "numpy"] = "torch"

    def __call__(self, rows: Sequence[Sample | Packed | Mapping[str, Any]]) -> dict[str, Any]:
        """The batch. Raises ImportError without the package of ``tensors``, `RequestError` for a row without ids."""
        given = [row if isinstance(row, (Sample, Packed)) else Sample.from_row(row) for row in rows]
        if not given:
            raise RequestError("Collator: expected at least one row, found none")
        length = max(map(len, given))
        length += -length % self.multiple_of
        samples = [sample for row in given for sample in (row.samples if isinstance(row, Packed) else (row,))]
        more, packed = _numbers_of(samples), any(isinstance(row, Packed) for row in given)
        columns: dict[str, list[list[Any]]] = {}
        for row in given:
            for name, (values, fill) in self._columns(row, packed, more).items():
                missing = [fill] * (length - len(values))
                whole = missing + values if self.side == "left" else values + missing
                columns.setdefault(name, []).append(whole)
        return {name: self._array(values) for name, values in columns.items()}

    def _columns(
        self, row: Sample | Packed, packed: bool, more: Sequence[str]
    ) -> dict[str, tuple[list[Any], Any]]:
        """The columns of a row, each with what fills it. ``packed``: some rows are. ``more``: the columns of numbers
        that all rows have."""
        found: dict[str, tuple[list[Any], Any]] = {
            "input_ids": (row.column("ids"), self.pad_id),
            "labels": (row.labels(), -100),
            "attention_mask": ([int(kind != Kind.PADDING) for kind in row.column("kinds")], 0),
            "loss_mask": (row.column("loss_mask"), 0),
        }
        if packed:
            whole = row if isinstance(row, Packed) else Packed((row,))
            found |= {"position_ids": (whole.position_ids, 0), "segment_ids": (whole.segment_ids, -1)}
        return found | {name: (row.column(name), 0.0) for name in more}

    def _array(self, values: list[list[Any]]) -> Any:
        whole = isinstance(values[0][0], int) if values[0] else True
        if self.tensors == "numpy":
            import numpy

            return numpy.array(values, dtype=numpy.int64 if whole else numpy.float32)
        import torch  # type: ignore[import-not-found,unused-ignore]  # of the trainer, which takes them

        return torch.tensor(values, dtype=torch.int64 if whole else torch.float32)


def _numbers_of(samples: Sequence[Sample]) -> list[str]:
    """The columns of numbers that a batch of these has besides the usual ones."""
    shared = set.intersection(*(set(sample.added) for sample in samples))
    numbers = [
        name for name in sorted(shared) if all(isinstance(sample._columns[name], array) for sample in samples)
    ]
    return ["logprobs"] * any("logprobs" in sample._columns for sample in samples) + numbers
