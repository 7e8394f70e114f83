"""C7 as one property: for any repeated unit in any context, eight times the text costs about eight times the work.

Work is counted, not timed: the instructions that the machine fetches, the characters copied out of the fed text, and
the calls of the interpreter. A family is a format, a context and a repeated unit, all drawn from the format's own
texts. It fails if a count grows faster than the length to the power of 1.2. What may be a header is held back, up to
`MAX_HEADER` characters, and copied with each piece: what grows faster below that is counted again above it.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from chatparsers import OutputError, get_format, list_formats
from chatparsers.answers.format import Format
from chatparsers.core.machine.instructions import MAX_HEADER
from chatparsers.testing import TOOLS
from chatparsers.testing.wild import fragments, samples
from chatparsers.values.json import ObjectScanner

pytestmark = pytest.mark.pure
SIZE, TIMES = 500, 8
GROWTH = TIMES**1.2
NAMES = [info.name for info in list_formats() if info.origin == "chatparsers"]


class Work:
    """The counts."""

    steps = copied = calls = 0

    def counts(self) -> tuple[int, int, int]:
        return self.steps, self.copied, self.calls


class Code(list[Any]):
    """A program's instructions. Counts each fetch."""

    work = Work()

    def __getitem__(self, place: Any) -> Any:
        self.work.steps += 1
        return super().__getitem__(place)


class Text(str):
    """A text that counts the characters copied out of it, and out of texts made from it."""

    work = Work()

    def __getitem__(self, place: Any) -> str:
        return self.made(super().__getitem__(place))

    def __add__(self, other: str) -> str:
        return self.made(str(self) + str(other))

    def __radd__(self, other: str) -> str:
        return self.made(str(other) + str(self))

    def made(self, text: str) -> str:
        self.work.copied += len(text)
        return Text(text)


def count(format: Format, context: str, text: str, piece: int, strict: bool) -> tuple[int, int, int]:
    """Steps, copied characters and calls for ``text`` after ``context``, in pieces of that size."""
    stream = format.bind(tools=TOOLS).stream(strict=strict)
    stream.feed("")
    work = Code.work = Text.work = Work()
    program = stream._begun().machine.program
    code = program.code

    def called(frame: object, event: str, argument: object) -> None:
        work.calls += event in ("call", "c_call")

    try:
        program.code = Code(code)
        stream._begun().read(Text(context), [])  # `feed` would make a plain text of it
        work.steps = work.copied = 0
        sys.setprofile(called)
        for at in range(0, len(text), piece):
            stream._begun().read(Text(text[at : at + piece]), [])
        stream.finish()
    except OutputError:
        pass
    finally:
        sys.setprofile(None)
        program.code = code
    return work.counts()


def families(number: int) -> Iterator[tuple[Format, str, str]]:
    chance = random.Random("families")
    for index in range(number):
        format = get_format(NAMES[index % len(NAMES)])
        pieces = [text for text in fragments(format) if len(text) < 40]
        whole = chance.choice(samples(format) or [""])
        context = chance.choice(["", whole, whole[: chance.randrange(len(whole) + 1)], chance.choice(pieces)])
        yield format, context, "".join(chance.choices(pieces, k=chance.randint(1, 3)))


def test_a_copy_of_the_rest_at_each_call_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counts include work that the interpreter does in a single step."""
    scan = ObjectScanner.scan

    def copying(scanner: ObjectScanner, text: str, start: int, final: bool) -> int:
        assert text[start:] is not None
        return scan(scanner, text, start, final)

    calls = '<tool_call>\n{"name": "get_time", "arguments": {}}\n</tool_call>' * 8
    format = get_format("hermes-2-pro")
    for patched in (False, True):
        if patched:
            monkeypatch.setattr(ObjectScanner, "scan", copying)
        before, after = (count(format, "", calls * times, 1 << 20, False)[1] for times in (1, TIMES))
        assert (after > GROWTH * (before + 50)) is patched


FOUND = [
    ("gpt-oss", "", "<|channel|>analysis to=assistant", 1 << 20, False),
    ("gpt-oss", "So:\n```\n", "<|channel|>analysis to=assistant\n", 1 << 20, False),
    (
        "qwen3-coder",
        "",
        "Hm.\n<function=get_weather>\n<parameter=city>\nO\n</parameter>\n</function>\n",
        1 << 20,
        False,
    ),
    ("llama-3-x", "", 'Hm.\n{"name": "get_weather", "parameters": {"city": "O"}}\n', 1 << 20, False),
    ("glm-4-5", "<tool_call>get_weather\n", "<arg_key>", 1 << 20, False),
    ("magistral", "[THINK]Thoughts.[/THINK]Text.[TOOL_CALLS]", "[TOOL_CALLS]", 7, True),
    (
        "longcat",
        '<longcat_tool_call>\n{"name": "f", "arguments": {"a": "b"',
        '"a<longcat_arg_key>',
        1 << 20,
        False,
    ),
]
"""Families that once cost too much: a format, a context, a unit, the size of the pieces, and whether it is strict."""


@pytest.mark.slow
def test_work_grows_with_the_length(amount: Callable[[int, int, int], int]) -> None:
    chance = random.Random(1)
    drawn = [
        (*family, chance.choice([3, 7, 1 << 20]), chance.random() < 0.3)
        for family in families(amount(30, 200, 2000))
    ]
    wrong = []
    for format, context, unit, piece, strict in [
        *((get_format(name), *rest) for name, *rest in FOUND),
        *drawn,
    ]:
        for size in (SIZE, 2 * MAX_HEADER):
            texts = [unit * (length // len(unit) + 1) for length in (size, TIMES * size)]
            costs = [count(format, context, text, piece, strict) for text in texts]
            counts = zip(("steps", "characters", "calls"), *costs, strict=True)
            faster = [(what, n, m) for what, n, m in counts if m > GROWTH * (n + 50)]
            if not faster:
                break
        wrong += [
            f"{format.name}: {before} {what}, {after} at {TIMES} times the text; {piece=}, {strict=}, "
            f"{context=}, {unit=}"
            for what, before, after in faster
        ]
    assert not wrong, "\n" + "\n".join(wrong)
