"""render → cut → parse gives the message back, and rendering what was parsed gives the text back: for any message.

On our own template of each format and every real one of its family. What a format cannot say (a string that holds what
ends it, a text that holds a marker) is not asked of it; what a template cannot show is left out by its probe.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from chatparsers.answers.format import Format
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import Literal, Token
from chatparsers.core.tree import walk
from chatparsers.testing import (
    TOOLS,
    Call,
    Entry,
    Inexpressible,
    Scenario,
    check_cuts,
    check_expected,
    chunkings,
    render,
)
from chatparsers.testing.scenarios import raw_stops

CHARACTERS = st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t \"'\\{}[]<>|,:=&")
ANY = st.text(CHARACTERS, max_size=30)
NUMBERS = st.integers(-(2**70), 2**70).map(str) | st.sampled_from(
    ["-0.0", "1e400", "0.10", "1E-7", "-5.5e+3"]
)


def spelt(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


@st.composite
def nested(draw: st.DrawFn) -> str:
    """A JSON text of objects, arrays and scalars."""
    scalars = ANY.map(spelt) | NUMBERS | st.sampled_from(["true", "false", "null"])
    return draw(
        st.recursive(
            scalars,
            lambda inner: (
                st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]")
                | st.dictionaries(st.sampled_from(["name", "height", "tags"]), inner, max_size=3).map(
                    as_object
                )
            ),
            max_leaves=8,
        )
    )


def as_object(members: dict[str, str]) -> str:
    return "{" + ", ".join(f"{spelt(key)}: {value}" for key, value in members.items()) + "}"


def calls() -> st.SearchStrategy[Call]:
    """A call of one of the tools, with arguments that its schema admits."""
    place = st.dictionaries(st.just("tags"), nested().map(lambda text: f"[{text}]"), max_size=1).map(
        as_object
    )
    texts = st.dictionaries(st.sampled_from("abcdefgh"), ANY.map(spelt), min_size=1, max_size=4)
    numbers = st.dictionaries(st.sampled_from("abcdef"), NUMBERS, min_size=1, max_size=4)
    flags = st.dictionaries(st.sampled_from(["on", "off"]), st.sampled_from(["true", "false"]), min_size=1)
    return st.one_of(
        st.just(Call("get_time")),
        texts.map(lambda members: Call("keep_texts", as_object(members))),
        numbers.map(lambda members: Call("add_numbers", as_object(members))),
        flags.map(lambda members: Call("set_options", as_object(members))),
        place.map(lambda text: Call("plan_route", as_object({"start": text}))),
        ANY.map(lambda text: Call("write_file", as_object({"path": '"p"', "text": spelt(text)}))),
    )


def spoken(format: Format) -> st.SearchStrategy[str]:
    """Text without white space at its ends and without a marker of the format."""
    tree = format.tree(Options(tools=True))
    markers = {node.text.strip() for node in walk(tree) if isinstance(node, (Token, Literal))}
    markers = {text for text in markers if len(text) > 1} | set(format.stops)
    bare = {text for text in ("{", "[") if not format.preserved_tokens}
    return ANY.map(str.strip).filter(
        lambda text: (
            not any(marker in text for marker in markers) and not text.startswith(tuple(bare) or "\0")
        )
    )


def holds(call: Call, stops: tuple[str, ...]) -> bool:
    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, (list, dict)):
            for item in value.values() if isinstance(value, dict) else value:
                yield from texts(item)

    return any(stop in text for stop in stops for text in texts(json.loads(call.arguments)))


def test_round_trip(entry: Entry, amount: Callable[[int, int, int], int]) -> None:
    format, template = entry.format, entry.template()
    can, stops = template.probe(), raw_stops(format)
    said = spoken(format)
    several = 3 if can.parallel_calls and format.features.parallel else 1
    called = st.lists(calls(), max_size=several) if can.tool_calls and format.features.tools else st.just([])
    fitting: list[int] = []

    @settings(
        max_examples=amount(12, 12, 400),
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(said, said, called, st.integers(0, 2**16))
    def check(content: str, reasoning: str, made: list[Call], seed: int) -> None:
        assume(not any(holds(call, stops) for call in made))
        if not (can.reasoning_with_calls if made else can.reasoning):
            reasoning = ""
        if made and (not can.content_beside_calls or (reasoning and template.wants.join_content)):
            content = ""
        assume(content or made)
        # If the prompt opens the reasoning, no comparison of renderings can distinguish the two.
        assume(not (reasoning and content and reasoning.startswith(content)))
        thinking = True if reasoning else None
        scenario = Scenario("any", content, reasoning, tuple(made), TOOLS if made else (), thinking=thinking)
        try:
            case = render(format, template, scenario)
        except Inexpressible:
            assume(False)
        turn = case.turn()
        message = check_cuts(turn, case.text, chunkings.random_cuts(case.text, 3, seed=seed))
        try:
            check_expected(case, message)
        except AssertionError as error:
            told = str(error).partition("\nassert ")[0]
            raise AssertionError(f"{told}\n  prefix = {case.prefix!r}\n  text = {case.text!r}") from error
        fitting.append(len(case.text))
        again = render(format, template, _said(scenario, message))
        assert again.text == case.text, "rendered again it is another text"

    check()
    assert len(fitting) >= 5


def _said(scenario: Scenario, message: Any) -> Scenario:
    """The scenario with what was read instead of what was meant."""
    read = tuple(Call(call.name, call.arguments) for call in message.tool_calls)
    return Scenario(
        "again", message.content, message.reasoning, read, scenario.tools, thinking=scenario.thinking
    )
