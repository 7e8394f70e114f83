"""Random conversations of agents, and how two answers are compared."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

from making import tool

_NAMES = ("get_weather", "find", "clock")


def _tool(name: str, **properties: Any) -> dict[str, Any]:
    return tool(name, properties, [*properties][:1], description=f"The {name}.")


TOOLS = [
    _tool(
        "get_weather",
        city={"type": "string", "description": "Where."},
        days={"type": "integer", "description": "How long."},
    ),
    _tool(
        "find",
        query={"type": "string", "description": "What."},
        exact={"type": "boolean", "description": "How."},
    ),
    _tool("clock", zone={"type": "string", "description": "Which."}),
]
_WORDS = (
    *("Oslo", "is", "cold", "and", "warm;", "user", "assistant", "4", "degrees,", "calls?"),
    *("Ærø", "永", "😀", '"quoted"', "it's", "so.\nNew", "line"),
)


def _text(random: Random, most: int = 9) -> str:
    return " ".join(random.choices(_WORDS, k=random.randint(1, most))).strip()


def _arguments(random: Random, name: str) -> dict[str, Any]:
    if name == "get_weather":
        return {
            "city": _text(random, 3),
            **({"days": random.randint(0, 99)} if random.random() < 0.5 else {}),
        }
    if name == "find":
        return {
            "query": _text(random, 4),
            **({"exact": random.random() < 0.5} if random.random() < 0.5 else {}),
        }
    return {"zone": _text(random, 2)}


def _calls(random: Random, number: int, several: bool) -> list[dict[str, Any]]:
    names = random.choices(_NAMES, k=random.choice((1, 1, 2, 3)) if several else 1)
    return [
        {
            "id": f"call{number:02}{place:03}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(_arguments(random, name), ensure_ascii=False)},
        }
        for place, name in enumerate(names)
    ]


def answer(random: Random, number: int, *, calls: bool, several: bool, thoughts: bool) -> dict[str, Any]:
    """An assistant's message."""
    message: dict[str, Any] = {"role": "assistant", "content": "" if calls else _text(random)}
    if thoughts and random.random() < 0.7:
        message["reasoning_content"] = _text(random)
    if calls:
        message["tool_calls"] = _calls(random, number, several)
    return message


def results(random: Random, message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The results of its calls, in their order."""
    return [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "name": call["function"]["name"],
            "content": _text(random),
        }
        for call in message.get("tool_calls", ())
    ]


def conversation(
    random: Random, *, tools: bool, several: bool, thoughts: bool, system: bool = True, turns: int = 3
) -> list[dict[str, Any]]:
    """Some questions, each with its calls, results and answer."""
    messages: list[dict[str, Any]] = []
    if system and random.random() < 0.5:
        messages.append({"role": "system", "content": _text(random)})
    for _ in range(random.randint(1, turns)):
        messages.append({"role": "user", "content": _text(random)})
        for _ in range(random.choice((0, 1, 1, 2)) if tools else 0):
            called = answer(random, len(messages), calls=True, several=several, thoughts=thoughts)
            messages += [called, *results(random, called)]
        messages.append(answer(random, len(messages), calls=False, several=False, thoughts=thoughts))
    return messages


def as_read(message: Mapping[str, Any]) -> Any:
    """What of an answer a template must not change: its words without white space around them, its calls' values."""
    calls = [
        (call["function"]["name"], _value(call["function"]["arguments"]))
        for call in message.get("tool_calls") or ()
    ]
    return (message.get("reasoning_content") or "").strip(), (message.get("content") or "").strip(), calls


def _value(arguments: Any) -> Any:
    return json.loads(arguments) if isinstance(arguments, str) else arguments


def request_of(chat: Any, thinking: bool | None = None) -> dict[str, Any]:
    """The options of a request in which the template shows the tools if it can."""
    switch = thinking if chat.template().probe().thinking_switches else None
    return {"thinking": switch}
