"""Each result belongs to its call, by its id: in every template, whatever order a client sends them in."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from making import tool
from played import chat_of

from chatparsers.templates.rewrite.results import NO_RESULT

FOLDER = Path(__file__).parents[1] / "templates_own"
OWN = sorted(FOLDER.glob("*.jinja"))
TOOLS = [tool(name, {"place": {"type": "string"}}) for name in ("look", "seek")]
ASK = {"role": "user", "content": "Where is it?"}
MORE = {"role": "user", "content": "needlequestion"}
SAID = {"role": "assistant", "content": "There."}


def called(*pairs: tuple[str, str]) -> dict[str, Any]:
    calls = [
        {"id": id, "type": "function", "function": {"name": name, "arguments": '{"place": "Oslo"}'}}
        for name, id in pairs
    ]
    return {"role": "assistant", "content": "", "tool_calls": calls}


BOTH, LOOK = called(("look", "call_x1"), ("seek", "call_y2")), called(("look", "call_x1"))
ONE, TWO = (
    {"role": "tool", "tool_call_id": id, "content": words}
    for id, words in (("call_x1", "needlelook"), ("call_y2", "needleseek"))
)
USUAL = [ASK, BOTH, ONE, TWO, MORE, SAID]
CASES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    "swapped": ([ASK, BOTH, TWO, ONE, MORE, SAID], USUAL),
    "after words": ([ASK, BOTH, TWO, MORE, ONE, SAID], USUAL),
    "an id of its own": ([ASK, BOTH, ONE, {**TWO, "tool_call_id": "z"}, MORE, SAID], USUAL),
    "missing": (
        [ASK, BOTH, TWO, MORE, SAID],
        [ASK, BOTH, {**ONE, "name": "look", "content": NO_RESULT}, TWO, MORE, SAID],
    ),
    "after an answer": ([ASK, LOOK, MORE, SAID, ONE, SAID], [ASK, LOOK, ONE, MORE, SAID, SAID]),
}


def words(messages: Sequence[dict[str, Any]]) -> list[str]:
    return [m["content"] for m in messages if str(m["content"]).startswith(("needle", NO_RESULT[:9]))]


@pytest.fixture
def templates(real_templates: list[Path], amount: Callable[[int, int, int], int]) -> list[Path]:
    return [
        path
        for paths in (OWN, real_templates)
        for path in Random(len(paths)).sample(paths, amount(2, 6, len(paths)))
    ]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", CASES)
def test_a_result_stands_with_its_call(templates: list[Path], case: str) -> None:
    """In the prompt, in a finished conversation, and in the rollout of its answers."""
    given, wanted = CASES[case]
    for path in templates:
        chat = chat_of(path)
        turn = chat.prepare(given[:-1], tools=TOOLS, id_seed="")
        assert turn.prompt == chat.prepare(wanted[:-1], tools=TOOLS, id_seed="").prompt, path.stem
        assert turn.polyfills and (case not in ("missing", "an id of its own") or turn.warnings)
        whole = chat.encode(given, tools=TOOLS, id_seed="")
        assert whole.text == chat.encode(wanted, tools=TOOLS, id_seed="").text, path.stem
        samples = chat.encode(given, tools=TOOLS, id_seed="", as_sampled=True)
        places = [samples[-1].text.find(text) for text in words(wanted)]
        assert -1 not in places and places == sorted(places), path.stem


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_two_results_cannot_be_exchanged(templates: list[Path]) -> None:
    other = [ASK, BOTH, {**ONE, "content": TWO["content"]}, {**TWO, "content": ONE["content"]}, MORE]
    for path in templates:
        chat = chat_of(path)
        one, two = (chat.prepare(messages, tools=TOOLS).prompt for messages in (USUAL[:-1], other))
        swapped = chat.prepare([ASK, BOTH, *other[3:1:-1], MORE], tools=TOOLS).prompt
        assert one != two == swapped, path.stem


def test_what_does_not_fit_is_named() -> None:
    chat = chat_of(FOLDER / "qwen3.jinja")
    turn = chat.prepare([ASK, LOOK, {**ONE, "tool_call_id": "z"}, ONE, ONE, BOTH, TWO, MORE], tools=TOOLS)
    assert turn.polyfills == ("result_order", "missing_result")
    assert list(turn.warnings) == [
        "messages[2].tool_call_id: no call before it has this id",
        "messages[4].tool_call_id: the call has a result before this one",
        "messages[5].tool_calls[0]: no result was given: a stand-in says so",
    ]
    assert chat.prepare(USUAL[:-1], tools=TOOLS).warnings == ()
    plain = chat.prepare([ASK, BOTH, TWO, ONE], tools=TOOLS, polyfills=False)
    assert plain.polyfills == () and plain.prompt.index("needleseek") < plain.prompt.index("needlelook")


@pytest.mark.parametrize("history", ["template", "exact"])
def test_a_rollout_shows_each_result(history: Any, real_templates: list[Path]) -> None:
    """The template of gpt-oss writes the first of two results before the second call."""
    chat = chat_of(next(path for path in real_templates if "gpt-oss" in path.stem))
    made = chat.rollout([ASK], tools=TOOLS, history=history)
    made.said(BOTH)
    made.append(TWO, ONE)
    assert "parallel_calls" in made.turn.polyfills
    assert made.text.index("needlelook") < made.text.index("needleseek")
    assert [one.reason for one in made.breaks] == ["moved"]
    assert [one.what for one in made.differs] == ["order"]
