"""Which answer a request goes on from: the longest path of messages that is known, by what makes messages equal.

Strategy. The messages of all requests of a session, each with the answer after it, are paths of one tree. A step of the
tree is the key of a message. So a request is found by one walk, whatever its length and however many lines there are.

Equal are the role, the text (parts joined), an answer's calls by order, name and JSON value, and a result's text with
the place of its call. Not compared are ids, the spelling of arguments, white space around an answer's text, unknown
fields, and lines of system texts that change in every request. Thoughts are compared apart: one may be missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from ..chat.same import answer_key, text_of

Message: TypeAlias = Mapping[str, Any]
Key: TypeAlias = "tuple[Any, ...]"
T = TypeVar("T")

VOLATILE = r"^x-anthropic-billing-header:[^\n]*\n?"
"""The line that Claude Code writes at the head of its system text, other in each request."""
_SYSTEM = ("system", "developer")


class Place(Generic[T]):
    """A place of the tree, after some messages. ``answers``: those that end here. ``asked``: those that were sampled
    after the messages up to here."""

    __slots__ = ("answers", "asked", "next")

    def __init__(self) -> None:
        self.next: dict[Key, Place[T]] = {}
        self.answers: list[T] = []
        self.asked: list[T] = []

    def after(self, keys: Sequence[Key]) -> Place[T]:
        """The place after more messages; it is made if it is new."""
        place = self
        for key in keys:
            place = place.next.get(key) or place.next.setdefault(key, Place())
        return place

    def depth(self) -> int:
        """How many messages are known after this place, at most."""
        found, level = 0, [*self.next.values()]
        while level:
            found, level = found + 1, [after for place in level for after in place.next.values()]
        return found

    def walk(self, keys: Sequence[Key]) -> Iterator[Place[T]]:
        """The places along these messages, as far as they are known; the first is this one."""
        place: Place[T] | None = self
        yield self
        for key in keys:
            place = place.next.get(key) if place is not None else None
            if place is None:
                return
            yield place


class Keys:
    """The keys of messages. ``volatile``: what is left out of system texts."""

    def __init__(self, volatile: Sequence[str] = (VOLATILE,)) -> None:
        self._volatile = [re.compile(one, re.MULTILINE) for one in volatile]

    def of(self, messages: Sequence[Message], answer: Message | None = None) -> list[Key]:
        """The key of each message. ``answer``: the one before the first."""
        ids = call_ids(answer)
        found: list[Key] = []
        for message in messages:
            found.append(self._key(message, ids))
            if message.get("role") == "assistant":
                ids = call_ids(message)
        return found

    def forgets(self, messages: Sequence[Message]) -> bool:
        """Whether something is left out of a system text."""
        return any(
            message.get("role") in _SYSTEM and self._kept(text := text_of(message.get("content"))) != text
            for message in messages
        )

    def _key(self, message: Message, ids: Sequence[str | None]) -> Key:
        role = message.get("role")
        if role == "assistant":
            return role, *answer_key(message)
        text = text_of(message.get("content"))
        if role == "tool":
            id = message.get("tool_call_id")
            return role, ids.index(id) if id in ids else -1, text
        return role, self._kept(text) if role in _SYSTEM else text

    def _kept(self, text: str) -> str:
        for pattern in self._volatile:
            text = pattern.sub("", text)
        return text


def call_ids(answer: Message | None) -> list[str | None]:
    """The ids of an answer's calls."""
    return [] if answer is None else [call.get("id") for call in answer.get("tool_calls") or ()]


def with_ids(messages: Sequence[Message], theirs: Message, own: Message) -> list[Message]:
    """The results in ``messages`` under the ids that the answer ``own`` has, where the client has ``theirs``."""
    ids = {one: two for one, two in zip(call_ids(theirs), call_ids(own), strict=False) if one != two}
    return [
        {**message, "tool_call_id": ids[message["tool_call_id"]]}
        if message.get("tool_call_id") in ids
        else message
        for message in messages
    ]
