"""C7: the work for a piece does not grow with the text before it, for any text.

Work is counted, not timed: the calls of the interpreter while feeding (each step of the machine makes one or two), and
the characters in the machine's window whenever it runs (a search or a slice may touch them).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from chatparsers import Turn, get_format
from chatparsers.answers.format import Format
from chatparsers.core.machine.instructions import MAX_HEADER, Item
from chatparsers.core.machine.machine import Machine
from chatparsers.streams import known
from chatparsers.testing import TOOLS
from chatparsers.testing.wild import call_openers, fragments, sample
from chatparsers.values import Transcoder
from chatparsers.values.json import ObjectScanner
from chatparsers.values.python import PythonScanner
from chatparsers.values.so_far import Reader

PIECE = 4


class Work:
    """The cost of feeding a text: ``calls`` and ``characters``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = self.characters = 0
        feed = Machine.feed

        def counted(machine: Machine, piece: str, *more: Any, **named: Any) -> list[Item]:
            before = len(machine.text) + len(piece)
            items = feed(machine, piece, *more, **named)
            self.characters += max(before, len(machine.text))
            return items

        monkeypatch.setattr(Machine, "feed", counted)

    def feed(
        self, format: Format, start: str, text: str, strict: bool = False, polled: bool = False
    ) -> tuple[tuple[float, float], tuple[float, float]]:
        """Calls and characters for a piece: of the first pieces, an eighth of all, and of as many at the end.

        ``polled``: asks for the message and the state after each piece.
        """
        stream = format.bind(tools=TOOLS).stream(strict=strict)
        stream.feed(start)
        pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
        part = len(pieces) // 8
        parts = pieces[:part], pieces[part:-part], pieces[-part:]

        def count(frame: object, event: str, argument: object) -> None:
            if event in ("call", "c_call"):
                self.calls += 1

        found = []
        for number, some in enumerate(parts):
            self.calls = self.characters = 0
            sys.setprofile(None if number == 1 else count)  # it makes every call slow
            try:
                for piece in some:
                    stream.feed(piece)
                    if polled:
                        _ = stream.message, stream.state
            finally:
                sys.setprofile(None)
            found.append((self.calls / part, self.characters / part))
        return found[0], found[-1]


