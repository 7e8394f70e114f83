"""Each leniency is needed: switched off, it changes at least three real texts, which `mends.json` lists."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import chatparsers
from chatparsers import DefinitionError, Message
from chatparsers.answers.format import Turn
from chatparsers.answers.mends import NAMES
from chatparsers.testing import load_cases
from chatparsers.testing.cases import bound

TESTS = Path(__file__).parents[1]
FROZEN = Path(__file__).with_name("mends.json")
ASKED: dict[str, dict[str, Any]] = {
    "whole_answer": {"lenient": True},
    "fence": {"schema": True, "tools": False},
}
"""What a request must ask for, so that the mend has a part in its answers."""


def texts() -> Iterator[tuple[str, Turn, str]]:
    """The cases of models' outputs, and the outputs of real models; none that was drawn at random."""
    for folder in sorted((TESTS / "needle" / "cases").iterdir()):
        for path, case in load_cases(folder):
            if path.name.startswith("golden-drawn-"):
                continue
            yield (
                f"needle/cases/{folder.name}/{path.name}",
                bound(chatparsers.get_format(folder.name), case),
                case["text"],
            )
    tools = json.loads((TESTS / "outputs" / "tools.json").read_text("utf-8"))
    lines = gzip.decompress((TESTS / "outputs" / "outputs.jsonl.gz").read_bytes()).splitlines()
    for number, line in enumerate(lines):
        row = json.loads(line)
        turn = chatparsers.get_format(row["format"]).bind(tools=tools[row["tools"]], prefix=row["prefix"])
        yield f"outputs/{number}", turn, row["text"]


def said(message: Message) -> tuple[object, ...]:
    calls = [(call.name, call.arguments, call.complete) for call in message.tool_calls]
    return message.content, message.reasoning, calls, message.complete


def changes(mend: str, turn: Turn, text: str) -> bool:
    """Whether the message changes if the mend is switched off."""
    asked = turn._replace(options=turn.options._replace(**ASKED.get(mend, {})))
    others = tuple(name for name in NAMES if name != mend)
    without = asked._replace(format=replace(turn.format, mends=others))
    return said(asked.parse(text, regions=False)) != said(without.parse(text, regions=False))


def test_each_mend_changes_the_texts_that_are_listed(request: pytest.FixtureRequest) -> None:
    """``--update-goldens`` looks for the first of them anew, in all texts."""
    if request.config.getoption("--update-goldens"):
        found: dict[str, list[Any]] = {
            name: [entry for entry in entries if isinstance(entry, dict)]
            for name, entries in json.loads(FROZEN.read_text("utf-8")).items()
        } | {name: [] for name in NAMES if not FROZEN.exists()}
        for key, turn, text in texts():
            for name in NAMES:
                entries = found.setdefault(name, [])
                if len(entries) < 3 and changes(name, turn, text):
                    entries.append(key)
        FROZEN.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", "utf-8")
    frozen = json.loads(FROZEN.read_text("utf-8"))
    assert sorted(frozen) == sorted(NAMES)
    wanted = {entry for entries in frozen.values() for entry in entries if isinstance(entry, str)}
    known = {key: (turn, text) for key, turn, text in texts() if key in wanted}
    for name, entries in frozen.items():
        assert len(entries) >= 3, f"{name} changes too little: take it out"
        for entry in entries:
            if isinstance(entry, dict):
                turn = chatparsers.get_format(entry["format"]).bind(tools=entry["tools"])
                assert changes(name, turn, entry["text"]), (name, entry)
            else:
                assert changes(name, *known[entry]), (name, entry)


ANY_ORDER_ALONE = {"apriel-1-5", "apriel-1-6", "internlm2", "smi"}
"""Their definitions parse a call by its members in any order alone, so they need that mend to read their own."""


def test_a_format_without_mends_reads_what_it_writes(format: chatparsers.Format) -> None:
    if not format.features.tools:
        return
    tool = {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
    call = {
        "id": "call00001",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"city": "Oslo"}'},
    }
    text = format.render({"role": "assistant", "content": "", "tool_calls": [call]}, [tool])
    needed = ("any_order",) if format.name in ANY_ORDER_ALONE else ()
    strict = replace(format, mends=needed).bind(tools=[tool], id_seed="").parse(text)
    assert said(strict) == said(format.bind(tools=[tool], id_seed="").parse(text))
    assert [call.name for call in strict.tool_calls] == ["get_weather"]


def test_a_mend_that_is_none_is_named() -> None:
    with pytest.raises(DefinitionError, match="mends: there is no 'fences': did you mean fence"):
        replace(chatparsers.get_format("qwen3"), mends=("fences",))
