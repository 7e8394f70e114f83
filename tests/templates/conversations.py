"""Conversations with a needle in every part, and the needles that a rendering loses.

A needle is a word that occurs nowhere else. The needles that a shape must show are collected from its own messages and
tools, so that a new shape needs no list of its own. The reasoning of earlier turns is left out: models are trained to
have it dropped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from making import tool

from chatparsers import Chat, load

Message = dict[str, Any]


def load_chat(template: Path | str) -> Chat:
    """The chat of a template's file, or of a built-in template by its name."""
    given: dict[str, Any] = {"source" if isinstance(template, Path) else "template": template}
    return load(**given, bos_token="<BOS>", eos_token="</s>")


_NEEDLE = re.compile(r"zq[a-z]+\d*")


def _tool(name: str, description: str, **arguments: str) -> dict[str, Any]:
    properties = {key: {"type": "string", "description": text} for key, text in arguments.items()}
    return tool(name, properties, [*properties][:1], description=description)


TOOLS = [
    _tool("zqweather", "Tells zqforecast.", zqcity="Where zqplace.", zqday="When zqtime."),
    _tool("zqclock", "Tells zqhour.", zqzone="Which zqarea."),
]


def _call(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call-of-any-form-{number}", "type": "function", "function": function}


def _result(number: int, name: str, content: str) -> Message:
    return {"role": "tool", "tool_call_id": f"call-of-any-form-{number}", "name": name, "content": content}


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _assistant(text: str, *calls: dict[str, Any], reasoning: str = "") -> Message:
    message: Message = {"role": "assistant", "content": text}
    if reasoning:
        message["reasoning_content"] = reasoning
    if calls:
        message["tool_calls"] = list(calls)
    return message


@dataclass(frozen=True)
class Shape:
    """A conversation: its messages, tools and what the request says of thinking."""

    messages: tuple[Message, ...]
    tools: tuple[dict[str, Any], ...] = ()
    thinking: bool | None = None
    refused: bool = field(default=False)
    """Whether no text template can show all of it (pictures): it must be refused, or the part must be there."""


_ASK = _user("Zqask please.".lower())
_SYSTEM = {"role": "system", "content": "You are zqsystem."}
_WEATHER = _call(1, "zqweather", zqcity="zqoslo", zqday="zqmonday")
_CLOCK = _call(2, "zqclock", zqzone="zqutc")
_ONLY_CALL = {"role": "assistant", "tool_calls": [_WEATHER]}
"""An answer that calls needs no content in OpenAI's API."""
_COLD = _result(1, "zqweather", "It is zqcold there.")
_NOON = _result(2, "zqclock", "It is zqnoon there.")
_LAST = _user("Then zqlast.")

SHAPES: dict[str, Shape] = {
    "user": Shape((_ASK,)),
    "system": Shape((_SYSTEM, _ASK)),
    "turns": Shape((_SYSTEM, _ASK, _assistant("Answer zqone."), _LAST)),
    "tools": Shape((_ASK,), tuple(TOOLS)),
    "system, tools": Shape((_SYSTEM, _ASK), tuple(TOOLS)),
    "call": Shape((_ASK, _assistant("", _WEATHER)), tuple(TOOLS)),
    "call, result": Shape((_ASK, _ONLY_CALL, _COLD), tuple(TOOLS)),
    "call, result, answer": Shape(
        (_SYSTEM, _ASK, _assistant("", _WEATHER), _COLD, _assistant("Answer zqone."), _LAST), tuple(TOOLS)
    ),
    "text beside call": Shape(
        (_ASK, _assistant("Looking zqup.", _WEATHER), _COLD, _assistant("Answer zqone."), _LAST), tuple(TOOLS)
    ),
    "parallel": Shape(
        (_ASK, _assistant("", _WEATHER, _CLOCK), _COLD, _NOON, _assistant("Answer zqone."), _LAST),
        tuple(TOOLS),
    ),
    "text beside parallel": Shape(
        (_SYSTEM, _ASK, _assistant("Looking zqup.", _WEATHER, _CLOCK), _COLD, _NOON), tuple(TOOLS)
    ),
    "calls in a row": Shape(
        (
            _ASK,
            _assistant("", _WEATHER),
            _COLD,
            _assistant("", _CLOCK),
            _NOON,
            _assistant("Answer zqone."),
            _LAST,
        ),
        tuple(TOOLS),
    ),
    "call, no tools": Shape((_ASK, _assistant("", _WEATHER), _COLD, _assistant("Answer zqone."), _LAST)),
    "reasoning": Shape(
        (
            _ASK,
            _assistant("Answer zqone.", reasoning="Hm."),
            _LAST,
            _assistant("Answer zqtwo.", reasoning="Hm, hm."),
            _user("And zqmore."),
        ),
    ),
    "reasoning, call": Shape(
        (
            _ASK,
            _assistant("", _WEATHER, reasoning="Hm."),
            _COLD,
            _assistant("Answer zqone.", reasoning="Oh."),
            _LAST,
        ),
        tuple(TOOLS),
    ),
    "thinking on": Shape((_SYSTEM, _ASK), thinking=True),
    "thinking off": Shape((_SYSTEM, _ASK), thinking=False),
    "developer": Shape(({"role": "developer", "content": "You are zqdeveloper."}, _ASK)),
    "system, developer": Shape(
        (_SYSTEM, {"role": "developer", "content": "You are zqdeveloper."}, _ASK), tuple(TOOLS)
    ),
    "systems": Shape((_SYSTEM, {"role": "system", "content": "Be zqshort."}, _ASK)),
    "late system": Shape(
        (_ASK, _assistant("Answer zqone."), {"role": "system", "content": "Be zqshort."}, _LAST)
    ),
    "late system, answer": Shape(  # a round that looks like the first one
        (
            _SYSTEM,
            _ASK,
            _assistant("Answer zqone."),
            {"role": "system", "content": "Be zqshort."},
            _LAST,
            _assistant("Answer zqtwo."),
        )
    ),
    "system after result": Shape(
        (_ASK, _assistant("", _WEATHER), _COLD, {"role": "system", "content": "Be zqshort."}), tuple(TOOLS)
    ),
    "users": Shape((_ASK, _user("Or zqagain."), _LAST)),
    "assistants": Shape((_ASK, _assistant("Answer zqone."), _assistant("And zqtwo."), _LAST)),
    "parts": Shape(
        (
            _user("x")
            | {"content": [{"type": "text", "text": "See zqpart, "}, {"type": "text", "text": "zqrest."}]},
        )
    ),
    "image": Shape(
        (
            _user("x")
            | {
                "content": [
                    {"type": "text", "text": "See zqpart."},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                ]
            },
        ),
        refused=True,
    ),
}


def needles(value: Any) -> Iterator[str]:
    """The needles in the texts of a JSON-like value, keys among them."""
    if isinstance(value, str):
        yield from _NEEDLE.findall(value)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from needles(key)
            yield from needles(item)
    elif isinstance(value, Sequence):
        for item in value:
            yield from needles(item)


def lost(shape: Shape, prompt: str) -> list[str]:
    """What of the shape is not in the rendering, or is there as JSON in JSON."""
    wanted = dict.fromkeys([*needles(list(shape.messages)), *needles(list(shape.tools))])
    found = [needle for needle in wanted if not re.search(rf"{needle}(?![a-z])", prompt)]
    calls = [call for message in shape.messages for call in message.get("tool_calls", ())]
    for call in calls:
        arguments = json.loads(call["function"]["arguments"])
        found += [f"{key} is JSON in JSON" for key in arguments if f'\\"{key}' in prompt]
    return found
