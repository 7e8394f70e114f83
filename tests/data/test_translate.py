"""A message goes from format A to B and back: what comes back is equal, or a code names what is lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tables import TOOLS, Draw

pa = pytest.importorskip("pyarrow", reason="the package pyarrow is not installed")

from chatparsers import RequestError, list_formats
from chatparsers.data import Translate
from chatparsers.data.carry import Changed, carry, differences
from chatparsers.data.shapes.talk import LOSSES

Message = dict[str, Any]
FORMATS = {info.name: info for info in list_formats()}


def joined(messages: list[Message]) -> Message:
    """The messages that one was split into as one again."""
    whole: Message = {"role": "assistant", "content": "".join(m["content"] for m in messages)}
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    thoughts = [message["reasoning_content"] for message in messages if "reasoning_content" in message]
    return (
        whole
        | ({"tool_calls": calls} if calls else {})
        | ({"reasoning_content": thoughts[0]} if thoughts else {})
    )


class Carried:
    """Formats over messages: each format carries each message once. What it makes of a message depends on nothing else,
    so a way over several formats is a chain of look-ups."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.known: dict[str, int] = {}
        self.steps: dict[tuple[str, int], tuple[int, frozenset[str]] | None] = {}

    def place(self, message: Message) -> int:
        """The number of a message; equal messages have one."""
        found = self.known.setdefault(json.dumps(message, sort_keys=True), len(self.messages))
        if found == len(self.messages):
            self.messages.append(message)
        return found

    def step(self, name: str, at: int) -> tuple[int, frozenset[str]] | None:
        """What a format makes of a message, and the losses; None if it has no place for calls."""
        key = name, at
        if key not in self.steps:
            try:
                found, lost = carry(FORMATS[name].load(), self.messages[at], TOOLS, seed="seed")
                self.steps[key] = self.place(joined(found)), frozenset(lost)
            except RequestError:
                self.steps[key] = None
        return self.steps[key]

    def way(self, names: tuple[str, ...], at: int) -> tuple[int, frozenset[str]] | None:
        """The message behind all of these formats, and all losses."""
        lost: frozenset[str] = frozenset()
        for name in names:
            step = self.step(name, at)
            if step is None:
                return None
            at, lost = step[0], lost | step[1]
        return at, lost


def arguments(message: Message, *, nulls: bool) -> list[Any]:
    """The calls as names and values; with ``nulls`` False, nothing of what was null is left."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: bare(item) for key, item in value.items() if item is not None}
        return [bare(item) for item in value if item is not None] if isinstance(value, list) else value

    calls = [call["function"] for call in message.get("tool_calls", ())]
    values = [(call["name"], json.loads(call["arguments"])) for call in calls]
    return values if nulls else [(name, bare(value)) for name, value in values]


def unnamed(message: Message, back: Message, losses: frozenset[str]) -> Iterator[str]:
    """What differs between a message and what came back, and no code says."""
    yield from losses - set(LOSSES)
    if back["content"].strip() != message["content"].strip():
        yield "content"
    if "reasoning" not in losses:
        thoughts = [some.get("reasoning_content", "").strip() for some in (message, back)]
        if thoughts[0] != thoughts[1]:
            yield "reasoning"
    nulls = "null-argument" not in losses
    if arguments(back, nulls=nulls) != arguments(message, nulls=nulls):
        yield "arguments"
    calls = [some.get("tool_calls", ()) for some in (message, back)]
    if not losses & {"arguments-respelt", "null-argument"}:
        one, other = ([call["function"]["arguments"] for call in some] for some in calls)
        if one != other:
            yield "the spelling of arguments"
    if "ids" not in losses:
        one, other = ([call["id"] for call in some] for some in calls)
        if one != other:
            yield "ids"


def test_there_and_back_is_equal_or_named(amount: Callable[[int, int, int], int], draw: Draw) -> None:
    """Over all pairs of formats, from A to B and back, the same random messages for each pair. Gemma's respell JSON."""
    names = sorted({"gemma-4", *draw.random.sample(sorted(FORMATS), amount(8, len(FORMATS), len(FORMATS)))})
    pairs = [(a, b) for a in names for b in names]
    seen: Counter[str] = Counter()
    back = refused = 0
    for _ in range(amount(8, 3, 1000)):
        message, carried = draw.answer(), Carried()
        start = carried.place(message)
        judged: dict[tuple[int, frozenset[str]], list[str]] = {}
        for a, b in pairs:
            found = carried.way((a, b, a), start)
            if found is None:
                refused += 1
                continue
            back += 1
            seen.update(found[1])
            if found not in judged:
                judged[found] = list(unnamed(message, carried.messages[found[0]], found[1]))
            assert not judged[found], (a, b, judged[found], message, carried.messages[found[0]])
    print(f"{back} messages there and back over {len(pairs)} pairs, {refused} refused; losses: {dict(seen)}")
    assert back > len(pairs) / 2 and {"ids", "reasoning", "arguments-respelt"} <= seen.keys()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"reasoning_content": None}, "reasoning"),
        ({"tool_calls": [("other", '{"a": 1, "b": null}')]}, "ids"),
        ({"tool_calls": [("id", '{"b": null, "a":1}')]}, "arguments-respelt"),
        ({"tool_calls": [("id", '{"a": 1}')]}, "null-argument"),
        ({"tool_calls": [("id", '{"a": 1, "b": "None"}')]}, "null-argument"),
        ({"tool_calls": [("id", '{"a": 2, "b": null}')]}, None),
        ({"tool_calls": [("id", '{"a": true, "b": null}')]}, None),
        ({"tool_calls": []}, None),
        ({"content": "other"}, None),
        ({"reasoning_content": "other"}, None),
    ],
)
def test_a_difference_has_its_code_and_any_other_is_an_error(change: Message, code: str | None) -> None:
    def made(calls: list[tuple[str, str]]) -> list[Message]:
        return [{"id": id, "function": {"name": "f", "arguments": text}} for id, text in calls]

    calls = [("id", '{"a": 1, "b": null}')]
    message: Message = {"content": "x", "reasoning_content": "y", "tool_calls": calls}
    back = {**message, **change}
    one, other = ({**some, "tool_calls": made(some["tool_calls"])} for some in (message, back))
    if code is None:
        with pytest.raises(Changed):
            differences(one, other)
    else:
        assert code in differences(one, other)


def test_a_thought_that_is_dropped_is_lost_though_its_words_stand_in_the_answer() -> None:
    messages = [
        {"role": "user", "content": "The sum?"},
        {"role": "assistant", "content": "The result is 4.", "reasoning_content": "4"},
        {"role": "user", "content": "And then?"},
        {"role": "assistant", "content": "5", "reasoning_content": "4 and one"},
    ]
    for count, losses in ((2, []), (4, ["reasoning"])):
        table = Translate(to="qwen3")(pa.table({"messages": [messages[:count]]}))
        assert table["losses"].to_pylist() == [losses]
