"""A message goes from format A to B and back: what comes back is equal, or a code names what is lost."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from tables import TOOLS, Draw

pytest.importorskip("pyarrow", reason="the package pyarrow is not installed")

from chatparsers import RequestError, list_formats
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


def carried(name: str, message: Message) -> tuple[Message, set[str]]:
    found, lost = carry(FORMATS[name].load(), message, TOOLS, seed=name)
    return joined(found), lost


def arguments(message: Message, *, nulls: bool) -> list[Any]:
    """The calls as names and values; with ``nulls`` False, nothing of what was null is left."""

    def bare(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: bare(item) for key, item in value.items() if item is not None}
        return [bare(item) for item in value if item is not None] if isinstance(value, list) else value

    calls = [call["function"] for call in message.get("tool_calls", ())]
    values = [(call["name"], json.loads(call["arguments"])) for call in calls]
    return values if nulls else [(name, bare(value)) for name, value in values]


def test_there_and_back_is_equal_or_named(amount: Callable[[int, int, int], int], draw: Draw) -> None:
    """Over all pairs of formats: of each, the messages that A and B both can show."""
    names = sorted(FORMATS)
    pairs = [(a, b) for a in names for b in names]
    random.Random(24).shuffle(pairs)
    pairs = pairs[: amount(60, 250, len(pairs))]
    seen: dict[str, int] = {}
    conversations = refused = 0
    kept: dict[tuple[str, str], tuple[Message, set[str]] | None] = {}

    def once(name: str, message: Message) -> tuple[Message, set[str]] | None:
        key = name, json.dumps(message, sort_keys=True)
        if key not in kept:
            try:
                kept[key] = carried(name, message)
            except RequestError:  # the format has no place for calls
                kept[key] = None
        return kept[key]

    messages = [draw.answer() for _ in range(amount(4, 4, 24))]
    for a, b in pairs:
        for message in draw.random.sample(messages, amount(1, 1, 6)):
            losses: set[str] = set()
            at: Message | None = message
            for name in (a, b, a):
                step = once(name, at) if at is not None else None
                at = None if step is None else step[0]
                losses |= set() if step is None else step[1]
            if at is None:
                refused += 1
                continue
            conversations += 1
            assert losses <= set(LOSSES)
            for code in losses:
                seen[code] = seen.get(code, 0) + 1
            assert at["content"].strip() == message["content"].strip(), (a, b)
            if "reasoning" not in losses:
                thought = message.get("reasoning_content", "")
                assert at.get("reasoning_content", "").strip() == thought.strip(), (a, b)
            nulls = "null-argument" not in losses
            assert arguments(at, nulls=nulls) == arguments(message, nulls=nulls), (a, b)
            if not losses & {"arguments-respelt", "null-argument"}:
                texts = [
                    [call["function"]["arguments"] for call in some.get("tool_calls", ())]
                    for some in (at, message)
                ]
                assert texts[0] == texts[1], (a, b)
            if "ids" not in losses:
                ids = [[call["id"] for call in some.get("tool_calls", ())] for some in (at, message)]
                assert ids[0] == ids[1], (a, b)
    print(f"{conversations} conversations over {len(pairs)} pairs, {refused} refused; losses: {seen}")
    assert conversations > len(pairs) / 2 and {"ids", "reasoning", "arguments-respelt"} <= seen.keys()


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
