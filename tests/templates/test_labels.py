"""The judge of labels: our own samples are never charged, planted faults are named, in every template."""

from __future__ import annotations

import json
import sys
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from planted import (
    CALLED,
    PLAIN,
    ROWS,
    TOOLS,
    encoded,
    planted,
    session_samples,
    tools_of,
    trained_chat,
)

from chatparsers import Chat, ChatParsersError, RequestError, TemplateError
from chatparsers.cli.main import main
from chatparsers.labels.charges import CODES
from chatparsers.labels.judge import Judge

# No message can be found in these texts (tests/templates/test_read_back.py), or no answer of two.
UNREADABLE = {"granite3-guardian_2b", "shieldgemma_27b", "llama-guard3_1b", "hunyuan-a13b"}
# What names a fault where the template shows results as a user's text, or another marker in the place of the stop.
ALIKE = {
    "result-counted": {"user-counted"},
    "result-elsewhere": {"text-lost"},
    "stop-missing": {"stop-not-counted", "words-end-mask"},
}
# Results stand in the answer's turn; the template's own head quotes its markers; the header is a word of the answer.
UNNAMED = {
    *("apertus", "Apertus-8B-Instruct", "gigachat-3", "gigachat-3-1"),
    "CohereForAI-c4ai-command-r7b-12-2024-tool_use",
}


@lru_cache(maxsize=4)
def made_judge(template: Path | str) -> Judge | None:
    """The judge of a template; None if its text marks no roles."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Judge(trained_chat(template))
        except TemplateError:
            return None


def judge_of(template: Path | str) -> tuple[Chat, Judge]:
    judge = made_judge(template)
    if judge is None:
        pytest.skip("its text marks no roles")
    return trained_chat(template), judge


@pytest.mark.one_in(80)
def test_own_samples_are_never_charged(every_template: Path | str) -> None:
    chat, judge = judge_of(every_template)
    for kind, messages in ROWS.items():
        for how in ({}, {"as_sampled": True}):
            try:
                found = encoded(chat, messages, **how)
            except ChatParsersError:
                continue  # the template refuses such a conversation
            for sample in found if isinstance(found, list) else [found]:
                if sample.counted:
                    charges = judge.judge(sample.ids, sample.labels())
                    if not how:
                        charges += judge.judge(sample.ids, sample.labels(), messages, tools_of(messages))
                    assert not charges, (kind, how, [*map(str, charges)])


@pytest.mark.one_in(80)
def test_rows_of_sessions_are_never_charged(every_template: Path | str) -> None:
    chat, judge = judge_of(every_template)
    counted = 0
    for kind, messages in ROWS.items():
        try:
            samples = session_samples(chat, messages)
        except ChatParsersError:
            continue  # the template refuses such a conversation, or its format has no such answer
        for sample in samples:
            counted += sample.counted
            charges = judge.judge(sample.ids, sample.labels())
            assert not charges, (kind, [*map(str, charges)], [charge.witness for charge in charges])
    assert counted


@pytest.mark.one_in(80)
def test_planted_faults_are_named(every_template: Path | str) -> None:
    chat, judge = judge_of(every_template)
    if Path(every_template).stem in UNNAMED | UNREADABLE:
        pytest.skip("cannot be told of this template")
    missed = []
    try:
        for fault in planted(chat):
            found = {
                charge.code for charge in judge.judge(fault.ids, fault.labels, fault.messages, fault.tools)
            }
            named = found & {fault.code, *ALIKE.get(fault.code, ())}
            if not named and fault.code not in judge.untold:
                missed.append((fault.code, found))
    except ChatParsersError:
        pytest.skip("the template refuses such a conversation")
    assert not missed


def qwen() -> Chat:
    return trained_chat("qwen3")


def test_what_a_rollout_sampled_is_never_charged() -> None:
    chat = qwen()
    tokenizer = chat.tokenizer
    assert tokenizer is not None
    rollout = chat.rollout(CALLED[:2], tools=TOOLS)
    wire = '{"name": "find_it", "arguments": {"word": "Oslo"}}'
    said = f"<think>\nHm.\n</think>\n\n<tool_call>\n{wire}\n</tool_call><|im_end|>"
    call = rollout.sampled(tokenizer.encode(said, add_special_tokens=False).ids).tool_calls[0]
    rollout.append({"role": "tool", "tool_call_id": call.id, "content": "Four degrees."})
    rollout.sampled(
        tokenizer.encode("<think>\nSo.\n</think>\n\nIt is.<|im_end|>", add_special_tokens=False).ids
    )
    for sample in rollout.samples():
        assert sample.counted and not chat.judge_labels(sample.ids, sample.labels())
        row = sample.to_row()
        assert not chat.judge_labels(row["input_ids"], row["labels"])


def test_a_charge_marks_what_counts() -> None:
    chat = qwen()
    sample = encoded(chat, PLAIN)
    found = chat.judge_labels(sample.ids, sample.ids)
    assert found[0].code == "header-counted" and found[0].witness.startswith("⟦<|im_start|>system\n")
    assert {charge.code for charge in found} <= CODES.keys()


def test_an_answer_that_is_gone_moves_no_other() -> None:
    chat = qwen()
    sample = encoded(chat, CALLED)
    first = [at for at, index in enumerate(sample.message_indices) if index == 2 and sample.loss_mask[at]]
    kept = [at for at in range(len(sample)) if at not in first]
    ids, labels = [sample.ids[at] for at in kept], [sample.labels()[at] for at in kept]
    found = {charge.code for charge in chat.judge_labels(ids, labels, CALLED, TOOLS)}
    assert "call-lost" in found and not found & {"text-lost", "text-added"}


def test_labels_may_be_shifted_and_padded() -> None:
    chat = qwen()
    sample = encoded(chat, PLAIN)
    ids, labels = sample.ids, sample.labels()
    assert not chat.judge_labels(ids, [*labels[1:], -100])
    pad = [ids[-1]] * 5
    for some, others in (([*ids, *pad], [*labels, *[-100] * 5]), ([*pad, *ids], [*[-100] * 5, *labels])):
        assert not chat.judge_labels(some, others)
    assert [one.code for one in chat.judge_labels([*ids, *pad], [*labels, *pad])] == ["after-stop-counted"]


def test_several_conversations_in_a_row_are_refused() -> None:
    chat = qwen()
    sample = encoded(chat, PLAIN)
    with pytest.raises(RequestError, match="position_ids"):
        chat.judge_labels(sample.ids * 2, sample.labels() * 2)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder."""
    from chatparsers.templates.builtins import builtin_source

    (tmp_path / "chat_template.jinja").write_text(builtin_source("qwen3"), "utf-8")
    tokenizer: Any = qwen().tokenizer
    (tmp_path / "tokenizer.json").write_text(tokenizer.to_str(), "utf-8")
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": "</s>", "bos_token": "<s>"}', "utf-8")
    return tmp_path


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return str(path)


