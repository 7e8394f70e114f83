"""C7: the work a piece costs does not grow with the text, whatever the text is.

Work is counted, not timed: the calls that the interpreter makes while feeding (each step of the machine
makes one or two), and the characters that the machine has before it whenever it runs (which a search or a
slice may touch).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from chatparsers.core.format import Format
from chatparsers.core.machine import Machine
from chatparsers.testing import TOOLS
from chatparsers.testing.wild import call_openers, fragments, sample

PIECE = 4


class Work:
    """What feeding a text costs: ``calls`` and ``characters``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = self.characters = 0
        run = Machine.run

        def counted(machine: Machine, *more: int) -> None:
            before = len(machine.text) - machine.i
            run(machine, *more)
            self.characters += max(before, len(machine.text) - machine.i)

        monkeypatch.setattr(Machine, "run", counted)

    def feed(self, format: Format, start: str, text: str) -> tuple[float, float]:
        """Calls and characters a piece."""
        stream = format.bind(tools=TOOLS).stream()
        stream.feed(start)
        pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
        self.calls = self.characters = 0

        def count(frame: object, event: str, argument: object) -> None:
            if event in ("call", "c_call"):
                self.calls += 1

        sys.setprofile(count)
        try:
            for piece in pieces:
                stream.feed(piece)
        finally:
            sys.setprofile(None)
        return self.calls / len(pieces), self.characters / len(pieces)


def adversaries(format: Format) -> Iterator[tuple[str, str, str]]:
    """Names, what is fed before, and what is then repeated."""
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
        yield "names", name, "abcdefgh"
        yield "names with spaces", name, "abc def "


def test_work_is_linear(format: Format, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config) -> None:
    few, many = (1000, 16000) if pytestconfig.getoption("--nightly") else (250, 2000)
    work = Work(monkeypatch)
    wrong = []
    for name, start, unit in adversaries(format):
        small, large = (
            work.feed(format, start, (unit * (pieces * PIECE // len(unit) + 1))[: pieces * PIECE])
            for pieces in (few, many)
        )
        for what, before, after in zip(("calls", "characters"), small, large, strict=True):
            if after > 1.5 * before + 8:
                wrong.append(
                    f"{name}: {before:.1f} {what} a piece at {few} pieces, {after:.1f} at {many}; start = {start!r}"
                )
    assert not wrong, "\n" + "\n".join(wrong)