def adversaries(format: Format) -> Iterator[tuple[str, str, str]]:
    """Names, the text that is fed first, and the text that is then repeated."""
    text = sample(format)
    inside = text[: text.find("Oslo") + 2] if "Oslo" in text else text
    name = text[: text.find("get_weather") + 3] if "get_weather" in text else ""
    for opener in call_openers(format)[:2]:
        yield f"openers {opener!r}", "", opener
        yield f"half openers {opener!r}", "", opener[: len(opener) // 2 + 1]
        yield f"openers, a space {opener!r}", "", opener + " "
    for marker in sorted(fragments(format)[:30], key=len)[-2:]:
        yield f"markers {marker!r}", "", marker
    yield "prose", "", "The words of an answer. "
    yield "white space", "", "\n"
    yield "spaces", "", " \t"
    yield "braces", "", '{"name": '
    yield "brackets", "", "["
    if "Oslo" in text:
        yield "string", inside, "some words, "
        yield "backslashes in a string", inside, "\\"
        yield "escapes in a string", inside, '\\"\\n'
        yield "newlines in a string", inside, "\n"
        yield "less-than in a string", inside, "</"
        yield "number", inside.rpartition("Os")[0].rstrip("\"'"), "12345"
        yield "nesting", inside.rpartition("Os")[0].rstrip("\"'"), "[{"
    if name:
        yield "calls", "", text
        yield "names", name, "abcdefgh"
        yield "names with spaces", name, "abc def "


@pytest.mark.pure
def test_work_is_linear(format: Format, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    pieces = 16_000 if pytestconfig.getoption("--nightly") else 2_000
    work = Work(monkeypatch)
    wrong = []
    for name, start, unit in adversaries(format):
        text = (unit * (pieces * PIECE // len(unit) + 1))[: pieces * PIECE]
        for what, before, after in zip(("calls", "characters"), *work.feed(format, start, text), strict=True):
            if after > 1.5 * before + 8:
                wrong.append(
                    f"{name}: {before:.1f} {what} a piece in the first of {pieces} pieces, {after:.1f} in the last; "
                    f"start = {start!r}"
                )
    assert not wrong, "\n" + "\n".join(wrong)


def lines(call: Callable[[], object]) -> int:
    """How many lines of Python run in a call. Each round of a loop is one, also of a loop in one line."""
    ran = 0

    def count(frame: object, event: str, argument: object) -> Any:
        nonlocal ran
        ran += event == "line"
        return count

    sys.settrace(count)
    try:
        call()
    finally:
        sys.settrace(None)
    return ran


def least_of_looks(
    turn: Turn, start: str, unit: str, size: int, monkeypatch: pytest.MonkeyPatch, accelerated: bool
) -> dict[str, int]:
    """The lines of looks after each of three pieces. The least of three streams: the first compiles patterns and makes
    places known, and some are let go of."""
    monkeypatch.setattr(known, "enabled", accelerated)
    least: dict[str, int] = {}
    for _ in range(3):
        stream = turn.stream()
        stream.feed(start + unit * (size // len(unit)))
        looks: dict[str, Callable[[], object]] = {
            "message": partial(getattr, stream, "message"),
            "state": partial(getattr, stream, "state"),
            "fork": stream.fork,
        }
        for look in looks.values():
            look()
        cost = dict.fromkeys(looks, 0)
        for at in range(0, 3 * PIECE, PIECE):
            stream.feed((unit * PIECE * 3)[at : at + PIECE])
            for what, look in looks.items():
                cost[what] += lines(look)
        least = {what: min(cost[what], least.get(what, cost[what])) for what in cost}
    return least


@pytest.mark.pure
def test_looking_is_linear(
    format: Format, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a look costs does not grow with the text before it: `message`, `state`, `fork`, after each piece."""
    # All are longer than a header may be: what is read of a text is another thing before that.
    sizes = (2_000, 8_000, 32_000) if pytestconfig.getoption("--nightly") else (1_500, 6_000)
    turn = format.bind(tools=TOOLS)
    wrong = []
    for name, start, unit in adversaries(format):
        # Without the accelerator, a look costs what it does at an unknown place.
        unknown, *rows = [
            least_of_looks(turn, start, unit, size, monkeypatch, accelerated)
            for size, accelerated in ((sizes[0], False), *((size, True) for size in sizes))
        ]
        for what in unknown:
            row = [row[what] for row in rows]
            if max(row) > 1.5 * max(unknown[what], row[0]) + 200:
                wrong.append(f"{name}: {what} {row} lines after {sizes} characters; start = {start!r}")
    assert not wrong, "\n" + "\n".join(wrong)


LINE = '\n{"name": "get_weather", "parameters": '
STRING = '<tool_call>{"name": "get_weather", "arguments": {"city": "'


# A format, the text that is fed first, what is then repeated, whether the stream is strict, and polled.
FED: dict[str, tuple[str, str, str, bool, bool]] = {
    # Strict mode does not read all notes again, and the message does not join all pieces again.
    "notes in strict mode": ("hermes-2-pro", STRING, "\n\n\n\n", True, False),
    "a call, polled": ("hermes-2-pro", STRING, "words \\u00e5", False, True),
    "content, polled": ("hermes-2-pro", "", "One writes so. ", False, True),
    "a call in a thought, polled": ("hermes-2-pro", f"<think>Hm.{STRING}", "words", False, True),
    # Llama holds an object after prose until its line ends. A rule that held it over lines would be quadratic.
    "objects that go on": ("llama-3-x", "Here:", LINE + '{"a": {}', False, False),
    "examples": ("llama-3-x", "Here:", LINE + "{}} is how. ", False, False),
    "braces in a line": ("llama-3-x", f'Here:{LINE}{{"a": "', "} ", False, False),
    "a long line": ("llama-3-x", f'Here:{LINE}{{"a": "', "some words, ", False, False),
}


@pytest.mark.pure
@pytest.mark.parametrize("case", FED)
def test_what_is_held_noted_or_polled_is_not_read_again(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, start, unit, strict, polled = FED[case]
    text = (unit * (4000 * PIECE // len(unit) + 1))[: 4000 * PIECE]
    small, large = Work(monkeypatch).feed(get_format(name), start, text, strict, polled)
    assert large[0] <= 1.1 * small[0] + 2
    assert large[1] <= 1.1 * small[1] + 2


@pytest.mark.parametrize(
    "start, more, end",
    [('{"', "ab", '": 1}'), ('{"', "\\u00e9", '": 1}'), ('{"a": ', "12", "}"), ('{"a": "', "\\n", '"}')],
)
def test_what_is_read_of_arguments_so_far_is_not_read_again(start: str, more: str, end: str) -> None:
    reader = Reader()
    for char in start + 100 * more:
        reader.read(char)
        reader = reader.copy()
        assert len(reader.text) < 6  # this is read again: a part of an escape
    reader.read(end)
    assert reader.value == json.loads(start + 100 * more + end)


class Counted(str):
    """A text that counts the characters sliced out of it."""

    copied = 0

    def __getitem__(self, key: Any) -> str:
        found = super().__getitem__(key)
        Counted.copied += len(found)
        return found


@pytest.mark.pure
@pytest.mark.parametrize(
    ("scanner", "before", "at"),
    [(ObjectScanner, "", "nil"), (PythonScanner, '["""', '"a')],
    ids=["null or not", "a quote in three quotes"],
)
def test_a_scan_does_not_copy_the_rest_of_the_text(scanner: type[Transcoder], before: str, at: str) -> None:
    """A large piece may hold very many values. Each looks only at a bounded part of the text after it."""
    reader = scanner()
    reader.scan(before, 0, False)
    text = Counted(at + " " * 100_000)
    Counted.copied = 0
    reader.scan(text, 0, False)
    assert Counted.copied <= len(reader.out) + 10


@pytest.mark.parametrize("start", ["<tool_call>", '<tool_call>{"name": "get_weather",', STRING + '"},'])
def test_white_space_in_a_header_is_bounded(start: str) -> None:
    """A million blanks inside a call's header are not held, in any chunking."""
    turn = get_format("hermes-2-pro").bind(tools=TOOLS)
    text = start + " " * 1_000_000
    stream = turn.stream()
    longest = silent = 0
    for at in range(0, len(text), 64):
        silent = 0 if stream.feed(text[at : at + 64]) or stream.region == "call" else silent + 1
        longest = max(longest, silent)
    stream.finish()
    assert longest <= MAX_HEADER // 64 + 3
    assert stream.message == turn.parse(text)


def test_white_space_up_to_the_bound_is_a_header() -> None:
    turn = get_format("hermes-2-pro").bind(tools=TOOLS)
    for blanks in (MAX_HEADER, MAX_HEADER + 1):
        text = "<tool_call>" + " " * blanks + STRING.removeprefix("<tool_call>") + 'Oslo"}}</tool_call>'
        message = turn.parse(text)
        stream = turn.stream()
        for character in text:
            stream.feed(character)
        stream.finish()
        assert stream.message == message
        assert [call.complete for call in message.tool_calls] == ([True] if blanks == MAX_HEADER else [])
