"""Going on after a cut is reading the whole: `Turn.rest`, for every format, by text and by ids.

What the prompt already wrote of an answer is read with the request's tools: their types, and their names, whatever
characters these hold.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from making import bytewise, tool

from chatparsers import Diagnostic, Format, Message, Turn
from chatparsers.errors import ChatParsersError
from chatparsers.testing import load_cases
from chatparsers.testing.cases import bound

_NEEDLE = Path(__file__).parents[1] / "needle"

# Texts that are JSON of another type, and arguments whose names hold other characters than names usually do.
ARGUMENTS: list[tuple[str, dict[str, Any]]] = [
    ("write_file", {"path": "package.json", "content": '{"name": "x", "private": true}'}),
    ("write_file", {"path": "a", "content": "6120"}),
    ("write_file", {"path": "true", "content": "[1, 2]"}),
    ("list_files", {"page[size]": 20, "order by": "name"}),
    ("list_files", {"page[size]": 5, "filter": {"deep": [1, {"é": None}]}}),
]
TOOLS = [
    tool("write_file", {"path": {"type": "string"}, "content": {"type": "string"}}, ["path", "content"]),
    tool(
        "list_files",
        {"page[size]": {"type": "integer"}, "order by": {"type": "string"}, "filter": {"type": "object"}},
    ),
]


def texts(format: Format) -> Iterator[str]:
    """Turns of the format: content, and a call, or two of them where the format writes several."""
    for number, (name, arguments) in enumerate(ARGUMENTS):
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        calls = [{"id": "abcdefgh1", "type": "function", "function": function}]
        if number == 0 and format.features.parallel:
            other = {"name": name, "arguments": '{"path": "b", "content": "null"}'}
            calls.append({"id": "abcdefgh2", "type": "function", "function": other})
        try:
            yield format.render({"role": "assistant", "content": "", "tool_calls": calls}, TOOLS)
        except ChatParsersError:
            continue  # a name that this format cannot write


def meaning(message: Message, before: int = 0) -> tuple[Any, ...]:
    """What a message says but for the ids of calls, without the first calls. Diagnostics without their places."""
    calls = [(call.name, call.arguments, call.complete) for call in message.tool_calls[before:]]

    def told(one: Diagnostic) -> tuple[Any, ...]:
        return one.code, one.expected, None if one.call is None else one.call - before

    return calls, message.complete, [told(one) for one in message.diagnostics]


def open_call(turn: Turn, piece: Any) -> int:
    """How many calls are over after this piece."""
    stream = turn.stream()
    stream.feed(piece)
    made = len(stream.message.tool_calls)
    state = stream.state
    return state.call if state.kind == "call" and state.call is not None else made


def goes_on(turn: Turn, whole: Message, first: Any, second: Any, step: int) -> None:
    """``second`` is read after ``first`` as it is in the whole text: at once, and in pieces."""
    rest = turn.rest(first)
    stream = rest.stream()
    for at in range(0, len(second), step):
        stream.feed(second[at : at + step])
    stream.finish()
    wanted = meaning(whole, open_call(turn, first))
    assert meaning(rest.parse(second)) == meaning(stream.message) == wanted, (first, second)


@pytest.mark.one_in(8)
def test_the_rest_after_a_cut_is_read_as_the_whole(format: Format, amount: Callable[..., int]) -> None:
    """Each text at every cut; and cut once more, where the first rest is the beginning."""
    if not format.features.tools:
        return
    turn = format.bind(tools=TOOLS, id_seed="a")
    for text in texts(format):
        whole = turn.parse(text)
        assert whole.complete and not whole.diagnostics, text
        every = max(1, len(text) // amount(16, 160, 4000))
        for cut in range(0, len(text) + 1, every):
            goes_on(turn, whole, text[:cut], text[cut:], 3)
            middle = cut + (len(text) - cut) // 2
            twice = turn.rest(text[:cut]).rest(text[cut:middle])
            calls = open_call(turn, text[:middle])
            assert meaning(twice.parse(text[middle:])) == meaning(whole, calls), (
                text[:cut],
                text[cut:middle],
            )


@pytest.mark.one_in(8)
def test_the_same_by_ids(format: Format, amount: Callable[..., int]) -> None:
    if not format.features.tools:
        return
    tokenizer = bytewise(*format.preserved_tokens, *format.stops)
    turn = format.bind(tools=TOOLS, id_seed="a", tokenizer=tokenizer)
    for text in texts(format):
        ids = tokenizer.encode(text).ids
        whole = turn.parse(ids)
        every = max(1, len(ids) // amount(6, 50, 1000))
        for cut in range(0, len(ids) + 1, every):
            try:
                turn.rest(ids[:cut])
            except ChatParsersError:
                continue  # a part of a character
            goes_on(turn, whole, ids[:cut], ids[cut:], 3)


@pytest.mark.one_in(8)
def test_half_a_value_is_not_complete_after_two_cuts(format: Format) -> None:
    """What is gone on with and cut off again is cut off."""
    if not format.features.tools:
        return
    turn = format.bind(tools=TOOLS, id_seed="a")
    for text in texts(format):
        for share in (0.5, 0.7):
            first, second = int(len(text) * share), int(len(text) * (share + 0.1))
            once, twice = turn.parse(text[:second]), turn.rest(text[:first]).parse(text[first:second])
            assert meaning(twice) == meaning(once, open_call(turn, text[:first])), (
                text[:first],
                text[first:second],
            )


@pytest.mark.one_in(8)
def test_what_broke_before_the_cut_stays_as_it_was(format: Format, amount: Callable[..., int]) -> None:
    """Texts of models and frozen finds: calls from the open one on, broken ones too, with all that is told of them;
    and the content and the reasoning after the cut."""
    found_ones = [
        (path, case) for path, case in load_cases(_NEEDLE / "found") if case["format"] == format.name
    ]
    for path, case in (*load_cases(_NEEDLE / "cases" / format.name), *found_ones):
        name = path.stem
        turn, text = bound(format, case), case["text"]
        whole = turn.parse(text)
        every = max(1, len(text) // amount(4, 30, 4000))
        for cut in range(len(name) % every, len(text) + 1, every):
            made = open_call(turn, text[:cut])
            found = turn.rest(text[:cut]).parse(text[cut:])
            assert meaning(found)[0] == meaning(whole, made)[0], (name, cut)
            for kind in ("content", "reasoning"):
                after = [region for region in whole.regions if region.kind == kind and region.end > cut]
                wrote = "".join(text[max(region.start, cut) : region.end] for region in after)
                said = getattr(found, kind)
                assert said == wrote or not getattr(whole, kind).endswith(wrote), (name, cut, said, wrote)
            told = meaning(found)[2]
            for one in whole.diagnostics:
                if one.position >= cut or (one.call is not None and one.call >= made):
                    wanted = one.code, one.expected, None if one.call is None else one.call - made
                    assert wanted in told, (name, cut, wanted)
