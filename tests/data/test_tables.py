"""Parse, Render, Normalize and Translate over tables: one promise each, over random rows."""

from __future__ import annotations

import gzip
import json
import pickle
import warnings
from pathlib import Path
from typing import Any

import pytest
from tables import TOOLS, Draw

import chatparsers

pa = pytest.importorskip("pyarrow", reason="the package pyarrow is not installed")

from chatparsers.data import Encode, Normalize, Parse, Render, Translate
from chatparsers.templates.builtins import builtin_source

FORMAT = "hermes-2-pro"


def outputs(draw: Draw, count: int) -> list[str]:
    """Outputs of a model; some of them broken."""
    format = chatparsers.get_format(FORMAT)
    found = []
    for _ in range(count):
        message = draw.answer()
        message.pop("reasoning_content", None)
        text = format.render(message, TOOLS)
        found.append(text if draw.random.random() < 0.8 else text[: draw.random.randint(0, len(text))])
    return found


def recorded(draw: Draw, count: int) -> Any:
    shared, other = json.dumps(TOOLS), json.dumps(TOOLS[::-1])
    return pa.table(
        {
            "row_id": [str(number) for number in range(count)],
            "output": pa.array([*outputs(draw, count - 1), None], pa.string()),
            "tools": [draw.random.choice([shared, other, None, "[", "[]"]) for _ in range(count)],
        }
    )


def conversations(draw: Draw, count: int) -> Any:
    rows = []
    for number in range(count):
        turns = [{"role": "system", "content": draw.text()}, {"role": "user", "content": draw.text()}]
        answer = draw.answer()
        turns.append(answer)
        turns += [
            {"role": "tool", "tool_call_id": call["id"], "content": draw.text()}
            for call in answer.get("tool_calls", ())
        ]
        rows.append({"row_id": str(number), "messages": turns, "tools": json.dumps(TOOLS), "source": "x"})
    return pa.Table.from_pylist(rows)


CALLABLES = [
    (Parse(FORMAT), recorded),
    (Parse("qwen3", tools=TOOLS), recorded),
    (Render(FORMAT), conversations),
    (Normalize(), conversations),
    (Normalize(wire="none", shape="openai"), conversations),
    (Translate(to="olmo-3"), conversations),
]


@pytest.mark.parametrize(("run", "rows"), CALLABLES, ids=lambda value: type(value).__name__)
def test_batches_of_any_size_and_every_kind_of_text_give_the_same(run: Any, rows: Any, draw: Draw) -> None:
    table = rows(draw, 24)
    whole = run(table)
    assert whole.num_rows == table.num_rows
    assert run(table.slice(0, 0)).schema == whole.schema
    again = pickle.loads(pickle.dumps(run))
    parts = [again(table.slice(start, 7)) for start in range(0, 24, 7)]
    assert pa.concat_tables(parts).to_pylist() == whole.to_pylist()
    assert run(table.combine_chunks().to_batches()[0]).to_pylist() == whole.to_pylist()
    for kind in (pa.large_string(), pa.string_view()):
        fields = [field.with_type(kind) if field.type == pa.string() else field for field in table.schema]
        assert run(table.cast(pa.schema(fields))).to_pylist() == whole.to_pylist()


