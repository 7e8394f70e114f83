"""Loops, over every format: what is found in a region depends on its text alone, and people's text has none."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from making import bytewise

from chatparsers import Format, Message, Stream, Turn, get_format
from chatparsers.testing import load_cases
from chatparsers.testing.cases import bound
from chatparsers.watch import loops, observe

_CASES = Path(__file__).parents[1] / "needle" / "cases"
ROUNDS = (
    "Wait, I look at it again. ",
    "und so weiter, é😀 ",
    "So: no.\nThe file a.py holds what the file b.py needs. ",
)


def spoilt(message: Message, random: Random) -> list[str]:
    """The answer with a loop within each of its regions: told, stuck, or too short for either."""
    found = []
    for region in message.regions:
        if region.kind != "markup" and region.end - region.start > 4:
            at = random.randint(region.start + 2, region.end - 2)
            for many in (random.choice((2, 10)), 60):
                text = random.choice(ROUNDS) * many
                found.append(message.text[:at] + text + message.text[at:])
    return found


def fed(turn: Turn, text: str, random: Random, *, ids: bool) -> Stream:
    """A stream that has read the text in any pieces. Now and then it is asked, and has found what one finds that has
    read as much at once."""
    stream, at = turn.stream(), 0
    given = turn.tokenizer.encode(text, add_special_tokens=False).ids if ids else text
    while at < len(given):
        size = random.choice((1, 4, 30, 700))
        stream.feed(given[at : at + size])
        at += size
        if random.random() < 0.05:
            whole = turn.stream()
            whole.feed(given[:at])
            assert stream.loop == whole.loop
    stream.finish()
    return stream


@pytest.mark.one_in(8, quick=64)
def test_no_verdict_depends_on_the_pieces(format: Format) -> None:
    random = Random(format.name)
    markers = [text for text in (*format.preserved_tokens, *format.stops) if text.strip() == text]
    tokenizer = bytewise(*markers)
    cases = [case for _, case in load_cases(_CASES / format.name) if 20 < len(case["text"]) < 900]
    told = stuck = 0
    for case in random.sample(cases, min(3, len(cases))):
        turn = bound(format, case, tokenizer=tokenizer)
        for text in spoilt(turn.parse(case["text"]), random):
            message = turn.parse(text)
            found = loops(message)
            for ids in (False, True):
                stream = fed(turn, text, random, ids=ids)
                last = stream.loop
                mine = loops(stream.message)
                assert last is None or (mine and mine[-1] == last)
                if not ids:
                    assert mine == found
            for loop in found:
                one = message.text[loop.start : loop.start + loop.period]
                assert (
                    message.text[loop.start : loop.end] == (one * (loop.rounds + 1))[: loop.end - loop.start]
                )
                assert loop.end - loop.start >= (400 if loop.stuck else 200)
                assert loop.rounds >= (8 if loop.stuck else 4)
            codes = [one.position for one in observe(turn, message) if one.code == "repeated-text"]
            assert codes == [loop.start for loop in found]
            told, stuck = told + len(found), stuck + sum(loop.stuck for loop in found)
    assert told >= stuck > 0


def test_what_people_write_is_no_loop() -> None:
    turn = get_format("content-only").bind()
    for path in sorted(Path(__file__).parents[2].glob("docs/*.md")):
        assert not loops(turn.parse(path.read_text("utf-8"))), path
