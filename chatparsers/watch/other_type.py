"""Arguments of another JSON type than their tool declares: they stay as the model wrote them, and are told."""

from __future__ import annotations

from collections.abc import Sequence

from ..answers.format import Turn
from ..streams.message import Diagnostic, Message

_SNIPPET = 40


def other_type(turn: Turn, message: Message, ids: Sequence[int] = ()) -> list[Diagnostic]:
    """The arguments that hold a value of another JSON type than declared, with the code ``other-type``: one diagnostic
    for each argument, for its first such value, at the place where its call begins.

    Only types are looked at, in complete calls of declared tools; `Turn.stream` with ``check=True`` looks at the whole
    schema. ``message`` is what ``turn`` read, and ``ids`` what it read it from, if not from text. An answer with such a
    value is read once more, for the places of its calls.

    >>> turn = chatparsers.get_format("hermes-2-pro").bind(tools=tools)
    >>> message = turn.parse('<tool_call>{"name": "get_weather", "arguments": {"city": 5}}</tool_call>')
    >>> other_type(turn, message)[0].expected
    'string at $.city, not number'
    """
    found = [
        (index, expected)
        for index, call in enumerate(message.tool_calls)
        if (tool := turn.tools.get(call.name)) is not None and (given := call.parsed_arguments)
        for name, value in given.items()
        if (expected := tool.argument(name).other_type(value, f"$.{name}"))
    ]
    if not found:
        return []
    stream = turn.stream()
    stream.feed(list(ids) if ids else message.text)
    stream.finish()
    places = [at for at, _ in stream._named_calls()]
    return [
        Diagnostic("other-type", at, expected, message.text[at : at + _SNIPPET], index)
        for index, expected in found
        for at in places[index : index + 1]
    ]
