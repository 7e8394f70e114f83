"""One property for each promise, for every format, on text that no template writes."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatparsers.answers.format import Format, Turn
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import Body, Implied
from chatparsers.core.tree import first, walk
from chatparsers.errors import OutputError
from chatparsers.testing import TOOLS, check_conservation, check_cuts, check_prefixes, chunkings
from chatparsers.testing.check import same
from chatparsers.testing.wild import broken, call_openers, fragments, sample, samples

EXAMPLES = settings(
    deadline=None,
    derandomize=True,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.function_scoped_fixture,
        HealthCheck.data_too_large,
    ],
)
REQUESTS = st.sampled_from(
    [
        {"tools": TOOLS},
        {"tools": TOOLS, "tool_choice": "none"},
        {"tools": TOOLS, "tool_choice": "required", "parallel_tool_calls": False},
        {},
        {"tools": TOOLS, "response_format": {"type": "json_object"}},
        {"tools": TOOLS, "thinking": False},
    ]
)


def texts(format: Format) -> st.SearchStrategy[str]:
    """Mixtures of the format's markers, fragments of them, JSON and prose."""
    any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    return st.lists(st.sampled_from(fragments(format)) | any_text, max_size=14).map("".join)


def bound(format: Format, **more: object) -> Turn:
    return format.bind(**{"tools": TOOLS, **more})  # type: ignore[arg-type]


def prefixes(format: Format) -> list[str]:
    """Possible ends of a prompt: nothing, or a sample up to any marker."""
    return ["", *(text for text in fragments(format)[:12] if len(text) < 40)]


def test_nothing_is_lost_and_cuts_do_not_matter(format: Format, amount: Callable[..., int]) -> None:
    """C1, C2, C3, C5, C6: on any text, for any request, after any prefix."""

    @settings(EXAMPLES, max_examples=amount(30, 60, 300))
    @given(texts(format), REQUESTS, st.sampled_from(prefixes(format)), st.integers(0, 2**16))
    def check(text: str, request: dict[str, object], prefix: str, seed: int) -> None:
        turn = format.bind(**request, prefix=prefix)  # type: ignore[arg-type]
        check_cuts(turn, text, [list(text), *chunkings.random_cuts(text, 3, seed=seed)])

    check()


def test_broken_outputs(format: Format, pytestconfig: pytest.Config) -> None:
    """C5, C6: text left out, doubled, moved or put in is reported or harmless, cuts do not matter, and the arguments of
    a complete call are a JSON object. Without its regions the message is the same otherwise."""
    turn = bound(format)
    for text in broken(format, 1000 if pytestconfig.getoption("--nightly") else 100):
        message = check_cuts(turn, text, [list(text), *chunkings.random_cuts(text, 4)])
        same(turn.parse(text, regions=False), replace(message, regions=[]), "without regions")


def test_cut_off_anywhere(format: Format) -> None:
    """C5: samples cut off at every character. An open call is incomplete; without tools nothing is a call."""
    for text in samples(format):
        assert check_prefixes(bound(format), text)
        assert check_prefixes(format.bind(), text)
        assert not format.bind().parse(text).tool_calls


