"""C3 for whole turns: a turn that is cut off has no call that the whole turn would not have.

For every prefix of a turn: a call that is complete is complete in the turn, and what a call has (its name, the id that
the model wrote, its arguments) is a prefix of what it has in the turn. A definition whose call can end before its
closer has been read, or whose name can end before anything follows it, fails here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from making import bytewise

from chatparsers import CallArguments, CallStart, Message, Turn, get_format
from chatparsers.answers.format import Format
from chatparsers.answers.idioms import Options
from chatparsers.answers.nodes import Implied
from chatparsers.core.tree import walk
from chatparsers.testing import TOOLS, load_cases
from chatparsers.testing.cases import bound

_NEEDLE = Path(__file__).parents[1] / "needle"


def cases(format: Format) -> list[tuple[str, dict[str, Any]]]:
    """The cases of a format and their names: texts of models, goldens and frozen finds."""
    own = load_cases(_NEEDLE / "cases" / format.name)
    found = [(path, case) for path, case in load_cases(_NEEDLE / "found") if case["format"] == format.name]
    return [(path.stem, case) for path, case in (*own, *found)]


def implied_names(format: Format) -> set[str]:
    """The tools whose calls have no header. Only the end of the turn shows that it was such a call."""
    return {str(node.value) for node in walk(format.tree(Options(tools=True))) if isinstance(node, Implied)}


def wrong(turn: Turn, cut: Message, whole: Message, implied: set[str], begun: int) -> Iterator[str]:
    """The differences by which the calls of a cut-off turn exceed those of the whole turn.

    ``begun``: how many calls are known before the end. A later one without arguments has its closer, and only text
    that the turn lacks could say that arguments follow it, as careless models write them.
    """
    for index, call in enumerate(cut.tool_calls):
        if index >= len(whole.tool_calls):
            yield f"call {index} is not in the turn: {call}"
            continue
        other = whole.tool_calls[index]
        if index >= begun and call.complete and call.arguments == "{}" and call.name == other.name:
            continue
        if call.complete and call != other:
            yield f"complete, and not the turn's: {call}, {other}"
        elif call.name in implied and not call.complete:
            continue
        elif call.name != other.name:
            yield f"the name is {call.name!r}, and {other.name!r} in the turn"
        elif call.id not in (other.id, turn.call_id(index)):
            yield f"the id is {call.id!r}, and {other.id!r} in the turn"
        elif not other.arguments.startswith(call.arguments):
            yield f"the arguments are {call.arguments!r}, and {other.arguments!r} in the turn"


def check(turn: Turn, pieces: Sequence[Any], reasons: Iterable[str | None]) -> list[str]:
    """The problems with the prefixes of a turn in these pieces, for each reason why it may end there."""
    whole = turn.parse("".join(pieces) if isinstance(pieces, str) else list(pieces))
    implied = implied_names(turn.format)
    found: dict[str, str] = {}
    stream = turn.stream()
    for at, piece in enumerate(pieces):
        stream.feed(piece)
        begun = len(stream.message.tool_calls)
        for reason in reasons:
            cut = stream.fork()
            cut.finish(reason)
            exempt = implied if reason == "length" else set()
            message = cut.message
            if reason is None and len(message.tool_calls) > begun:
                continue  # the end of the turn makes it a call, and here the turn went on
            for what in wrong(turn, message, whole, exempt, begun):
                found.setdefault(what, f"cut off at {at + 1} of {len(pieces)} ({reason}): {what}")
    return list(found.values())


def test_no_prefix_has_what_the_turn_has_not(format: Format) -> None:
    """Checks every prefix of every case, by character.

    A call with an implied name is whole wherever its turn ends. So it
    is compared only if the turn ends for want of tokens."""
    reasons = ["length"] if implied_names(format) else [None, "length"]
    problems = [
        f"{name}: {problem}"
        for name, case in cases(format)
        for problem in check(bound(format, case), case["text"], reasons)
    ]
    assert not problems, "\n".join(problems[:20])


@pytest.mark.one_in(8)
@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["hermes-2-pro", "glm-4-5", "qwen3-coder", "function-gemma", "gpt-oss", "mistral-nemo", "deepseek-v3"],
)
def test_no_prefix_of_ids_has_what_the_turn_has_not(name: str) -> None:
    """Checks the same with markers that are single tokens."""
    format = get_format(name)
    tokenizer = bytewise(*(*format.preserved_tokens, *format.stops))
    problems = []
    for title, case in cases(format):
        if not any(character >= "\ud800" and character <= "\udfff" for character in case["text"]):
            ids = tokenizer.encode(case["text"], add_special_tokens=False).ids
            turn = bound(format, case, tokenizer=tokenizer)
            problems += [f"{title}: {problem}" for problem in check(turn, ids, [None, "length"])]
    assert not problems, "\n".join(problems[:20])


def test_a_call_that_the_prompt_began_comes_with_the_first_piece(format: Format) -> None:
    """Once, also if that piece may begin what ends the value, by ids, and if somebody looked at the stream before or
    made a copy of it."""
    function = {"name": "get_weather", "arguments": '{"city": "Paris"}'}
    asked = {
        "role": "assistant",
        "tool_calls": [{"type": "function", "id": "abcdefghi", "function": function}],
    }
    if not format.features.tools:
        pytest.skip("the format has no calls")
    text = format.render(asked, tools=TOOLS)
    tokenizer = bytewise()
    turn = format.bind(tools=TOOLS, prefix=text[: text.index("Paris") + 3], tokenizer=tokenizer)
    for piece in ("b", "<", "\n", '"', "'", "]"):
        looked = turn.stream()
        assert looked.message.tool_calls
        ids = tokenizer.encode(piece, add_special_tokens=False).ids
        for events in (turn.stream().feed(piece), looked.feed(piece), turn.stream().feed(ids)):
            assert events and isinstance(events[0], CallStart), (piece, events)
    rest = text[text.index("Paris") + 3 :]
    stream = turn.stream()
    assert stream.feed("") == []
    for one in (stream, stream.fork()):
        told = [*one.feed(rest[:1]), *one.feed(rest[1:]), *one.finish()]
        kinds = [type(event).__name__ for event in told]
        assert kinds[0] == "CallStart" and kinds[-1] == "CallEnd", kinds
        assert {*kinds[1:-1]} == {"CallArguments"}, kinds
        said = "".join(event.text for event in told if isinstance(event, CallArguments))
        assert json.loads(said) == {"city": "Paris"} and said == one.message.tool_calls[0].arguments
