"""The check of C1 notices a region with the wrong text: every region of some formats' cases is moved by one.

The formats are fixed: JSON, tags, Python and calls with ids. A new format must pass the check, and need not be one in
which it sees every fault.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from chatparsers import Message, Turn, get_format
from chatparsers.streams.message import Region
from chatparsers.testing import TOOLS, check_conservation, load_cases
from chatparsers.testing.cases import bound

_CASES = Path(__file__).parent / "cases"
_NAMES = ("hermes-2-pro", "glm-4-5", "lfm2", "smi")


def messages(name: str) -> Iterator[tuple[Turn, Message]]:
    """The messages of a format's cases, without those of broken texts."""
    for _, case in load_cases(_CASES / name):
        turn = bound(get_format(name), case)
        message = turn.parse(case["text"])
        check_conservation(message, turn)
        if message.complete and turn.options.mode != "none":
            yield turn, message


def moved(message: Message) -> Iterator[Message]:
    """The message with one border between two regions moved by a character, for every border, both ways."""
    for number, (left, right) in enumerate(pairwise(message.regions)):
        for by in (-1, 1):
            at = left.end + by
            if left.start < at < right.end:
                regions = message.regions[:]
                regions[number : number + 2] = [replace(left, end=at), replace(right, start=at)]
                yield replace(message, regions=regions)


def renamed(message: Message, kind: str) -> Message | None:
    """The message with its regions of that kind renamed to markup; None if it has no such region."""
    if all(region.kind != kind for region in message.regions):
        return None
    regions: list[Region] = []
    for region in message.regions:
        region = replace(region, kind="markup") if region.kind == kind else region
        if regions and regions[-1].kind == region.kind:
            region = replace(region, start=regions.pop().start)
        regions.append(region)
    return replace(message, regions=regions)


def missed(turn: Turn, message: Message) -> bool:
    try:
        check_conservation(message, turn)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("name", _NAMES)
def test_a_border_that_is_moved_and_a_kind_that_is_called_markup_are_told(name: str) -> None:
    tried, wrong = 0, []
    for turn, message in messages(name):
        for kind in ("reasoning", "content", "call"):
            if (other := renamed(message, kind)) is not None and missed(turn, other):
                wrong.append(f"{kind} called markup: {message.text}")
        for other in moved(message):
            tried += 1
            if missed(turn, other):
                wrong += [
                    f"{region.kind} {other.text[region.start : region.end]!r}"
                    for region, before in zip(other.regions, message.regions, strict=True)
                    if region != before
                ]
    assert tried
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "header"), [("gpt-oss", "<|start|>assistant to="), ("llm-jp-4-1", "to=functions.")]
)
def test_a_name_goes_on_where_the_prefix_ends(name: str, header: str) -> None:
    """The message has a region for the rest of the name alone."""
    rest = '<|channel|>commentary json<|message|>{"city": "Oslo"}<|call|>'
    for begun in ("get_", "get_weather"):
        turn = get_format(name).bind(tools=TOOLS, prefix=header + begun)
        message = turn.parse("get_weather".removeprefix(begun) + rest)
        assert [call.name for call in message.tool_calls] == ["get_weather"]
        check_conservation(message, turn)
        assert not missed(turn._replace(prefix=header + "get_x"), message)
