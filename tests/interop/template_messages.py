"""A format's own messages, and what a response template that is written from it must say of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from making import tool

from chatparsers import Format, list_formats
from chatparsers.errors import ChatParsersError
from chatparsers.interop import WrittenTemplate

NAMES = [info.name for info in list_formats() if info.origin == "chatparsers"]
TOOLS = [
    tool("get_weather", {"city": {"type": "string"}, "days": {"type": "integer"}}, ["city"]),
    tool("get_time", {}),
]
CALL = ("get_weather", {"city": "Oslo & 'Rome'", "days": 3})
Said = tuple[str, str, list[Any]]
"""A thought, a text, and calls as pairs of name and arguments."""
MESSAGES: list[Said] = [
    ("", "It is raining.\n\n*Very* much: 1 < 2.", []),
    ("Hm.\n\nWell.", "It is raining.", []),
    ("", "", [CALL]),
    ("", "", [("get_time", {})]),
    ("", "", [CALL, ("get_time", {}), ("get_weather", {"city": "Paris"})]),
    ("", "I look.", [CALL]),
    ("Hm.", "", [CALL]),
]


def texts(format: Format, written: WrittenTemplate) -> Iterator[tuple[str, Said]]:
    """What the format writes of each message, with the end of the turn, as far as the template has the message's
    fields and does not say that it is lost."""
    fields = written.spec["fields"]
    after_text = any(line.startswith("a call after text") for line in written.lost)
    for said in MESSAGES:
        reasoning, content, calls = said
        if (reasoning and not {"reasoning_content", "thinking"} & set(fields)) or (
            calls and ("tool_calls" not in fields or (content and after_text))
        ):
            continue
        functions = [{"name": name, "arguments": json.dumps(arguments)} for name, arguments in calls]
        message = {
            "role": "assistant",
            "content": content,
            **({"reasoning_content": reasoning} if reasoning else {}),
            "tool_calls": [
                {"id": f"abcdefg{number:02d}", "type": "function", "function": function}
                for number, function in enumerate(functions)
            ],
        }
        try:
            yield format.render(message, TOOLS) + "".join(format.stops[:1]), said
        except ChatParsersError:
            continue


def in_short(message: dict[str, Any]) -> Said:
    """A message as another reader gives it."""
    functions = [call["function"] for call in message.get("tool_calls", ())]
    calls = [(function["name"], function["arguments"]) for function in functions]
    reasoning = message.get("reasoning_content", message.get("thinking", ""))
    return reasoning.strip(), message.get("content", "").strip(), calls
