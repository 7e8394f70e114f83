"""The core's own door: docs/core.md's parser of JSON, in pieces of every size, with nothing of a chat imported."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from chatparsers import DefinitionError
from chatparsers.core.door import Failed, Machine, Rules, compile

PAGE = Path(__file__).parents[2] / "docs" / "core.md"
TEXTS = (
    '{"a": [1, -25, "x\\\\n\\\\u00e9"], "b": {"c": null, "d": []}, "e": true}',
    '["",{"k":0.5} , false]',
    "7",
    "[-1.5E-3, 2e10]",
)
BROKEN = {'["a\nb"]': 3, "[1e]": 3, '{"a": }': 6, "[1, 2": 5, '{"a" 1}': 5, "[01]": 2}


def blocks() -> str:
    if not PAGE.exists():
        pytest.skip("the package is installed, without its pages")
    return "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))


def told(machine: Machine, text: str, size: int) -> list[Any]:
    """What is told of a text in pieces; neighbours of one name are one."""
    found = [one for at in range(0, len(text), size) for one in machine.feed(text[at : at + size])]
    found += machine.finish()
    out: list[Any] = []
    for name, run in groupby(found, lambda one: one if isinstance(one, Failed) else one[0]):
        out.append(name if isinstance(name, Failed) else (name, "".join(one[1] for one in run)))
    return out


def test_the_page_reads_json_in_pieces_of_every_size() -> None:
    space: dict[str, Any] = {}
    exec(blocks(), space)
    for text in TEXTS:
        json.loads(text)
        whole = told(Machine(space["program"]), text, len(text))
        assert not any(isinstance(one, Failed) for one in whole), whole
        for size in range(1, len(text)):
            assert told(Machine(space["program"]), text, size) == whole, size
    for text, at in BROKEN.items():
        for size in (1, len(text)):
            failed = [one for one in told(Machine(space["program"]), text, size) if isinstance(one, Failed)]
            assert [one.position for one in failed] == [at] and failed[0].expected, (text, failed)


def test_an_empty_string_is_told() -> None:
    space: dict[str, Any] = {}
    exec(blocks(), space)
    one, none = (told(Machine(space["program"]), text, 1) for text in ('[""]', "[]"))
    assert one != none


def test_it_needs_nothing_of_a_chat() -> None:
    code = blocks() + "\nimport sys\nprint(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = ("chatparsers.answers", "chatparsers.streams", "chatparsers.schema", "chatparsers.values")
    assert not [name for name in done.stderr.split() if name.startswith(others)]


@pytest.mark.parametrize(
    ("rules", "says"),
    [
        (lambda p: p.rule("a", p.ref("a") + "x" | "y"), "it calls itself before it reads a character"),
        (
            lambda p: p.rule("a", p.space() + p.ref("b")) + p.rule("b", p.peek("x") + p.ref("a") | "y"),
            "calls itself",
        ),
        (lambda p: p.many(p.space()), "what it repeats can be empty, so it has no end"),
        (lambda p: p.ref("b") | p.rule("a", "x"), "there is no such rule"),
    ],
)
def test_what_comes_to_no_end_is_refused(rules: Callable[[Rules], Any], says: str) -> None:
    with pytest.raises(DefinitionError, match=says):
        compile(rules(Rules()))


def test_a_repetition_that_would_be_silent_is_refused() -> None:
    p = Rules()
    with pytest.raises(DefinitionError, match="nothing of it is told before all of it is certain"):
        compile(p.choice(p.many(p.tag("a", "a") + p.chars("b", 1, 1)) + "c", "d"))
