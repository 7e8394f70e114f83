"""parsimonious reads whole answers as our machine does, in every format that a plain PEG can say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from outside import Read, Unsayable, outside, read
from parsimonious import Grammar, ParseError

from chatparsers import get_format
from chatparsers.testing import load_cases
from chatparsers.testing.cases import bound

CASES = Path(__file__).parents[1] / "needle" / "cases"
FORMATS = sorted(folder.name for folder in CASES.iterdir())
UNSAYABLE = 36
"""Formats that no plain PEG says; `outside.py` says why."""
OURS = {
    (name, "wild-key-order"): "the tree allows the name after the arguments, and a mend of ours reads it"
    for name in ("gigachat-3", "gigachat-3-1", "xlam")
}


def grammars(document: Any) -> Callable[..., Grammar]:
    return cache(lambda *tools: Grammar(outside(document, tools)))


@pytest.mark.one_in(24)
@pytest.mark.parametrize("name", FORMATS)
def test_whole_texts_are_read_as_an_outside_reader_reads_them(name: str) -> None:
    """Of each text that is read without a complaint: content, reasoning, and the names of the calls."""
    format = replace(
        get_format(name), mends=("missing_opener",)
    )  # which tells of each call that it lets count
    grammar = grammars(format.to_data())
    wrong = []
    for path, case in load_cases(CASES / name):
        turn = bound(format, case)
        message = turn.parse(case["text"])
        plain = turn.tools and not turn.prefix and not case.get("tool_choice") and not case.get("reasoning")
        if not plain or not message.complete or message.diagnostics or (name, path.stem) in OURS:
            continue
        content, reasoning = ("".join(text.split()) for text in (message.content, message.reasoning))
        ours = Read(content, reasoning, [call.name for call in message.tool_calls])
        try:
            theirs: Read | str = read(
                grammar(*(tool["function"]["name"] for tool in turn.tools.raw)), case["text"]
            )
        except Unsayable as reason:
            pytest.skip(f"no plain PEG says it: {reason}")
        except ParseError as error:
            theirs = str(error)
        if ours != theirs:
            wrong.append(f"{path.name}: {case['text']!r}\n ours:   {ours}\n theirs: {theirs}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.nightly
def test_most_formats_can_be_said() -> None:
    def sayable(name: str) -> bool:
        try:
            outside(get_format(name).to_data(), ["f"])
        except Unsayable:
            return False
        return True

    assert sum(map(sayable, FORMATS)) == len(FORMATS) - UNSAYABLE