def row_of(messages: list[dict[str, Any]]) -> dict[str, Any]:
    sample = encoded(qwen(), messages)
    return {"input_ids": sample.ids, "labels": sample.labels()}


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["plain", "a call", "two calls", "quoted markers"]
    batch = [row_of(ROWS[name]) for name in names]
    rows = [{"messages": ROWS[name], "tools": tools_of(ROWS[name])} for name in names]
    given = write(folder / "rows.jsonl", rows)
    model = ["--model", str(folder)]
    good = write(folder / "good.jsonl", batch[::-1])
    assert main(["labels", good, *model, "--rows", given]) == 0
    assert "4 conversations: nothing to say" in capsys.readouterr().out
    # a row is gone, another one's stop does not count
    batch[1]["labels"] = [-100 if id == batch[0]["labels"][-2] else id for id in batch[1]["labels"]]
    bad = write(folder / "bad.jsonl", batch[1:])
    assert main(["labels", bad, *model, "--rows", given, "--as", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {
        charge["code"]: (charge["count"], charge["share"], charge["row"]) for charge in found["charges"]
    } == {
        "stop-not-counted": (1, 0.3333, 0),
        "row-lost": (1, 0.25, 0),
    }
    # packed, with what parts it, or without
    packed = {key: [*batch[0][key], *batch[2][key]] for key in batch[0]}
    sizes = [len(batch[0]["input_ids"]), len(batch[2]["input_ids"])]
    for more in (
        {"position_ids": [*range(sizes[0]), *range(sizes[1])]},
        {"segment_ids": [1] * sizes[0] + [2] * sizes[1]},
        {"cu_seqlens": [0, sizes[0], sum(sizes)]},
    ):
        assert main(["labels", write(folder / "packed.jsonl", [{**packed, **more}]), *model]) == 0
    capsys.readouterr()
    broken = [batch[0], {"labels": [1]}, {"input_ids": [1, 2], "labels": [1]}, {"input_ids": [1]}]
    assert main(["labels", write(folder / "broken.jsonl", broken), *model]) == 2
    said = capsys.readouterr().out
    assert "row 1: expected input_ids, found none" in said
    assert "row 2: labels: expected 2 values, one for each id, found 1" in said
    assert "row 3: expected labels, or a mask" in said


def test_masks_and_tables(folder: Path) -> None:
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))

    row = row_of(PLAIN)
    pad = [row["input_ids"][-1]] * 3
    ids = [*row["input_ids"], *pad]
    masked = {
        "input_ids": [ids],
        "loss_mask": [[*(int(label != -100) for label in row["labels"]), 0, 0, 0]],
        "attention_mask": [[1] * len(row["labels"]) + [0] * 3],
    }
    table = pa.table(masked)
    parquet.write_table(table, folder / "batch.parquet")
    with pa.ipc.new_file(folder / "batch.arrow", table.schema) as file:
        file.write_table(table)
    for name in ("batch.parquet", "batch.arrow"):
        assert main(["labels", str(folder / name), "--model", str(folder)]) == 0
