"""Encodes a column of conversations as training samples."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from os import PathLike
from typing import Any, Literal, get_args

from ..chat.chat import Chat
from ..chat.options import Thinking
from ..chat.sample import Sample
from ..errors import ChatParsersError
from .arrow import pyarrow as pa
from .cached_tokenizer import CachedTokenizer
from .columns import added, as_table, message_lists
from .render import Tools
from .rows import Model, Source, said_once, source_of

OnLong = Literal["cut", "cut-left", "drop", "error"]
_IGNORED = -100
_LEFT_OUT = pa.list_(pa.struct([("message", pa.int32()), ("why", pa.string())]))


class Encode:
    """Adds each conversation as a sample: ``input_ids``, ``labels``, ``loss_mask``, ``kinds``, ``length``,
    ``truncated``, ``left_out`` and ``error``.

    ``model``: a model's files with a tokenizer, or a format's name with ``tokenizer``. ``messages``, ``tools``: as in
    `Render`. ``max_length``: the most ids of a sample. ``on_long``: what becomes of a longer one: ``"cut"`` keeps its
    beginning, ``"cut-left"`` its end (``truncated`` is true), ``"drop"`` leaves the row out, ``"error"`` gives it an
    ``error``. ``drop_empty`` leaves out rows of which a loss counts no id. ``train_on`` (``"all"`` answers or the
    ``"last"``), ``reasoning``, ``rewritten``, ``final_stop``, ``thinking``, ``effort`` and ``template_kwargs``: as in
    `Chat.encode`. ``now``: the time that a template writes; by default that at which this was made, for all rows.
    ``left_out``: as in `Sample`. ``kinds=False`` leaves the column of kinds empty,
    which saves a third of the time. A row that cannot be encoded has an ``error``. Packing is left to the trainer.

    ``as_sampled``: as in `Chat.encode`. A conversation may then become several rows, which ``sample`` numbers from 0
    on. Calling it raises `LoadError` if the model cannot be loaded, and `RequestError` if it has no
    tokenizer.
    """

    def __init__(
        self,
        model: Model,
        *,
        messages: str = "messages",
        tools: str | Iterable[Mapping[str, Any]] | None = "tools",
        max_length: int | None = None,
        on_long: OnLong = "cut",
        drop_empty: bool = False,
        train_on: Literal["all", "last"] = "all",
        reasoning: bool = True,
        rewritten: bool = False,
        final_stop: bool = True,
        as_sampled: bool = False,
        kinds: bool = True,
        thinking: Thinking | None = None,
        effort: str | None = None,
        template_kwargs: Mapping[str, Any] | None = None,
        tokenizer: str | PathLike[str] | None = None,
        now: datetime | None = None,
    ) -> None:
        if max_length is not None and max_length < 1:
            raise ValueError(f"max_length: expected a number of ids above 0, found {max_length}")
        self.source = source_of(model, tokenizer=tokenizer, thinking=thinking, effort=effort)
        self.messages = messages
        self.tools = Tools(tools)
        if on_long not in get_args(OnLong):
            raise ValueError(f"on_long: expected one of {', '.join(get_args(OnLong))}, found {on_long!r}")
        self.max_length = max_length
        self.on_long = on_long
        self.drop_empty = drop_empty
        self.kinds = kinds
        self.options: dict[str, Any] = {
            "train_on": train_on,
            "reasoning": reasoning,
            "rewritten": rewritten,
            "final_stop": final_stop,
            "as_sampled": as_sampled,
            "thinking": thinking,
            "effort": effort,
            "template_kwargs": dict(template_kwargs) if template_kwargs else None,
            "now": now or datetime.now(),
            "id_seed": "",
        }

    def __call__(self, table: Any) -> Any:
        """The table with the columns of the samples."""
        table = as_table(table)
        _encoding(self.source)  # a model that cannot be loaded raises here
        samples: list[Sample | None] = []
        errors: list[str | None] = []
        rows_of: list[int] = []
        numbers: list[int] = []
        with said_once():
            rows = zip(message_lists(table, self.messages), self.tools.texts(table), strict=True)
            for row, (messages, (tools, wrong)) in enumerate(rows):
                found = self.samples(wrong or messages, tools)
                made = [(None, found)] if isinstance(found, str) else map(self.fitted, found)
                for number, (sample, error) in enumerate(made):
                    if sample is None and error is None:
                        continue
                    samples.append(sample)
                    errors.append(error)
                    rows_of.append(row)
                    numbers.append(number)
        if rows_of != list(range(table.num_rows)):
            table = table.take(pa.array(rows_of, pa.int64()))
        if self.options["as_sampled"]:
            table = added(table, {"sample": (pa.int32(), numbers)})
        return sample_columns(table, samples, errors, kinds=self.kinds)

    def fitted(self, sample: Sample) -> tuple[Sample | None, str | None]:
        """The sample as long as it may be, or why there is none; two None: the row is left out."""
        most = len(sample) if self.max_length is None else self.max_length
        if len(sample) > most:
            if self.on_long == "drop":
                return None, None
            if self.on_long == "error":
                return None, f"expected at most {most} ids, found {len(sample)} (on_long)"
            sample = sample.shortened(most, "left" if self.on_long == "cut-left" else "right")
        return (None, None) if self.drop_empty and not sample.counted else (sample, None)

    def samples(self, messages: list[dict[str, Any]] | str, tools: str | None) -> list[Sample] | str:
        """The samples of one conversation; or, as text, why there are none."""
        if isinstance(messages, str):
            return messages
        try:
            chat = _encoding(self.source)
            found: Sample | list[Sample] = chat.encode(messages, tools=self.tools.read(tools), **self.options)
            if isinstance(found, Sample):
                return [found]
            return found or "no answer can be counted: the format writes none of them so that it is read back"
        except ChatParsersError as error:
            return str(error)


@lru_cache(maxsize=16)
def _encoding(source: Source) -> Chat:
    """A chat with a tokenizer that keeps what rows share."""
    return source.open().encoding(CachedTokenizer)


def sample_columns(
    table: Any,
    samples: Sequence[Sample | None],
    errors: Sequence[str | None],
    *,
    kinds: bool = True,
) -> Any:
    """The table with the columns of samples; null where a row has none."""
    offsets, ids, mask, kind = array("i", [0]), array("i"), array("b"), array("b")
    lengths: list[int | None] = []
    truncated: list[bool | None] = []
    left_out: list[list[dict[str, Any]] | None] = []
    for sample in samples:
        if sample is None:
            lengths.append(None)
            truncated.append(None)
            left_out.append(None)
        else:
            ids.extend(sample.ids)
            mask.extend(sample.loss_mask)
            kind.extend(sample.kinds if kinds else ())
            lengths.append(len(sample))
            truncated.append(sample.truncated)
            left_out.append([{"message": at, "why": why} for at, why in sample.left_out.items()])
        offsets.append(len(ids))
    absent = pa.array([sample is None for sample in samples], pa.bool_())
    flat_ids, flat_mask = _numbers(ids, pa.int32()), _numbers(mask, pa.int8())
    labels = pa.compute.if_else(flat_mask.cast(pa.bool_()), flat_ids, pa.scalar(_IGNORED, pa.int32()))

    def lists(values: Any) -> Any:
        kind_of = pa.list_(values.type)
        return pa.ListArray.from_arrays(_numbers(offsets, pa.int32()), values, type=kind_of, mask=absent)

    none = pa.nulls(len(samples), pa.list_(pa.int8()))
    return added(
        table,
        {
            "input_ids": (pa.list_(pa.int32()), lists(flat_ids)),
            "labels": (pa.list_(pa.int32()), lists(labels)),
            "loss_mask": (pa.list_(pa.int8()), lists(flat_mask)),
            "kinds": (pa.list_(pa.int8()), lists(_numbers(kind, pa.int8())) if kinds else none),
            "length": (pa.int32(), lengths),
            "truncated": (pa.bool_(), truncated),
            "left_out": (_LEFT_OUT, left_out),
            "error": (pa.string(), errors),
        },
    )


def _numbers(values: array[int], kind: Any) -> Any:
    """The array's memory as an Arrow array."""
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values.tobytes())])
