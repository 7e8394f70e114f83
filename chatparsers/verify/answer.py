"""What a client of a server sees of one answer, in one shape for all APIs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

Finish: TypeAlias = Literal["stop", "length", "calls"]


@dataclass(slots=True)
class AnswerCall:
    """A call as the client got it. ``arguments`` should be JSON text, and may be anything."""

    id: object = None
    name: object = None
    arguments: Any = ""

    @property
    def value(self) -> object:
        """The arguments as data; `NOT_JSON` if they are no JSON."""
        return data_of(self.arguments)


NOT_JSON = "arguments that are no JSON"


def data_of(arguments: object) -> object:
    """The data in a call's arguments, which some APIs give as data."""
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except (ValueError, RecursionError):
        return NOT_JSON


@dataclass(slots=True)
class Fault:
    """What is wrong with the shape of an answer. ``code``: of the row that it becomes."""

    code: str
    what: str
    shown: object = None


@dataclass(slots=True)
class Answer:
    """The answer. ``finish``: why it ended, ``reason`` as the API spells it. ``completion`` and ``prompt``: the counts
    of tokens; ``cached``: how many of the prompt's were cached. ``faults``: what was wrong in the shape."""

    content: str = ""
    reasoning: str = ""
    calls: list[AnswerCall] = field(default_factory=list)
    finish: Finish | None = None
    reason: object = None
    id: str | None = None
    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    faults: list[Fault] = field(default_factory=list)

    def fault(self, what: str, shown: object = None, code: str = "stream-shape") -> None:
        """Notes a fault of the shape; the same one in many events is noted once."""
        if all(each.what != what for each in self.faults):
            self.faults.append(Fault(code, what, shown))

    def plain(self) -> dict[str, Any]:
        """What two answers are compared by. Arguments that were cut off are compared as text."""
        return {
            "content": self.content,
            "reasoning": self.reasoning,
            "calls": [
                (call.name, call.arguments if call.value == NOT_JSON else call.value) for call in self.calls
            ],
            "finish": self.finish,
        }


def count(value: object) -> int | None:
    """A count of tokens; None for what cannot be one."""
    return value if type(value) is int and value >= 0 else None


def cached_of(details: object) -> int | None:
    """How many of a prompt's tokens were cached, in OpenAI's ``prompt_tokens_details`` and ``input_tokens_details``."""
    return count(details.get("cached_tokens")) if isinstance(details, dict) else None


def text(value: object) -> str:
    return value if isinstance(value, str) else ""


def objects(value: object) -> Iterator[dict[str, Any]]:
    """The objects of a list; nothing for anything else."""
    yield from (each for each in value if isinstance(each, dict)) if isinstance(value, list) else ()
