"""``parse``: messages and events, from files, standard input and token ids."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import Run, put, refused

CALL = 'Hm.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Ærø \\u2713"}}\n</tool_call>'
CODER = (
    "A day.\n</think>\n\nYes.\n\n<tool_call>\n<function=get_weather>\n<parameter=city>\nOslo\n</parameter>\n"
    "</function>\n</tool_call>"
)


@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_events_as_json_lines(run: Run, tools: Path, pieces: int) -> None:
    ran = run(
        "parse",
        "--format",
        "qwen3-coder",
        "--prefix",
        "<think>\n",
        "--tools",
        tools,
        "--stream",
        "--pieces",
        pieces,
        stdin=CODER,
    )
    assert ran.status == 0
    *events, last = ran.records()
    joined: dict[str, str] = {}
    for event in events:
        joined[event["event"]] = joined.get(event["event"], "") + event.get("text", "")
    assert set(joined) == {"reasoning", "content", "call_start", "call_arguments", "call_end"}
    assert last["event"] == "message"
    message = last["message"]
    assert (
        (joined["reasoning"], joined["content"])
        == (message["reasoning"], message["content"])
        == ("A day.", "Yes.")
    )
    assert joined["call_arguments"] == message["tool_calls"][0]["arguments"] == '{"city": "Oslo"}'
    starts = [event for event in events if event["event"] == "call_start"]
    assert [(event["index"], event["name"]) for event in starts] == [(0, "get_weather")]
    assert events[-1] == {
        "event": "call_end",
        "index": 0,
        "id": message["tool_calls"][0]["id"],
        "complete": True,
    }


def test_events_come_while_the_input_is_still_open() -> None:
    command = [sys.executable, "-m", "chatparsers", "parse", "--format", "hermes-2-pro", "--stream"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        seen = []
        for piece in (b"Hello", b" \xe2\x82", b"\xac you"):
            process.stdin.write(piece)
            process.stdin.flush()
            seen.append(json.loads(process.stdout.readline()))
        process.stdin.close()
        last = json.loads(process.stdout.readlines()[-1])
    assert process.returncode == 0
    assert [event["event"] for event in seen] == ["content"] * 3
    assert "".join(event["text"] for event in seen).startswith("Hello € you"[:8])
    assert last["message"]["content"] == "Hello € you"


def test_token_ids(run: Run, tools: Path, tmp_path: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    vocabulary = {"<unk>": 0, "Hm.": 1, '{"name":': 2, '"get_weather",': 3, '"arguments":': 4, "{}}": 5}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.add_special_tokens(["<tool_call>", "</tool_call>"])
    file = tmp_path / "tokenizer.json"
    tokenizer.save(str(file))
    begin, end = (tokenizer.token_to_id(token) for token in ("<tool_call>", "</tool_call>"))
    ids = [1, begin, 2, 3, 4, 5, end]
    options = ("parse", "--format", "hermes-2-pro", "--tools", tools, "--ids", "--tokenizer", file)
    message = run(*options, stdin=json.dumps(ids)).json()
    assert message["content"] == "Hm." and message["tool_calls"][0]["name"] == "get_weather"
    assert message["regions"][-1]["token_end"] == len(ids)
    assert run(*options, stdin=" ".join(map(str, ids))).json() == message
    streamed = run(*options, "--stream", stdin=json.dumps(ids)).records()
    assert streamed[-1]["message"] == message and len(streamed) > 3
    for wrong, word in (
        ("[1, -2]", "found -2 at place 1"),
        ("1 two", "two"),
        ("[[1]]", "[1]"),
        ("[1", "JSON"),
    ):
        refused(run(*options, stdin=wrong), "standard input: expected token ids", word)
    refused(run("parse", "--format", "hermes-2-pro", "--ids", stdin="[1]"), "--tokenizer")
    refused(run("parse", "--format", "hermes-2-pro", "--tokenizer", file, stdin="x"), "--ids")
    refused(
        run("parse", "--format", "hermes-2-pro", "--ids", "--tokenizer", tools, stdin="[1]"), "tools.json"
    )


@pytest.mark.parametrize("stream", [[], ["--stream"]])
def test_rubbish_is_refused(run: Run, spawn: Run, stream: list[str]) -> None:
    rubbish = bytes(range(256)) * 3
    for ran in (run, spawn):
        line = refused(
            ran("parse", "--format", "generic", *stream[:0], stdin=rubbish), "standard input", "UTF-8"
        )
        assert line.isprintable()
    if stream:
        ran_ = spawn("parse", "--format", "generic", "--stream", stdin=b"\xff" + rubbish)
        refused(ran_, "standard input: expected UTF-8 text, found 0xff")


def test_a_closed_pipe_says_nothing(tools: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "chatparsers", "parse", "--format", "hermes-2-pro", "--stream"]
    done = subprocess.run(command, input=b"Hello " * 50_000, stdout=write, stderr=subprocess.PIPE, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


def test_json_lines(run: Run, tools: Path, tmp_path: Path) -> None:
    lines = [json.dumps(CALL), json.dumps({"output": "Hi\u2028there", "n": 1}), "", json.dumps(CALL[:-20])]
    file = put(tmp_path / "outputs.jsonl", "\n".join(lines))
    ran = run("parse", "--format", "hermes-2-pro", "--tools", tools, file)
    messages = [json.loads(line) for line in ran.out.split("\n") if line]
    assert [message["content"] for message in messages] == ["Hm.", "Hi\u2028there", "Hm."]
    assert [len(message["tool_calls"]) for message in messages] == [1, 0, 1]
    assert ran.err.startswith("chatparsers: line 4: truncated at character ")
    same = run(
        "parse",
        "--format",
        "hermes-2-pro",
        "--tools",
        tools,
        "--jsonl",
        "--field",
        "output",
        stdin=file.read_text("utf-8"),
    )
    assert same.out == ran.out
    for text, said in (
        ("{", "line 1: expected JSON"),
        ("{}", "with 'output', found none"),
        ("5", "expected a text, found 5"),
    ):
        refused(run("parse", "--format", "hermes-2-pro", "--jsonl", stdin=text), said)
    refused(
        run("parse", "--format", "hermes-2-pro", "--jsonl", "--stream", stdin=""),
        "leave them out with JSON lines",
    )
