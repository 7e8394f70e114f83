"""A sample: the ids of a conversation, and what each of them is.

All columns are as long as `Sample.ids`. They are kept as arrays of the machine's numbers: small in memory and in a
pickle, and readable by numpy and torch without a copy (`Sample.numpy`). The lists are made when they are asked for.
The kinds and the messages of an encoded conversation are found at their first use: the loss mask needs
neither.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import IntEnum
from math import isnan, nan
from typing import Any, Literal

from ..errors import RequestError
from ..public import public
from ..shown import Shown
from .placeholders import Placeholder

Span = tuple[int, int]
Run = tuple[int, int, int]
"""First place, place after the last, value."""
Mark = tuple[int, int, int, int]
"""First place, place after the last, kind, index of the message or -1. A later one is over those before it."""


@public
class Kind(IntEnum):
    """What one id of a sample is. The answer's kinds are those that `Message.regions` tells, with the parts of a call
    apart: `CALL` is its name or id, `ARGUMENT` its arguments."""

    MARKUP = 0
    SYSTEM = 1
    USER = 2
    RESULT = 3
    ANSWER_MARKUP = 4
    REASONING = 5
    CONTENT = 6
    CALL = 7
    ARGUMENT = 8
    STOP = 9
    PADDING = 10


_COLUMNS: Mapping[str, tuple[str, float]] = {
    "ids": ("q", 0),
    "loss_mask": ("b", 0),
    "kinds": ("b", Kind.PADDING),
    "message_indices": ("i", -1),
    "logprobs": ("d", nan),
    "versions": ("q", -1),
}
"""The columns of each sample: the type of their numbers, and the number in padding. Logprobs and versions have it for
each id until some are given."""


@public
class Sample(Shown):
    """Ids for training or scoring, with their loss mask. Made by `Chat.encode` and `Rollout.samples`.

    ``truncated``: the last answer was cut off by length. ``left_out``: the place of each answer that is context only,
    and why it is not counted. Two words name answers that count in another way than they were given: ``thinking-off``,
    without the thought, for which the prompts do not ask; ``thought-as-text``, with a thought in the text, as the model
    has no other place for it. ``text``: the text that the ids spell. ``unit``: ``"token"``, or ``"character"`` if the
    chat has no tokenizer; then the ids are code points. ``placeholders``: where the template put images and other parts
    that are no text; an engine puts their own ids there.
    """

    __slots__ = ("_columns", "_marks", "left_out", "placeholders", "text", "truncated", "unit")

    def __init__(
        self,
        ids: Sequence[int],
        counted: Sequence[Span] = (),
        marks: Sequence[Mark] | Callable[[], Sequence[Mark]] = (),
        *,
        logprobs: Sequence[float] | None = None,
        versions: Sequence[int] | None = None,
        text: str = "",
        truncated: bool = False,
        left_out: Mapping[int, str] | None = None,
        unit: str = "token",
        placeholders: Iterable[Placeholder] = (),
    ) -> None:
        """``counted``: the runs of ids that a loss counts. ``marks``: what the ids are, or a function that finds it."""
        self.placeholders = list(placeholders)
        self._columns: dict[str, array[Any] | list[Any]] = {"ids": array("q", ids)}
        self._columns["loss_mask"] = _filled("b", len(self), 0, ((start, end, 1) for start, end in counted))
        self._marks = marks
        for name, values in (("logprobs", logprobs), ("versions", versions)):
            if values is not None:
                self._columns[name] = array(_COLUMNS[name][0], values)
        self.text, self.truncated, self.unit = text, truncated, unit
        self.left_out: dict[int, str] = dict(left_out or {})

    # the columns

    @property
    def ids(self) -> list[int]:
        """The ids of the whole conversation."""
        return self.column("ids")

    @property
    def input_ids(self) -> list[int]:
        """`ids`, by the name that trainers give them.

        >>> sample = chat.encode(messages + [{"role": "assistant", "content": "Yes."}])
        >>> sample.input_ids == sample.ids
        True
        """
        return self.ids

    @property
    def loss_mask(self) -> list[int]:
        """1 for each id that a loss counts, 0 for all others."""
        return self.column("loss_mask")

    @property
    def kinds(self) -> list[int]:
        """The `Kind` of each id, as a number."""
        return self.column("kinds")

    @property
    def message_indices(self) -> list[int]:
        """The place of the message whose text an id holds; -1 for the markup between messages."""
        return self.column("message_indices")

    @property
    def logprobs(self) -> list[float]:
        """The logprob of each id under the model that sampled it; nan where none was given."""
        return self.column("logprobs")

    @property
    def versions(self) -> list[int]:
        """The version of the weights that sampled each id, as `Rollout.sampled` was told; -1 where none was given."""
        return self.column("versions")

    @property
    def counted(self) -> int:
        """How many ids a loss counts."""
        return self._named("loss_mask").count(1)

    @property
    def prompt_length(self) -> int:
        """How many ids come before the first that a loss counts; all, if none is counted."""
        return self._named("loss_mask").index(1) if self.counted else len(self)

    def with_columns(self, **columns: Any) -> Sample:
        """The sample with more values of each id, which padding, cutting, packing and rows keep.

        ``columns``: by name, a number for all ids, a number for each (``advantages``, ``rewards``,
        ``reference_logprobs``, ``weights``: 0.0 in padding), or any other object for each (``routed_experts``: None in
        padding). Raises `RequestError` for another length, and for the name of a column that each sample has.

        >>> sample = chat.encode([*messages, {"role": "assistant", "content": "Yes."}]).with_columns(advantages=0.5)
        >>> sample.column("advantages")[0], sample.padded(len(sample) + 1).column("advantages")[-1]
        (0.5, 0.0)
        """
        other = self._cut(0, len(self))
        other.text = self.text
        for name, values in columns.items():
            if name in _COLUMNS or name in ROW:
                raise RequestError(f"with_columns: each sample has {name} already; take another name")
            values = [values] * len(self) if isinstance(values, (int, float)) else list(values)
            if len(values) != len(self):
                raise RequestError(
                    f"with_columns: {name}: expected {len(self)} values, one for each id, found {len(values)}"
                )
            numbers = all(isinstance(value, (int, float)) for value in values)
            other._columns[name] = array("d", values) if numbers else values
        return other

    @property
    def added(self) -> list[str]:
        """The names of the columns that `with_columns` added."""
        return [name for name in self._columns if name not in _COLUMNS]

    def column(self, name: str) -> list[Any]:
        """A column by its name, also one that `with_columns` added. Raises `RequestError` for another name.

        >>> chat.encode(messages).column("loss_mask") == chat.encode(messages).loss_mask
        True
        """
        found = self._named(name)
        return found.tolist() if isinstance(found, array) else list(found)

    def labels(self, ignore: int = -100) -> list[int]:
        """The ids as labels: ``ignore`` where no loss is counted. A model's own loss shifts them by one.

        >>> sample = chat.encode([*messages, {"role": "assistant", "content": "Yes."}])
        >>> sum(label != -100 for label in sample.labels()) == sample.counted
        True
        """
        return [id if mask else ignore for id, mask in zip(self.ids, self.loss_mask, strict=True)]

    def numpy(self, column: str = "ids") -> Any:
        """A column as an array of numpy that shares its memory: no copy is made, and none must be changed.

        ``column``: ``ids``, ``loss_mask``, ``kinds``, ``message_indices``, ``logprobs``, ``versions``, or one that
        `with_columns` added; or ``labels``, which are made. Raises `RequestError` for another name, and ImportError
        without numpy.

        >>> sample = chat.encode([*messages, {"role": "assistant", "content": "Yes."}])
        >>> int(sample.numpy("loss_mask").sum()) == sample.counted
        True
        """
        import numpy  # type: ignore[import-not-found,unused-ignore]  # of the caller, who asked for its arrays

        if column == "labels":
            return numpy.array(self.labels(), dtype=numpy.int64)
        found = self._named(column)
        if isinstance(found, array):
            return numpy.frombuffer(found, dtype=numpy.dtype(found.typecode))
        return numpy.array(found, dtype=object)

    def _named(self, name: str) -> array[Any] | list[Any]:
        if name in ("kinds", "message_indices") and name not in self._columns:
            marks = self._marks() if callable(self._marks) else self._marks
            kinds = ((start, end, kind) for start, end, kind, _ in marks)
            self._columns["kinds"] = _filled("b", len(self), int(Kind.MARKUP), kinds)
            messages = ((start, end, message) for start, end, _, message in marks)
            self._columns["message_indices"] = _filled("i", len(self), -1, messages)
            self._marks = ()
        found = self._columns.get(name)
        if found is None and name not in _COLUMNS:
            names = (*_COLUMNS, *self.added)
            raise RequestError(f"column: expected one of {', '.join(names)}, found {name!r}")
        return _padding(name, len(self)) if found is None else found

    # parts

    def __len__(self) -> int:
        return len(self._columns["ids"])

    def __getitem__(self, message: int | slice) -> Sample:
        """The part of one message, or of a slice of messages, from its first id to its last. Raises IndexError if no id
        holds text of them."""
        indices = self._named("message_indices")
        top = max(indices, default=-1) + 1
        chosen = message if isinstance(message, slice) else slice(message, message + 1 or None)
        wanted = set(range(top)[chosen])
        places = [place for place, index in enumerate(indices) if index in wanted]
        if not places:
            raise IndexError(f"sample: no id holds text of message {message}; there are {top} messages")
        return self._cut(places[0], places[-1] + 1)

    __iter__ = None

    def _cut(self, start: int, end: int) -> Sample:
        inner = (one for one in self.placeholders if start <= one.start and one.end <= end)
        moved = [one._replace(start=one.start - start, end=one.end - start) for one in inner]
        other = Sample((), left_out=self.left_out, unit=self.unit, placeholders=moved)
        self._named("kinds")  # they are found for the whole
        other._columns = {name: values[start:end] for name, values in self._columns.items()}
        other.truncated = self.truncated and end == len(self)
        return other

    def shortened(self, length: int, side: Literal["left", "right"] = "right") -> Sample:
        """The sample with ``length`` ids at most: without those at its end, or at its beginning with ``"left"``.

        >>> sample = chat.encode(messages)
        >>> sample.shortened(3, "left").ids == sample.ids[-3:]
        True
        """
        missing = max(0, len(self) - length)
        other = self._cut(missing, len(self)) if side == "left" else self._cut(0, len(self) - missing)
        other.truncated = other.truncated or bool(missing)
        return other

    def answers(self) -> list[Sample]:
        """A sample for each answer that counts: the ids up to its end, of which it alone counts.

        >>> sample = chat.encode([*messages, {"role": "assistant", "content": "Yes."}])
        >>> [one.counted for one in sample.answers()] == [sample.counted]
        True
        """
        spans: list[tuple[int, int]] = []
        parted = True  # by markup or words that are no answer's, since the last counted id
        for place, (kind, mask) in enumerate(zip(self.kinds, self.loss_mask, strict=True)):
            if mask:
                spans.append((place if parted else spans.pop()[0], place + 1))
            parted = not mask and (parted or not Kind.ANSWER_MARKUP <= kind <= Kind.STOP)
        found = []
        for start, end in spans:
            one = self._cut(0, end)
            one._columns["loss_mask"][:start] = array("b", bytes(start))
            found.append(one)
        return found

    def padded(self, length: int, id: int = 0, side: Literal["left", "right"] = "right") -> Sample:
        """The sample with ``id`` after it (before it, with ``"left"``) up to ``length`` ids, of the kind `PADDING`.
        Raises `RequestError` if the sample is longer.

        >>> sample = chat.encode(messages)
        >>> padded = sample.padded(len(sample) + 2)
        >>> padded.ids[-2:], padded.loss_mask[-2:]
        ([0, 0], [0, 0])
        """
        missing = length - len(self)
        if missing < 0:
            raise RequestError(f"padded: expected a length of at least {len(self)}, found {length}")
        other = self._cut(0, len(self))
        first = missing if side == "left" else 0
        place = 0 if side == "left" else len(self)
        for name, values in other._columns.items():
            if isinstance(values, array):
                values[place:place] = _padding(name, missing)
            else:
                values[place:place] = [None] * missing
        other._columns["ids"][place : place + missing] = array("q", [id]) * missing
        other.placeholders = [
            one._replace(start=one.start + first, end=one.end + first) for one in self.placeholders
        ]
        other.text = self.text
        return other

    # rows

    def to_row(self, **more: Any) -> dict[str, Any]:
        """The sample as a row: the columns of `chatparsers.data.Encode`, with ``logprobs``, ``versions``,
        ``prompt_length`` and what `with_columns` added. ``more``: other fields of the row, such as ``session``. A
        number that is missing is None there, as JSON has no nan.

        >>> row = chat.encode([*messages, {"role": "assistant", "content": "Yes."}]).to_row(session="a")
        >>> len(row["input_ids"]) == row["length"], row["session"]
        (True, 'a')
        """
        return {
            "input_ids": self.ids,
            "labels": self.labels(),
            "loss_mask": self.loss_mask,
            "kinds": self.kinds,
            "length": len(self),
            "truncated": self.truncated,
            "left_out": [{"message": at, "why": why} for at, why in self.left_out.items()],
            "logprobs": _without_nan(self.logprobs),
            "versions": self.versions,
            "prompt_length": self.prompt_length,
            **{name: _without_nan(self.column(name)) for name in self.added},
            **more,
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Sample:
        """The sample of a row that `to_row` or `chatparsers.data.Encode` made. Lists that are as long as the ids are
        columns; other fields are not kept, nor are the text, the messages and the placeholders, which no row has.

        Raises `RequestError` for a row without ids, and for a column of another length.

        >>> sample = chat.encode(messages)
        >>> Sample.from_row(sample.to_row()).loss_mask == sample.loss_mask
        True
        """
        ids = row.get("input_ids")
        if ids is None:
            error = row.get("error")
            raise RequestError(f"from_row: expected input_ids, found none{f': {error}' if error else ''}")
        left_out = {one["message"]: one["why"] for one in row.get("left_out") or ()}
        found = cls(ids, truncated=bool(row.get("truncated")), left_out=left_out)
        mask = row.get("loss_mask")
        if mask is None and row.get("labels") is not None:
            mask = [int(label != -100) for label in row["labels"]]
        kinds = row.get("kinds") or None
        probs = row.get("logprobs")
        probs = None if probs is None else [nan if value is None else value for value in probs]
        given = {"loss_mask": mask, "kinds": kinds, "logprobs": probs, "versions": row.get("versions")}
        if kinds is not None:
            given["message_indices"] = [-1] * len(found)
        for name, values in given.items():
            if values is None:
                continue
            if len(values) != len(found):
                raise RequestError(f"from_row: {name}: expected {len(found)} values, found {len(values)}")
            found._columns[name] = array(_COLUMNS[name][0], values)
        if all(map(isnan, found.logprobs)):
            found._columns.pop("logprobs", None)
        own = {*ROW, *_COLUMNS}
        lists = {
            name: values
            for name, values in row.items()
            if isinstance(values, (list, tuple)) and name not in own
        }
        return found.with_columns(
            **{name: _with_nan(one) for name, one in lists.items() if len(one) == len(found)}
        )

    # copies

    def __repr__(self) -> str:
        more = [f"{self.counted} counted"]
        more += [f"{len(self.left_out)} answers left out"] if self.left_out else []
        more += ["truncated"] if self.truncated else []
        return f"<Sample: {len(self)} {self.unit}s, {', '.join(more)}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sample):
            return NotImplemented
        names = (*_COLUMNS, *self.added)
        plain = ("left_out", "placeholders", "text", "truncated", "unit")
        return (
            self.added == other.added
            and all(getattr(self, name) == getattr(other, name) for name in plain)
            # nan is not equal to nan: the bytes of numbers are compared.
            and all(_bytes_of(self._named(name)) == _bytes_of(other._named(name)) for name in names)
        )

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        self._named("kinds")  # what finds them is not sent
        return {name: getattr(self, name) for name in Sample.__slots__ if name != "_marks"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._marks = ()
        for name, value in state.items():
            setattr(self, name, value)


ROW = ("input_ids", "labels", "length", "truncated", "left_out", "error", "prompt_length", "position_ids")
"""Fields of a row that are no columns of a sample, or have another name there."""


def _without_nan(values: Sequence[Any]) -> list[Any]:
    """The values, with None for each that is nan."""
    return [None if value != value else value for value in values]  # nan alone is not itself


def _with_nan(values: Sequence[Any]) -> list[Any]:
    """The values; where they are numbers, with nan for each that is None."""
    given = [value for value in values if value is not None]
    if not given or not all(isinstance(value, (int, float)) for value in given):
        return list(values)
    return [nan if value is None else value for value in values]


def _filled(code: Any, length: int, value: int, runs: Iterable[Run]) -> array[int]:
    """A column of ``value``, with the runs over it."""
    column = array(code, [value]) * length
    for start, end, kind in runs:
        column[start:end] = array(code, [kind]) * (end - start)
    return column


def _padding(name: str, length: int) -> array[Any]:
    """What a column of numbers has in padding."""
    code, value = _COLUMNS.get(name, ("d", 0.0))
    whole = array(code, [value if code == "d" else int(value)])
    return whole * length


def _bytes_of(values: array[Any] | list[Any]) -> bytes | list[Any]:
    return values.tobytes() if isinstance(values, array) else values
