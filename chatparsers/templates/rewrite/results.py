"""Results belong to their calls by id: each stands after the answer that called, in the order of the calls.

Most templates tie a result to its call by its place alone, so two results in another order are each other's. A client
sends them as they came; one may come after words of the user, or not at all.

1. A result with an id belongs to the last answer before it that called by this id. A second one for the same call comes
   after the first.
2. A result without a known id answers the first call that is left of the answers right before it.
3. A call that still has none gets a stand-in, if a message follows its answer.

Invariants: no message of the caller is left out or comes twice. Messages in their usual order are the same list.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ..jinja.traced import untraced
from .outline import Message

ORDER, MISSING = "result_order", "missing_result"
"""The polyfills that put results after their calls, and stand-ins in the place of those that are missing."""
NO_RESULT = "No result was given for this call."
"""What a stand-in says."""
Steps = Iterable[tuple[int, int]]
"""From and to of each answer that calls, with the results right after it: `Survey.steps`."""


class Settled(NamedTuple):
    """``names``: the polyfills that were used. ``warnings``: which results have no call of their own, and which calls
    no result."""

    messages: Sequence[Message]
    names: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def settled(messages: Sequence[Message], steps: Steps, *, missing: bool = True) -> Settled:
    """The messages, with each result after its call. ``steps``: those of a `Survey` of the messages. ``missing``:
    whether stand-ins are added."""
    if _in_order(messages, steps):
        return Settled(messages)
    answers, warnings = _answers(messages)
    moved = {at for answer in answers for at, _, _ in answer.results}
    by_place = {answer.place: answer for answer in answers}
    out: list[Message] = []
    given: list[Message] = []  # as out, without stand-ins
    stand_ins = False
    for place, message in enumerate(messages):
        if place in moved:
            continue
        answer = by_place.get(place)
        added = [] if answer is None else [(number, result) for _, number, result in answer.results]
        out.append(message)
        given += (message, *(result for _, result in sorted(added, key=_number)))
        if answer is not None and missing and answer.followed:
            for number in answer.free:
                added.append((number, answer.stand_in(number)))
                warnings.append(
                    f"messages[{place}].tool_calls[{number}]: no result was given: a stand-in says so"
                )
                stand_ins = True
        out += (result for _, result in sorted(added, key=_number))
    names = (ORDER,) if any(map(_other, given, messages)) else ()
    return Settled(out, (*names, MISSING) if stand_ins else names, tuple(warnings))


def _number(added: tuple[int, Message]) -> int:
    return added[0]


def _other(one: Message, other: Message) -> bool:
    return one is not other


def _in_order(messages: Sequence[Message], steps: Steps) -> bool:
    """Whether each answer's results come right after it, in the order of its calls. So they mostly do."""
    for start, end in steps:
        if messages[start].get("role") == "tool":
            return False
        ids, first = _ids(messages[start].get("tool_calls")), start + 1
        if len(ids) != end - first and (end > first or end < len(messages)):
            return False
        for place in range(first, end):
            given, wanted = messages[place].get("tool_call_id"), ids[place - first]
            if given != wanted and given and wanted:
                return False
    return True


def _ids(calls: Any) -> list[Any]:
    """The ids of calls, None for a call without one."""
    listed = calls if isinstance(calls, (list, tuple)) else ()
    return [
        call.get("id") or None if type(call) is dict or isinstance(call, Mapping) else None for call in listed
    ]


class _Answer:
    """An answer that calls. ``results``: those found, each with its place, the number of its call, and the message.
    ``free``: the calls without one. ``followed``: whether a message that is no answer comes after it."""

    def __init__(self, place: int, message: Message) -> None:
        self.place = place
        self.calls: Any = message.get("tool_calls")
        self.ids = _ids(self.calls)
        self.free = list(range(len(self.ids)))
        self.results: list[tuple[int, int, Message]] = []
        self.followed = False

    def take(self, place: int, result: Message, number: int) -> None:
        """Takes the result of a call, which gets the call's id if it has another one."""
        id, given = self.ids[number] if number < len(self.ids) else None, result.get("tool_call_id")
        if id and given and given != id:
            result = {**result, "tool_call_id": id}
        self.results.append((place, number, result))
        if number in self.free:
            self.free.remove(number)

    def stand_in(self, number: int) -> Message:
        """What stands for the result of a call."""
        function = self.calls[number]
        function = function.get("function", function) if isinstance(function, Mapping) else {}
        name = function.get("name") if isinstance(function, Mapping) else None
        return _stand_in(*(None if one is None else str(untraced(one)) for one in (self.ids[number], name)))


@lru_cache(maxsize=256)
def _stand_in(id: str | None, name: str | None) -> Message:
    """Always the same object, as a conversation that grows looks for what is new."""
    message = {"role": "tool", "tool_call_id": id, "name": name, "content": NO_RESULT}
    return {key: value for key, value in message.items() if value is not None}


def is_stand_in(message: Message) -> bool:
    """Whether it is a stand-in, and no message of the caller."""
    return message.get("content") is NO_RESULT


def _answers(messages: Sequence[Message]) -> tuple[list[_Answer], list[str]]:
    """The answers that call, each with its results; and what is to be said of ids."""
    answers: list[_Answer] = []
    near: list[_Answer] = []  # those that a result without an id may answer
    unknown: list[tuple[int, Message, list[_Answer]]] = []
    warnings: list[str] = []
    last = ""
    for place, message in enumerate(messages):
        role = message.get("role")
        if role == "assistant":
            near = near if last == "assistant" else []
            if message.get("tool_calls"):
                near = [*near, _Answer(place, message)]
                answers.append(near[-1])
        elif role == "tool":
            id = message.get("tool_call_id")
            answer = next((one for one in reversed(answers) if id in one.ids), None) if id else None
            if answer is None:
                unknown.append((place, message, near))
                if id and (not near or any(map(_known, near))):
                    warnings.append(f"messages[{place}].tool_call_id: no call before it has this id")
            else:
                numbers = [number for number in answer.free if answer.ids[number] == id]
                if numbers:
                    answer.take(place, message, numbers[0])
                else:
                    warnings.append(f"messages[{place}].tool_call_id: the call has a result before this one")
                    if answer in near:
                        answer.take(place, message, answer.ids.index(id))
        last = str(role)
        if role != "assistant":
            for answer in near:
                answer.followed = True
    for place, message, some in unknown:
        answer = next((one for one in some if one.free), None)
        if answer is not None:
            answer.take(place, message, answer.free[0])
        elif some:
            some[-1].take(place, message, len(some[-1].ids))
    return answers, warnings


def _known(answer: _Answer) -> bool:
    return any(id is not None for id in answer.ids)
