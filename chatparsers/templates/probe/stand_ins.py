"""The few messages by which a template is asked what it shows.

Every question is put with the same words. So two questions often need the same rendering, which is kept, and the trace
of one rendering answers several.
"""

from __future__ import annotations

from typing import Any

from .turns import NEEDLE

QUESTION = "Find it."
SYSTEM = "Be brief."
ANSWER = NEEDLE
THOUGHT = "The probe thinks."
FOUND = "found"
NAME = "probe_tool"
DESCRIPTION = "Looks a thing up."
KEY, VALUE = "thing", "needle in hay"
ARGUMENTS: dict[str, Any] = {"count": 7, KEY: VALUE}
"""The last one is a text: what follows it closes the call."""
IDS = ("probe0001", "probe0002")
FOREIGN_IDS = ("id-of-some-other-form-0", "id-of-some-other-form-1")

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": NAME,
            "description": DESCRIPTION,
            "parameters": {
                "type": "object",
                "properties": {
                    "count": {"type": "integer", "description": "How many."},
                    KEY: {"type": "string", "description": "What."},
                },
                "required": [KEY],
            },
        },
    }
]


def question(content: Any = QUESTION) -> dict[str, Any]:
    """A user's message."""
    return {"role": "user", "content": content}


def call_of(id: str | None = IDS[0]) -> dict[str, Any]:
    """A call of the tool."""
    call = {"type": "function", "function": {"name": NAME, "arguments": ARGUMENTS}}
    return call if id is None else {"id": id, **call}


def answer(
    content: str = ANSWER, *, thought: str = "", calls: int = 0, ids: tuple[str, ...] = IDS
) -> dict[str, Any]:
    """An assistant's message with that many calls. Without ``ids``, calls have none."""
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if thought:
        message["reasoning_content"] = thought
    if calls:
        message["tool_calls"] = [call_of(ids[number] if ids else None) for number in range(calls)]
    return message


def results(number: int, ids: tuple[str, ...] = IDS) -> list[dict[str, Any]]:
    """The results of that many calls."""
    plain = {"role": "tool", "name": NAME, "content": FOUND}
    return [{**plain, "tool_call_id": id} for id in ids[:number]] if ids else [plain] * number


def ending_in(role: str) -> list[dict[str, Any]]:
    """A conversation that ends with a message of this role."""
    short = {"user": [question()], "tool": answered(), "assistant": [question(), answer()]}
    return short.get(role) or [question(), answer(), {"role": role, "content": SYSTEM}]


def answered() -> list[dict[str, Any]]:
    """A question, a call for it with an id of no form, and its result."""
    return [
        question(),
        answer("", calls=1, ids=FOREIGN_IDS),
        {"role": "tool", "content": FOUND, "name": NAME},
    ]
