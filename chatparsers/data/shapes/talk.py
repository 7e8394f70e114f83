"""A conversation that is being made of a row: messages, tools, what has no place in them, and what was lost.

Ids of calls that a row does not have follow from the row's seed. Results without an id answer the open calls in order.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ...streams.call import call_id

LOSSES = (
    "ids",
    "reasoning",
    "empty-reasoning",
    "text-after-calls",
    "order",
    "several-calls",
    "arguments-not-json",
    "null-argument",
    "arguments-respelt",
    "results-joined",
    "result-name",
    "signature",
    "train-mask",
    "names-in-prose",
    "as-text",
    "rounded",
    "not-finite",
)
"""Every code that a column ``losses`` can hold."""

Call = tuple[str | None, str, Any]
"""The id (None if the row has none), the name and the arguments: an object, or its JSON text."""


class Unreadable(Exception):
    """A row cannot be read. The text says what was expected and what was found."""


def read_json(value: Any, expected: str, refusal: type[Exception] = Unreadable) -> Any:
    """What JSON text says, None if it is blank; any other value as it is. Raises ``refusal``, which says what was
    ``expected``, if it is no JSON."""
    if not isinstance(value, str):
        return value
    if not value.strip():
        return None
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        raise refusal(f"{expected}, found {value!r:.60}: {error}") from error


def json_text(value: object) -> str:
    """A value as JSON text; what JSON cannot say (a date) as its text."""
    return json.dumps(value, ensure_ascii=False, default=str)


class Talk:
    """Collects what a row says. ``seed``: ids that the row does not have follow from it."""

    def __init__(self, seed: str) -> None:
        self.seed = seed
        self.messages: list[dict[str, Any]] = []
        self.tools: list[Any] = []
        self.extra: dict[str, Any] = {}
        self.error: str | None = None
        self._losses: dict[str, None] = {}
        self._calls = 0
        self._open: list[Mapping[str, Any]] = []
        self._unanswered: Counter[str] = (
            Counter()
        )  # how many calls of each id have no result, in the whole row

    @property
    def losses(self) -> list[str]:
        """The codes of what was lost, in the order of `LOSSES`."""
        return sorted(self._losses, key=LOSSES.index)

    def lose(self, *codes: str) -> None:
        """Names losses. A code that is not in `LOSSES` is a mistake of ours and raises ValueError."""
        for code in codes:
            LOSSES.index(code)
            self._losses[code] = None

    def fail(self, error: str) -> None:
        """Says what is wrong with the row; the first thing said stays."""
        self.error = self.error or error

    def keep(self, key: str, value: Any) -> None:
        """Keeps what has no place in a message. Nothing is kept for an empty value."""
        if value is not None and value != [] and value != {}:
            self.extra[key] = value

    def keep_of_message(self, left: Mapping[str, Any]) -> None:
        """Keeps the fields of the message added last that have no place in it, under ``extra.messages``."""
        found = {key: value for key, value in left.items() if value is not None}
        if found:
            self.extra.setdefault("messages", {})[str(max(len(self.messages) - 1, 0))] = found

    def say(self, role: str, content: Any) -> dict[str, Any]:
        """Adds a message that holds text, or a list of parts."""
        if role == "user":
            self._open = []
        message = {"role": role, "content": content}
        self.messages.append(message)
        return message

    def answer(self, content: Any, reasoning: str = "", calls: Sequence[Call] = ()) -> dict[str, Any]:
        """Adds an assistant's message."""
        message = self.say("assistant", content)
        if reasoning:
            message["reasoning_content"] = reasoning
        self._open = []
        if calls:
            message["tool_calls"] = []
            self.call(*calls)
        return message

    def call(self, *calls: Call) -> None:
        """Adds calls to the last message, which becomes an assistant's if it is none."""
        if not self.messages or self.messages[-1]["role"] != "assistant":
            self.answer("")
        made = self.messages[-1].setdefault("tool_calls", [])
        for id, name, arguments in calls:
            text = self._arguments(name, arguments)
            call = {
                "id": id or call_id(self.seed, self._calls),
                "type": "function",
                "function": {"name": name, "arguments": text},
            }
            self._calls += 1
            made.append(call)
            self._open.append(call)
            self._unanswered[str(call["id"])] += 1

    def _arguments(self, name: str, arguments: Any) -> str:
        if arguments is None or arguments == "":
            return "{}"
        if not isinstance(arguments, str):
            return json_text(arguments)
        found = _loaded(arguments)
        if isinstance(found, str) and isinstance(_loaded(found), dict):
            self.lose("arguments-respelt")
            return found
        if not isinstance(found, dict):
            self.lose("arguments-not-json")
            self.fail(f"call of {name}: expected a JSON object as arguments, found {arguments!r:.60}")
        return arguments

    @property
    def waiting(self) -> int:
        """How many calls have no result yet."""
        return len(self._open)

    def result(self, content: Any, id: str | None = None, name: str | None = None) -> None:
        """Adds a call's result. Without an id it answers the first call that has no result."""
        answered = None
        if id is not None:
            answered = next((call for call in self._open if call["id"] == id), None)
        elif self._open:
            answered = self._open[0]
            id = str(answered["id"])
        if id is not None:
            if not self._unanswered[id]:
                self.lose("order")
            self._unanswered[id] -= self._unanswered[id] > 0
        if answered is not None:
            self._open = [call for call in self._open if call is not answered]
            called = answered["function"]["name"]
            if name is not None and name != called:
                self.lose("result-name")
                self.extra.setdefault("result_names", []).append(name)
            name = called
        message = {"role": "tool", "content": content}
        if id is not None:
            message["tool_call_id"] = id
        if name is not None:
            message["name"] = name
        self.messages.append(message)

    def results(self, texts: Sequence[Any], whole: Any) -> None:
        """Adds results that one message holds: ``texts`` if there is one for each open call, else ``whole``."""
        if len(texts) == self.waiting:
            for text in texts:
                self.result(text)
            return
        self.lose("results-joined")
        self.result(whole)


def _loaded(text: str) -> Any:
    """What JSON text says; None if it is none, as a text with NaN is."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def _refuse(name: str) -> Any:
    raise ValueError(f"expected a number, found {name}")
