"""Rows for trainers: columns that go along, rows and back, packing, batches, pairs."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import chatparsers
from chatparsers import Collator, Kind, RequestError, Sample, pack
from chatparsers.testing.tiny import tiny_model

numpy = pytest.importorskip("numpy")

FORMATS = ["qwen3", "llama-3-x", "gpt-oss", "deepseek-v3-2", "gemma-4", "mistral-nemo"]
USER = {"role": "user", "content": "Is 7 prime?"}
AGAIN = {"role": "user", "content": "And 8?"}
YES = {"role": "assistant", "content": "Yes, it is."}
NO = {"role": "assistant", "content": "No."}
TALK = [USER, YES, AGAIN, NO]


def encoded(name: str = "qwen3", messages: Any = TALK) -> Sample:
    return chatparsers.load(template=name, tokenizer=tiny_model(name).tokenizer).encode(messages)


@pytest.fixture(scope="module")
def sample() -> Sample:
    found = encoded()
    size = len(found)
    experts = [{"expert": place} for place in range(size)]
    return found.with_columns(advantages=[float(place) for place in range(size)], rewards=2, experts=experts)


def columns(one: Sample) -> dict[str, list[Any]]:
    """All of a sample's columns, by name; nan is not equal to nan, so numbers are texts."""
    names = ["ids", "loss_mask", "kinds", "message_indices", "versions", "logprobs", *one.added]
    found = {name: one.column(name) for name in names}
    return {name: [str(one) if one != one else one for one in values] for name, values in found.items()}


def test_added_columns_go_where_the_ids_go(sample: Sample) -> None:
    size = len(sample)
    for side in ("left", "right"):
        padded = sample.padded(size + 3, 7, side)  # type: ignore[arg-type]
        at = slice(3, None) if side == "left" else slice(0, size)
        assert {name: values[at] for name, values in columns(padded).items()} == columns(sample)
        added = slice(0, 3) if side == "left" else slice(size, None)
        filled = {name: values[added] for name, values in columns(padded).items()}
        assert filled["ids"] == [7] * 3 and filled["kinds"] == [Kind.PADDING] * 3
        assert filled["advantages"] == filled["rewards"] == [0.0] * 3 and filled["experts"] == [None] * 3
    left, right = sample.shortened(5, "left"), sample.shortened(5)
    assert columns(left) == {name: values[-5:] for name, values in columns(sample).items()}
    assert columns(right) == {name: values[:5] for name, values in columns(sample).items()}
    assert left.truncated and right.truncated and not sample.shortened(size).truncated
    part = sample[3]
    assert [place["expert"] for place in part.column("experts")] == part.column("advantages")


@pytest.mark.parametrize("columns", [{"ids": 1}, {"length": 1}, {"advantages": [1.0]}])
def test_a_column_that_cannot_be_added_is_named(sample: Sample, columns: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match=f"with_columns: .*{next(iter(columns))}"):
        sample.with_columns(**columns)


@pytest.mark.parametrize("name", FORMATS)
def test_a_row_is_read_back(name: str) -> None:
    sample = encoded(name).with_columns(
        advantages=0.5,
        experts=[[1, 2]] * len(encoded(name)),
        reference_logprobs=[math.nan, *[-0.5] * (len(encoded(name)) - 1)],
    )
    row = json.loads(json.dumps(sample.to_row(session="a"), allow_nan=False))
    again = Sample.from_row(row)
    kept = {key: values for key, values in columns(sample).items() if key != "message_indices"}
    assert {key: columns(again)[key] for key in kept} == kept
    assert again.left_out == sample.left_out and again.counted == sample.counted > 0
    assert row["prompt_length"] == sample.prompt_length == sample.loss_mask.index(1)
    unknown = Sample.from_row({**row, "logprobs": [None] * len(sample)})  # as plain JSON has it
    assert all(map(math.isnan, unknown.logprobs))
    with pytest.raises(RequestError, match=r"from_row: kinds: expected \d+ values, found 1"):
        Sample.from_row({**row, "kinds": [1]})
    with pytest.raises(RequestError, match="expected input_ids, found none: too long"):
        Sample.from_row({"input_ids": None, "error": "too long"})


