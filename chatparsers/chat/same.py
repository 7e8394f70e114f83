"""When two messages are the same one, though a client wrote it anew.

A client may leave a thought out, dump arguments in another order of keys, write 1.0 as 1, strip white space, and name
calls by ids of its own. None of that makes another answer. Every other difference does. A template that writes an
answer anew may do the same, but for the thought.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..kept import kept
from ..templates.messages import reasoning_of

_KEPT, _LONGEST = 8192, 1024
"""How many texts of arguments are known by their value, and how long they may be: each request repeats all."""


def answer_key(message: Mapping[str, Any]) -> tuple[Any, ...]:
    """Equal for two answers that say the same: their text, and their calls by order, name and value. Thoughts are not
    in it: see `same_thought`."""
    return text_of(message.get("content")).strip(), *calls_key(message)


def calls_key(message: Mapping[str, Any]) -> tuple[Any, ...]:
    """Equal for two answers with the same calls, by order, name and value."""
    return tuple(map(_call_key, message.get("tool_calls") or ()))


def same_message(given: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Whether two answers say the same, their thoughts included."""
    thoughts = reasoning_of(given).strip(), reasoning_of(own).strip()
    return thoughts[0] == thoughts[1] and answer_key(given) == answer_key(own)


def same_thought(given: Mapping[str, Any], own: Mapping[str, Any]) -> bool:
    """Whether the answer ``given`` has the thought of ``own``, or leaves it out."""
    thought = reasoning_of(given).strip()
    return not thought or thought == reasoning_of(own).strip()


def merged_answer(given: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The answer ``own`` with the ids of calls that a client ``given`` it."""
    found = dict(own)
    calls = zip(own.get("tool_calls") or (), given.get("tool_calls") or (), strict=False)
    if found.get("tool_calls"):
        found["tool_calls"] = [{**mine, "id": theirs.get("id") or mine.get("id")} for mine, theirs in calls]
    return found


def text_of(content: object) -> str:
    """The text of a content: its parts joined, each part that is no text as JSON."""
    if isinstance(content, str):
        return content
    if not isinstance(content, (list, tuple)):
        return "" if content is None else _plain(content)
    return "".join(map(_part, content))


def _part(part: object) -> str:
    text = part.get("text") if isinstance(part, Mapping) else part
    return text if isinstance(text, str) else _plain(part)


def _call_key(call: Any) -> tuple[str, str]:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return "", _plain(call)
    return str(function.get("name")), value_key(function.get("arguments"))


def value_key(arguments: Any) -> str:
    """Equal for arguments of the same JSON value; of a text that is no JSON, the text."""
    return _text_key(arguments if isinstance(arguments, str) else _plain(arguments))


@kept(_KEPT, _LONGEST)
def _text_key(arguments: str) -> str:
    try:
        return _plain(json.loads(arguments, parse_float=_number))
    except (ValueError, RecursionError):
        return arguments.strip()


def _number(text: str) -> float:
    """A number of a JSON text; a whole one is equal however it is written."""
    value = float(text)
    return int(value) if value.is_integer() else value


def _plain(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
