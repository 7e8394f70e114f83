"""A conversation that grows, and what its messages were rewritten and shaped into: each step looks at its new ones.

Strategy. A conversation is cut before a message of the assistant that follows another role, if all calls before it have
their results. No polyfill joins or moves messages across such a place. So the messages before it are rewritten and
shaped once and for all, and each step does the rest anew. All is dropped if the plan or the template's shape changes.

Invariant: what `Renderer.rewrite` and `messages.shape` make of the whole list is what the parts make, one after the
other. A message counts as unchanged if it is the same object: who changes a message must replace it by another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import Any

from ..messages import Ids, Wants, shape
from .outline import Message, Survey


class History(list[Message]):
    """Messages for `Chat.prepare`, to which others are added at the end."""

    def __init__(self, messages: Iterable[Message] = ()) -> None:
        super().__init__(messages)
        self._survey = Survey()
        self._surveyed: list[Message] = []
        self._rewritten = _Parts()
        self._shaped = _Parts()
        self._ids = Ids("keep")

    def survey(self) -> Survey:
        """The survey of all messages. Raises `TypeError` if one of them is no object with a role."""
        old = _alike(self._surveyed, self)
        self._survey.keep(old)
        self._surveyed = list(self)
        self._survey.add(self[old:])
        return self._survey

    def rewritten(
        self, given: Sequence[Message], key: object, rewrite: Callable[[list[Message], int], list[Message]]
    ) -> list[Message]:
        """All messages, ``given`` in order, rewritten. ``rewrite(part, first)`` rewrites a part of them, before which
        there are ``first`` messages. With another ``key`` it is another function."""
        return self._rewritten.of(given, key, lambda part, first, last: rewrite(part, first))

    def shaped(
        self, given: Sequence[Message], template: object, name: str, wants: Wants
    ) -> list[dict[str, Any]]:
        """The messages ``given`` in the shape that the template wants. Raises `TemplateError`, which has its name."""

        def shaped(part: list[Message], first: int, last: bool) -> list[dict[str, Any]]:
            ids = self._ids.copy() if first else Ids(wants.call_ids)
            out = shape(part, wants, name, ids, first)
            if not last:  # the last part is shaped again in the next step
                self._ids = ids
            return out

        return self._shaped.of(given, (template, wants), shaped)


_Make = Callable[[list[Any], int, bool], list[Any]]


class _Parts:
    """What a function made of a list, part by part."""

    def __init__(self) -> None:
        self._key: object = None
        self._from: list[Any] = []
        self._made: list[Any] = []

    def of(self, given: Sequence[Any], key: object, make: _Make) -> list[Any]:
        """``make(part, place, last)`` of all parts of ``given``, joined. It is called only for those that are new.

        All are new if an old message is another object, or if the last cut is none any more."""
        done = len(self._from)
        joined = 0 < done < len(given) and _get(given[done], "role") != "assistant"
        if key != self._key or joined or _alike(self._from, given) < done:
            self._key, self._from, self._made, done = key, [], [], 0
        cut = _last_cut(given, done)
        if cut > done:
            part = list(given[done:cut])
            self._made = self._made + make(part, done, False)
            self._from = self._from + part
        return self._made + make(list(given[cut:]), cut, True)


def _last_cut(messages: Sequence[Any], first: int) -> int:
    """The last place after ``first`` at which the messages can be cut; ``first`` if there is none."""
    for place in range(len(messages) - 1, first, -1):
        if _get(messages[place], "role") == "assistant" and _ends(messages, place, first):
            return place
    return first


def _ends(messages: Sequence[Any], place: int, first: int) -> bool:
    """Whether all before ``place`` is settled: no message of the assistant, and no call that waits for its result."""
    start = place  # of the results, in which texts after them may come to stand
    while start > first and _get(messages[start - 1], "role") in ("tool", "system", "developer", "user"):
        start -= 1
    if start == first:
        return True
    last = messages[start - 1]
    if start == place:
        return bool(_get(last, "role") != "assistant")
    calls = _get(last, "tool_calls")
    if not isinstance(calls, (list, tuple)) or len(calls) < 2:
        return True
    results = [message for message in messages[start:place] if _get(message, "role") == "tool"]
    answered = {str(_get(message, "tool_call_id")) for message in results}
    asked = {str(_get(call, "id")) for call in calls}
    return answered == asked and len(asked) == len(calls)


def _get(value: Any, field: str) -> Any:
    return value.get(field) if isinstance(value, Mapping) else None


def _alike(old: Sequence[Any], new: Sequence[Any]) -> int:
    """How many first items are the same objects."""
    if len(new) >= len(old) and all(map(is_, old, new)):
        return len(old)
    return next(
        (place for place, (a, b) in enumerate(zip(old, new, strict=False)) if a is not b),
        min(len(old), len(new)),
    )