def test_parse_is_the_turns_own_reading_and_parse_many_the_same(
    draw: Draw, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = recorded(draw, 60)
    read = Parse(FORMAT)(table).to_pylist()
    monkeypatch.setattr("chatparsers.data.columns._SLICE", 7)
    assert Parse(FORMAT)(table).to_pylist() == read
    names = ("content", "reasoning", "tool_calls", "complete", "diagnostics", "error")
    many = chatparsers.parse_many(table.to_pylist(), FORMAT)
    assert [{name: row[name] for name in names} for row in read] == many
    format, calls = chatparsers.get_format(FORMAT), 0
    for row in read:
        if row["error"] is not None:
            assert row["output"] is None or row["tools"] == "["
            continue
        tools = json.loads(row["tools"]) if row["tools"] else None
        message = format.bind(tools=tools, id_seed=row["row_id"]).parse(row["output"])
        assert (row["content"], row["complete"]) == (message.content, message.complete)
        assert [tuple(call.values()) for call in row["tool_calls"]] == [
            (call.id, call.name, call.arguments) for call in message.tool_calls
        ]
        assert [d["code"] for d in row["diagnostics"]] == [d.code for d in message.diagnostics]
        calls += len(message.tool_calls)
    assert calls > 20


def test_a_column_names_the_model_of_each_row() -> None:
    table = pa.table(
        {
            "output": ["[TOOL_CALLS][]", "[now()]", "x", "x"],
            "tools": [json.dumps(TOOLS)] * 4,
            "by": ["mistral-nemo", "pythonic", None, "no-such-model"],
        }
    )
    read = Parse("qwen3", model_column="by")(table).to_pylist()
    assert [call["name"] for call in read[1]["tool_calls"]] == ["now"]
    assert read[2]["content"] == "x" and read[2]["error"] is None
    assert "no-such-model" in read[3]["error"]


def test_a_row_opens_no_file_unless_the_caller_says_so(tmp_path: Path) -> None:
    template = tmp_path / "mine.jinja"
    template.write_text(builtin_source("hermes-2-pro"), encoding="utf-8")
    table = pa.table({"output": ["x"], "by": [str(template)]})
    refused, opened, own = (
        parse(table).to_pylist()[0]["error"]
        for parse in (
            Parse("qwen3", model_column="by"),
            Parse("qwen3", model_column="by", model_paths=True),
            Parse(str(template), model_column="by"),
        )
    )
    assert "model_paths=True" in refused and opened is own is None


def test_a_column_of_the_same_name_is_kept() -> None:
    read = Parse(FORMAT)(pa.table({"output": ["Hi"], "content": ["before"], "input_content": [1]}))
    row = read.to_pylist()[0]
    assert (row["content"], row["input_input_content"]) == ("Hi", "before")


def test_a_column_that_holds_no_outputs_and_a_loaded_tokenizer_are_refused() -> None:
    twice = pa.Table.from_arrays([pa.array(["Hi"]), pa.array(["Ho"])], names=["output", "output"])
    for table, what in (
        (pa.table({"output": [3]}), "found int64"),
        (pa.table({"output": [b"Hi"]}), "found binary"),
        (twice, "several columns 'output'"),
    ):
        with pytest.raises(chatparsers.RequestError, match=what):
            Parse(FORMAT)(table)
    assert Parse(FORMAT)(pa.table({"output": pa.array(["Hi"]).dictionary_encode()}))[
        "content"
    ].to_pylist() == ["Hi"]
    with pytest.raises(chatparsers.RequestError, match=r"tokenizer: expected a path, .*, found object"):
        Encode("qwen3", tokenizer=object())  # type: ignore[arg-type]


def test_what_is_normal_stays_as_it_is(draw: Draw) -> None:
    table = conversations(draw, 40)
    once = Normalize(wire="none")(table)
    for row, before in zip(once.to_pylist(), table.to_pylist(), strict=True):
        assert row["error"] is None and json.loads(row["tools"]) == TOOLS
        assert json.loads(row["extra"]) == {"source": "x"}
        for message, given in zip(row["messages"], before["messages"], strict=True):
            for key, value in given.items():
                if value is not None:
                    assert message[key] == value, key
    assert Normalize(wire="none")(once.drop_columns(["extra"])).select(["messages", "tools"]).to_pylist() == (
        once.select(["messages", "tools"]).to_pylist()
    )


@pytest.fixture(scope="module")
def model(shared_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model's folder with a real template and a real tokenizer."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "chat_template.jinja").write_bytes(
        (shared_dir / "templates" / "Qwen-Qwen3-0.6B.jinja").read_bytes()
    )
    packed = (shared_dir / "tokenizers" / "qwen3.json.gz").read_bytes()
    (folder / "tokenizer.json").write_bytes(gzip.decompress(packed))
    return str(folder)


def test_encode_is_the_chats_own_encoding(model: str, draw: Draw) -> None:
    table = conversations(draw, 24)
    run = pickle.loads(pickle.dumps(Encode(model, max_length=150)))
    read, chat = run(table).to_pylist(), chatparsers.load(model)
    for row, before in zip(read, table.to_pylist(), strict=True):
        messages = [{k: v for k, v in m.items() if v is not None} for m in before["messages"]]
        sample = chat.encode(messages, tools=TOOLS, id_seed="")
        assert row["error"] is None
        assert row["length"] == min(150, len(sample)) and row["truncated"] == (len(sample) > 150)
        for name, column in (
            ("input_ids", sample.ids),
            ("labels", sample.labels()),
            ("loss_mask", sample.loss_mask),
            ("kinds", sample.kinds),
        ):
            assert row[name] == column[:150], name
    parts = [run(table.slice(start, 5)) for start in range(0, 24, 5)]
    assert pa.concat_tables(parts).to_pylist() == read
    assert run(table.slice(0, 0)).schema == run(table).schema


def test_encode_as_sampled_makes_rows_of_each_sample(model: str, draw: Draw) -> None:
    """Each row of the table stands once for each sample, with all its columns."""
    table = conversations(draw, 12)
    chat = chatparsers.load(model)
    read = iter(Encode(model, as_sampled=True)(table).to_pylist())
    for before in table.to_pylist():
        messages = [{k: v for k, v in m.items() if v is not None} for m in before["messages"]]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            samples = chat.encode(messages, tools=TOOLS, as_sampled=True)
        for number, sample in enumerate(samples):
            row = next(read)
            assert (row["messages"], row["sample"]) == (before["messages"], number)
            assert (row["input_ids"], row["loss_mask"]) == (sample.ids, sample.loss_mask)
    assert next(read, None) is None


def test_outputs_of_ids_are_read_with_the_models_tokenizer(model: str, draw: Draw) -> None:
    chat = chatparsers.load(model)
    texts = outputs(draw, 20)
    ids = [chat.tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    logged = [[{"id": id, "logprob": -0.5} for id in row] for row in ids]
    read = [
        Parse(model, tools=TOOLS, thinking=False)(pa.table({"output": column})).to_pylist()
        for column in (ids, logged)
    ]
    turn = chat.prepare([{"role": "user", "content": "x"}], tools=TOOLS, thinking=False, id_seed="")
    for row, other, one in zip(*read, ids, strict=True):
        message = turn.parse(one)
        assert row["content"] == other["content"] == message.content
        assert [call["arguments"] for call in row["tool_calls"]] == [c.arguments for c in message.tool_calls]
