"""Parse, Render, Normalize and Translate over tables: one promise each, over random rows."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from tables import TOOLS, Draw

import chatparsers

pa = pytest.importorskip("pyarrow", reason="the package pyarrow is not installed")

from chatparsers.data import Normalize, Parse, Render, Translate

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


def test_parse_is_the_turns_own_reading_and_parse_many_the_same(draw: Draw) -> None:
    table = recorded(draw, 60)
    read = Parse(FORMAT)(table).to_pylist()
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


def test_a_column_of_the_same_name_is_kept() -> None:
    read = Parse(FORMAT)(pa.table({"output": ["Hi"], "content": ["before"], "input_content": [1]}))
    row = read.to_pylist()[0]
    assert (row["content"], row["input_input_content"]) == ("Hi", "before")


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