def test_a_long_text_without_a_closer(format: Format, pytestconfig: pytest.Config) -> None:
    """C5: a sample cut at any place, with any text after it; nightly a megabyte of it."""
    length = 1_000_000 if pytestconfig.getoption("--nightly") else 100_000
    turn = bound(format)
    text = sample(format)
    for share in (0.4, 0.6, 0.8):
        start = text[: int(len(text) * share)]
        for more in ("x" * length, '\\"\n 1,{' * (length // 70)):
            message = turn.parse(start + more)
            check_conservation(message, turn)
            assert message.text == start + more
            stream = turn.stream()
            for piece in chunkings.at(start + more, range(0, length, 9973)):
                stream.feed(piece)
            stream.finish()
            same(stream.message, message, "the cuts matter")


def test_a_lone_marker_in_prose_is_prose(format: Format) -> None:
    """An opener without its header is content, and that is reported."""
    implied = {node.value for node in walk(format.tree(Options(tools=True))) if isinstance(node, Implied)}
    openers = call_openers(format)
    bodies = [node for node in walk(format.tree(Options(tools=True))) if isinstance(node, Body)]
    marks = {text for body in bodies if body.marks is not None for text in first(body.marks)}
    for opener in openers:
        for text in (f"One writes {opener.strip()} to call. So be it.", f"Say {opener.strip()}"):
            message = bound(format).parse(text)
            if {call.name for call in message.tool_calls} & implied:
                continue  # no header follows this opener: what does is the call
            markup = [text[part.start : part.end] for part in message.regions if part.kind == "markup"]
            if opener in marks and [one.strip() for one in markup] == [opener]:
                continue  # it separates messages as well
            assert not message.tool_calls and message.content == text
            reported = any(
                diagnostic.code in ("stray-marker", "truncated", "malformed")
                for diagnostic in message.diagnostics
            )
            assert reported or opener.strip() not in openers  # it opens nothing but a line
            check_cuts(bound(format), text, [list(text)])


def test_strict_mode_raises_where_the_format_is_left(format: Format) -> None:
    """C5: if the lenient reading complains, OutputError has code, position, expectation and the message so far."""
    for number, text in enumerate(broken(format, 60, seed=1)):
        turn = bound(format)
        whole = turn.parse(text)
        serious = [d for d in whole.diagnostics if d.code in ("malformed", "truncated")]
        pieces = [text] if number % 2 else list(text)
        stream = turn.stream(strict=True)
        try:
            for piece in pieces:
                stream.feed(piece)
            stream.finish()
        except OutputError as error:
            assert serious, f"strict mode alone complains: {error}, {text!r}"
            told = (error.code, error.position, error.expected)
            assert told == (serious[0].code, serious[0].position, serious[0].expected)
            assert str(error) and error.message.text == text[: len(error.message.text)]
            again = pickle.loads(pickle.dumps(error))
            assert (again.code, again.position, again.expected, str(again)) == (*told, str(error))
        else:
            assert not serious, f"strict mode is silent about {serious[0]}, {text!r}"


def test_forks_are_independent(format: Format) -> None:
    """Text fed to a fork does not reach its origin, and the reverse."""
    chance = random.Random(7)
    turn = bound(format)
    for text, other in zip(broken(format, 40, seed=2), broken(format, 40, seed=3), strict=True):
        at = chance.randrange(len(text) + 1)
        stream = turn.stream()
        stream.feed(text[:at])
        fork = stream.fork()
        fork.feed(other)
        stream.feed(text[at:])
        fork.finish()
        stream.finish()
        same(stream.message, turn.parse(text), "the fork changed its origin")
        same(fork.message, turn.parse(text[:at] + other), "the origin changed the fork")


def test_pickled_at_every_cut(format: Format) -> None:
    """A stream that is pickled between two pieces continues as usual."""
    turn = bound(format)
    for text in [*samples(format), *broken(format, 5, seed=4)]:
        whole = turn.parse(text)
        stream = turn.stream()
        for at, character in enumerate(text):
            if at % (1 + len(text) // 200) == 0:
                again = pickle.loads(pickle.dumps(stream))
                again.feed(text[at:])
                again.finish()
                same(again.message, whole, f"pickled at {at}")
            stream.feed(character)


def test_inline_reasoning_keeps_all_of_it(format: Format) -> None:
    """With ``reasoning="inline"``, reasoning and its markers are content. The calls are the same."""
    turn = bound(format)
    for text in [*samples(format), *broken(format, 40, seed=5)]:
        split, inline = turn.parse(text), check_cuts(turn, text, [list(text)], reasoning="inline")
        assert not inline.reasoning and all(region.kind != "reasoning" for region in inline.regions)
        for region in split.regions:
            if region.kind == "reasoning":
                assert text[region.start : region.end] in inline.content
        calls = [(call.name, call.arguments, call.complete) for call in split.tool_calls]
        assert [(call.name, call.arguments, call.complete) for call in inline.tool_calls] == calls
