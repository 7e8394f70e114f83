"""Vectors: texts that go every way through a format's program, and what must be read in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from chatparsers import Format, get_format, list_formats
from chatparsers.cli.main import main
from chatparsers.core.machine.machine import Machine
from chatparsers.streams.start import start
from chatparsers.testing import vectors
from chatparsers.testing.chunkings import characters
from chatparsers.testing.paths import Paths
from chatparsers.testing.vectors import joined, message_record

_NAMES = [info.name for info in list_formats() if info.origin == "chatparsers"]
_FINE = {
    "chat_format": 1,
    "name": "mine",
    "tree": {"body": {"marks": ["<", {"first_of": ["a", "b"]}, {"space": ""}]}},
}


@pytest.fixture(params=_NAMES)
def format(request: pytest.FixtureRequest) -> Format:
    return get_format(request.param)


@pytest.mark.one_in(32)
def test_a_reader_that_is_right_passes(format: Format, amount: Callable[[int, int, int], int]) -> None:
    """Ours does, with each text in pieces; also the program in which the search notes the ways."""
    found = vectors(format, amount(2, 20, 60), tries=amount(8, 100, 400))
    assert found == json.loads(json.dumps(found))
    assert len({(str(one.get("tools")), one.get("prefix"), one["text"]) for one in found}) == len(found)
    for one in found:
        turn = format.bind(tools=one.get("tools"), prefix=one.get("prefix", ""), id_seed="")
        stream = turn.stream()
        events = [event for piece in characters(one["text"]) for event in stream.feed(piece)]
        events += stream.finish()
        assert joined(events, turn) == one["events"], one["text"]
        assert message_record(turn, stream.message) == one["message"], one["text"]
        program = start(turn.format, turn.options, "").machine.program
        machine = Machine(program, turn.tools)
        machine.feed(turn.prefix)
        read = "".join(raw for _, raw, _ in (*machine.feed(one["text"]), *machine.finish()))
        way = Paths(program).of(turn, one["text"])
        assert read.endswith("".join(way.pieces)) and "".join(way.pieces) == one["text"]


def test_an_outcome_tells_what_happened_at_a_place() -> None:
    """Each word is a place, white space is read or not, and what was taken back is told from what was kept."""
    words = ["<", {"space": ""}, {"first_of": ["a", "b"]}]
    number = ["<", {"chars": ["0-9"]}, ">"]
    for mark, texts in ((words, ("<a", "<b", "< b", "< a")), (number, ("<1>", "<c", "<1"))):
        turn = Format.from_data({**_FINE, "tree": {"body": {"marks": mark}}}).bind()
        paths = Paths(start(turn.format, turn.options, "").machine.program)
        ways = {text: set(paths.of(turn, text).outcomes) for text in texts}
        assert len({frozenset(way) for way in ways.values()}) == len(texts)
        assert all(0 < len(way) <= paths.outcomes for way in ways.values())
        undone = {text for text, way in ways.items() if any(one.undone for one in way)}
        assert undone == ({"<c", "<1"} & set(texts))


@pytest.mark.parametrize(
    ("tree", "mutant"),
    [
        (["<", "b"], ["<", "c"]),
        ([{"optional": "<<"}, "<a"], ["<a"]),
        (["<", {"chars": ["a-z"]}, ">"], ["<", {"chars": ["a-z"], "min": 0}, ">"]),
        (["<", {"space": ""}, "a"], ["<", "a"]),
        ([{"first_of": ["<a", "<b"]}], ["<a"]),
    ],
)
def test_a_reader_that_is_wrong_does_not(tree: object, mutant: object) -> None:
    right, wrong = (Format.from_data({**_FINE, "tree": {"body": {"marks": one}}}) for one in (tree, mutant))
    for one in vectors(right, 60, tries=200):
        turn = wrong.bind(tools=one.get("tools"), prefix=one.get("prefix", ""), id_seed="")
        if message_record(turn, turn.parse(one["text"])) != one["message"]:
            return
    pytest.fail("no vector tells")


def test_vectors_are_exported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**_FINE, "samples": [{"title": "a", "text": "So <b so", "expect": {}}]}))
    assert main(["export", str(path), "--vectors", "4"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert found == vectors(Format.from_data(_FINE), 4, samples=[{"text": "So <b so"}])
    assert main(["export", str(path), "--vectors", "0"]) == 2
    assert "argument --vectors: expected a whole number above 0" in capsys.readouterr().err
    path.write_text(json.dumps({**_FINE, "samples": [{"text": 5}]}))
    assert main(["export", str(path), "--vectors", "4"]) == 2
    assert "$.samples[0]: expected a text as text" in capsys.readouterr().err
