"""After a whole answer, and after white space that a model writes behind it, the turn may end. What is taken, is read.

A grammar that takes a newline after the last call, and then nothing but another call, makes a real model repeat the
call until its tokens run out. And what a template itself writes, token by token in a vocabulary, is never refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from engines import FULL, PREFIX, compile_for, engines_of
from grammar_report import record
from samples import tool
from test_matrix import DIALECTS, SCHEMA, TOOL_FORMATS
from test_rendered import AS_PYTHON, UNCLOSED, valid
from test_sampler import end_of, mask_of, real_tokenizer
from toy import toy_tokenizer

import chatparsers
from chatparsers.testing import Entry
from chatparsers.testing.rendering import Inexpressible, render
from chatparsers.testing.scenarios import scenarios

TOOLS = [
    tool("get_weather", {"city": {"type": "string"}, "days": {"type": "integer"}}, ["city", "days"]),
    tool("get_time", {"zone": {"type": "string"}}, []),
]
CALLS = [
    {"id": f"abcdefgh{number}", "type": "function", "function": {"name": name, "arguments": arguments}}
    for number, (name, arguments) in enumerate(
        [("get_weather", '{"city": "Oslo", "days": 3}'), ("get_time", '{"zone": "CET"}')], 1
    )
]
ONE, TWO = {"tool_calls": CALLS[:1]}, {"tool_calls": CALLS}
THOUGHT = {"reasoning_content": "Hm.", **ONE}
TEXT, BOTH, JSON = {"content": "Hello."}, {"content": "I look.", **ONE}, {"content": '{"answer": "a"}'}
CELLS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "required": ({"tools": TOOLS, "tool_choice": "required"}, [ONE, TWO, THOUGHT]),
    "single": ({"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False}, [ONE, THOUGHT]),
    "named": ({"tools": TOOLS, "tool_choice": "get_weather"}, [ONE, THOUGHT]),
    "auto": ({"tools": TOOLS}, [ONE, TWO, THOUGHT, TEXT, BOTH]),
    "auto, single": ({"tools": TOOLS, "parallel_tool_calls": False}, [ONE, THOUGHT, TEXT, BOTH]),
    "auto, schema": ({"tools": TOOLS, "response_format": SCHEMA}, [ONE, TWO, JSON]),
    "none": ({"tools": TOOLS, "tool_choice": "none"}, [TEXT]),
    "schema": ({"response_format": SCHEMA}, [JSON]),
}
BLANKS = ("\n", "\n\n", " ", "\n\n\n", " \n", "\t")
BEFORE = ("\n", "\n\n", " ")
"""White space that every grammar takes before the first marker."""


def answers(format: chatparsers.Format, said: list[dict[str, Any]], lazy: bool) -> list[tuple[str, int]]:
    """The answers as the format writes them, and how many calls each has. A lazy grammar begins at a call."""
    found: list[tuple[str, int]] = []
    for message in said:
        if lazy and (message.get("content") or message.get("reasoning_content")):
            continue
        try:
            text = format.render(message, TOOLS)
        except chatparsers.RequestError:  # the format cannot say it
            continue
        found.append((text.lstrip() if lazy else text, len(message.get("tool_calls", ()))))
    return found


@pytest.mark.parametrize("name", TOOL_FORMATS)
def test_the_turn_may_end(name: str, request: pytest.FixtureRequest) -> None:
    """In every cell and dialect, white space after a whole answer is refused, or the turn may end after it; and white
    space may come before the first marker."""
    format = chatparsers.get_format(name)
    tried = 0
    for cell, (asked, said) in CELLS.items():
        turn = format.bind(**asked)
        for dialect in DIALECTS:
            grammar = turn.grammar(dialect)
            if grammar is None:
                continue
            judge = compile_for(engines_of(dialect)[0], str(grammar), dialect)
            for text, calls in answers(format, said, grammar.lazy):
                assert judge.status(text) == FULL, (cell, dialect, text)
                around = [text + blank for blank in BLANKS]
                if calls and not grammar.lazy:
                    around += [blank + text.lstrip() for blank in BEFORE]
                for changed in around:
                    status = judge.status(changed)
                    tried += 1
                    assert status != PREFIX, f"{cell}, {dialect}: the turn may not end after {changed!r}"
                    if calls and changed.endswith((text.lstrip(), text + "\n")):
                        assert status == FULL, (cell, dialect, changed)
                    if status == FULL:
                        message = turn.parse(changed)
                        assert message.complete and not message.diagnostics, (cell, dialect, changed, message)
                        assert len(message.tool_calls) == calls, (cell, dialect, changed)
    record(request, "ends", format=name, tried=tried)


@pytest.mark.of_the_folder
def test_the_templates_own_ids(
    entry: Entry, pytestconfig: pytest.Config, drawn: Any, amount: Callable[[int, int, int], int]
) -> None:
    """What the template writes, token by token in a real vocabulary, or a toy one where there is none: the engine takes
    each id, and then the stop. Usually one message of the template in one dialect, as a vocabulary costs a second."""
    nightly = pytestconfig.getoption("--nightly")
    name = entry.format.name
    try:
        tokenizer = real_tokenizer(name, pytestconfig)[1]
    except (pytest.skip.Exception, ValueError):
        tokenizer = toy_tokenizer(entry.format, True)
    tried, chance, found = 0, drawn.random(entry.key), list(scenarios(entry.format))
    added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
    for scenario in chance.sample(found, len(found)):
        if not valid(scenario) or scenario.heavy or entry.path.stem in UNCLOSED:
            continue
        marked = (
            scenario.name == "markers-in-argument"
        )  # in the spelling of the template, which may be another
        if marked or any(text in call.arguments for call in scenario.calls for text in added):
            continue  # a model spells them in ordinary tokens: by its id, a marker in a value ends the call
        try:
            case = render(entry.format, entry.template(), scenario)
        except Inexpressible:
            continue
        if AS_PYTHON(case.text):
            continue
        options = {**case.options, "tool_choice": "required", "prefix": case.prefix}
        options.pop("response_format", None)
        turn = entry.format.bind(**options, tokenizer=tokenizer)
        text = case.text
        while stop := next((stop for stop in entry.format.stops if text.endswith(stop)), None):
            text = text.removesuffix(stop)
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        stops = list(turn.stop_ids) or [end_of(tokenizer)]
        for dialect in DIALECTS if nightly else chance.sample(DIALECTS, 1):
            # MiniMax-M3's elements hold no member that the schema does not list, and the answer has none.
            mask = mask_of(turn, dialect, tokenizer, stops, frozenset({"additionalProperties"}))
            for at, id in enumerate(ids):
                assert mask.would_accept(id) and mask.accept(id), (
                    scenario.name, dialect, tokenizer.decode(ids[: at + 1], skip_special_tokens=False)
                )  # fmt: skip
            assert any(map(mask.would_accept, stops)), (scenario.name, dialect, text)
        tried += 1
        if tried == amount(1, 3, len(found)):
            return
    if not tried:
        pytest.skip("the template renders no message of calls alone")