@pytest.mark.parametrize("name", FORMATS)
def test_each_answer_is_a_row_of_its_own(name: str) -> None:
    whole = encoded(name)
    parts = whole.answers()
    assert sum(part.counted for part in parts) == whole.counted
    marks = [place for part in parts for place, mask in enumerate(part.loss_mask) if mask]
    assert marks == [place for place, mask in enumerate(whole.loss_mask) if mask]
    assert all(part.ids == whole.ids[: len(part)] and part.loss_mask[-1] for part in parts)
    assert len(parts) == 2 - len(whole.left_out)


def test_packed_rows_hold_every_sample_once() -> None:
    samples = [
        encoded(messages=[USER, {"role": "assistant", "content": "so " * number}]) for number in range(1, 30)
    ]
    most = max(map(len, samples)) + 40
    rows = pack(samples, most)
    assert sorted(map(id, samples)) == sorted(id(one) for row in rows for one in row.samples)
    assert len(rows) < len(samples) and all(len(row) <= most for row in rows)
    for row in rows:
        assert row.position_ids == [place for one in row.samples for place in range(len(one))]
        for number, (start, end) in enumerate(zip(row.cu_seqlens, row.cu_seqlens[1:], strict=False)):
            assert set(row.segment_ids[start:end]) == {number} and row.labels()[start] == -100
            assert row.column("ids")[start:end] == row.samples[number].ids
    assert sum(label != -100 for row in rows for label in row.labels()) == sum(one.counted for one in samples)
    with pytest.raises(RequestError, match="pack: sample 28 has"):
        pack(samples, len(samples[-1]) - 1)


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_batch_holds_rows_samples_and_packed_rows(sample: Sample, side: Any) -> None:
    short = encoded(messages=[USER, YES]).with_columns(advantages=1.0)
    make = Collator(pad_id=9, multiple_of=16, side=side, tensors="numpy")
    batch = make([sample, short])
    again = make([sample.to_row(), short.to_row()])
    assert batch["input_ids"].shape[1] % 16 == 0 and batch["input_ids"].dtype == numpy.int64
    assert (
        sorted(batch) == sorted(again) == ["advantages", "attention_mask", "input_ids", "labels", "loss_mask"]
    )
    for name, values in batch.items():
        assert numpy.array_equal(values, again[name]), name
    for row, one in enumerate((sample, short)):
        held = batch["attention_mask"][row].astype(bool)
        assert batch["input_ids"][row][held].tolist() == one.ids and set(batch["input_ids"][row][~held]) <= {
            9
        }
        assert batch["labels"][row][held].tolist() == one.labels() and set(batch["labels"][row][~held]) <= {
            -100
        }
        assert batch["advantages"][row][held].tolist() == one.column("advantages")
    packed = make(pack([sample, short, short], len(sample)))
    assert {"position_ids", "segment_ids"} < {*packed}
    assert (packed["segment_ids"] == -1).sum() == (packed["attention_mask"] == 0).sum()
    assert "logprobs" in make([Sample([1, 2], [(1, 2)], logprobs=[0.0, -1.0])])


def test_a_pair_counts_what_follows_the_fork() -> None:
    chat = chatparsers.load(template="qwen3", tokenizer=tiny_model("qwen3").tokenizer)
    chosen, rejected = chat.encode_pair(
        [USER, YES, AGAIN], NO, [{"role": "assistant", "content": "Perhaps."}]
    )
    assert chosen.prompt_length == rejected.prompt_length
    assert chosen.ids[: chosen.prompt_length] == rejected.ids[: rejected.prompt_length]
    texts = [
        tiny_model("qwen3").tokenizer.decode(
            [id for id, mask in zip(one.ids, one.loss_mask, strict=True) if mask]
        )
        for one in (chosen, rejected)
    ]
    assert ["No." in texts[0], "Perhaps." in texts[1]] == [True, True] and "Yes" not in "".join(texts)
