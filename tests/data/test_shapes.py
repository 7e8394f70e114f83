"""Rows of datasets, written after their documentation: read as nested columns, as JSON text, and as plain rows."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="the package pyarrow is not installed")

from chatparsers.data import Normalize
from chatparsers.data.shapes.catalog import SHAPES, shape_of
from chatparsers.data.shapes.talk import LOSSES
from chatparsers.serving import read_messages

CASES = json.loads((Path(__file__).parent / "shapes.json").read_text(encoding="utf-8"))


def simple(message: dict[str, Any]) -> dict[str, Any]:
    """A message as the cases have it: without ids, and arguments as values."""
    kept = ("role", "content", "reasoning_content", "name")
    found = {key: message[key] for key in kept if message.get(key) is not None}
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    if calls:
        found["tool_calls"] = [
            {"name": call["name"], "arguments": json.loads(call["arguments"])} for call in calls
        ]
    return found


def linked(messages: list[dict[str, Any]]) -> bool:
    """Whether every result answers a call before it, and no id is there twice."""
    ids = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    return len(set(ids)) == len(ids) and set(results) <= set(ids)


@pytest.mark.filterwarnings("ignore:tools. Python's names of types")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_row_of_a_dataset_becomes_messages(case: dict[str, Any]) -> None:
    row = case["row"]
    shape = shape_of(row)
    assert shape is not None and shape.name == case["shape"]
    as_json = {key: json.dumps(v) if isinstance(v, (list, dict)) else v for key, v in row.items()}
    report = Normalize().explain_rows([row])
    assert report.wire == (case["wire"] or "none") and report.fit == 1.0, report
    for wire in ("auto", report.wire):
        run = Normalize(wire=wire)
        tables = [run(pa.Table.from_pylist([as_json])), run.table(run.talks([dict(row)], ["seed"]))]
        with suppress(pa.ArrowInvalid):  # Arrow has no column of both texts and lists
            tables.append(run(pa.Table.from_pylist([row])))
        for table in tables:
            made = table.to_pylist()[0]
            assert made["error"] is None
            assert [simple(message) for message in made["messages"]] == case["messages"]
            assert linked(made["messages"])
            assert json.loads(made["tools"] or "[]") == case["tools"]
            assert made["losses"] == case["losses"]
            assert sorted(json.loads(made["extra"] or "{}")) == case["extra"]


def test_every_shape_has_a_row_and_every_loss_of_reading_is_seen() -> None:
    special = {"trajectory"}  # what `swe-rebench` has, without its own columns
    assert {shape.name for shape in SHAPES} == {case["shape"] for case in CASES} | special
    assert {code for case in CASES for code in case["losses"]} < set(LOSSES)


def test_what_cannot_be_read_stays_whole_and_has_an_error() -> None:
    call = '<tool_call>\n{"name": "f", "arguments": {"a": oops}}\n</tool_call>'
    rows = [
        {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": call}]},
        {"messages": [{"role": "narrator", "content": "x"}]},
        {"stars": 5},
        {"messages": []},
        {
            "messages": [
                {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{'a': 1}"}}]}
            ]
        },
    ]
    run = Normalize(wire="hermes-2-pro")
    made = run.table(run.talks(rows, [str(number) for number in range(len(rows))])).to_pylist()
    assert made[0]["messages"][1]["content"] == call and "hermes-2-pro" in made[0]["error"]
    assert made[0]["losses"] == ["arguments-not-json"]
    for row, before, word in zip(
        made[1:4],
        rows[1:4],
        (
            "narrator",
            "stars",
            "no",
        ),
        strict=True,
    ):
        assert row["messages"] == [] and json.loads(row["extra"]) == {"row": before}
        assert word in row["error"]
    assert made[4]["messages"][0]["tool_calls"][0]["function"]["arguments"] == "{'a': 1}"
    assert made[4]["losses"] == ["arguments-not-json"] and "f" in made[4]["error"]


def test_rendered_prompts_are_read_with_their_template() -> None:
    from chatparsers.data import Render

    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    table = Render("hermes-2-pro")(pa.table({"messages": [turns], "stars": [5]}))
    made = Normalize(text="text", model="hermes-2-pro")(table.select(["text", "stars"])).to_pylist()[0]
    assert [simple(message) for message in made["messages"]] == turns
    assert json.loads(made["extra"]) == {"stars": 5}


@pytest.mark.parametrize("content", ["No such file", [{"type": "text", "text": "No such file"}], None])
def test_a_failed_result_is_the_same_words_as_at_the_gateway(content: Any) -> None:
    result = {"type": "tool_result", "tool_use_id": "1", "is_error": True, "content": content}
    asked = {"role": "user", "content": "Hi"}
    call = {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]}
    messages = [asked, call, {"role": "user", "content": [result]}]
    row = {"messages": json.dumps(messages)}
    made = Normalize()(pa.Table.from_pylist([row])).to_pylist()[0]["messages"][-1]["content"]
    served = read_messages({"messages": messages, "max_tokens": 1}).messages[-1]["content"]
    words = served if isinstance(served, str) else "".join(part["text"] for part in served)
    assert made == words and words.startswith("Error: ")


def test_a_result_that_no_call_asked_for_is_a_loss() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    asked = [{"role": "user", "content": "U"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    result = {"role": "tool", "tool_call_id": "a", "content": "R"}
    later = [*asked, {"role": "user", "content": "V"}, result]
    rows = {"its own": [*asked, result], "later": later, "twice": [*asked, result, result]}
    rows["of no call"] = [*asked, {**result, "tool_call_id": "z"}]
    table = Normalize()(pa.table({"messages": [json.dumps(row) for row in rows.values()]}))
    found = dict(zip(rows, table["losses"].to_pylist(), strict=True))
    assert found == {"its own": [], "later": [], "twice": ["order"], "of no call": ["order"]}


@pytest.mark.parametrize("text", ["<think>T</think>A", "<think>\nT\n</think>\n\nA", "T\n</think>\n\nA"])
def test_a_thought_in_a_text_is_a_thought(text: str) -> None:
    messages = [{"role": "user", "content": "U"}, {"role": "assistant", "content": text}]
    table = pa.table({"messages": [messages]})
    answer = Normalize()(table)["messages"].to_pylist()[0][1]
    assert (answer["content"], answer["reasoning_content"]) == ("A", "T")
    assert Normalize(wire="none")(table)["messages"].to_pylist()[0][1]["content"] == text
