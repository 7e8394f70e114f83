"""The rows that samples are made of: conversations in which each answer has its thought in a field, or none.

What an answer counts otherwise than its row has it is named (`Rows.noted`), by the words below: a sample never changes
a row in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..templates.messages import REASONING, own, reasoning_of
from ..templates.probe.edges import edges_of
from .inline import USUAL, with_thoughts
from .request import Request

THINKING_OFF = "thinking-off"
"""The answer counts without its thought, as the request's prompts ask for none."""
THOUGHT_AS_TEXT = "thought-as-text"
"""The answer counts with its thought as a part of its text, as the model's format and template have no other place."""


class Rows(NamedTuple):
    """The messages as they are encoded, and by their index the answers that count in another way than they were
    given."""

    messages: Sequence[Mapping[str, Any]]
    noted: Mapping[int, str]

    def until(self, end: int) -> Rows:
        """The first ones."""
        return Rows(self.messages[:end], self.noted)


def read_rows(request: Request, given: Sequence[Mapping[str, Any]], *, as_sampled: bool) -> Rows:
    """The rows of a conversation. ``as_sampled``: the format writes the answers, so a thought is what it reads as one,
    whether the template has a place for it or not. Warns once of thoughts that stay text, and of those that nobody
    switched off."""
    chat, messages = request.chat, own(given)
    found = with_thoughts(messages, chat._marks) if as_sampled else request.read(messages)
    as_text = [] if found is not messages else _changed(messages, with_thoughts(messages, USUAL))
    if as_text:
        chat._warn_once(
            f"encode: {chat.name}: an answer's text has a thought (</think>), and the template and the format "
            f"{chat.format.name!r} have no place for one, so it counts as text (put thoughts into reasoning_content to "
            "leave such answers out)"
        )
    plain = _without_thoughts(request, found)
    silent = _changed(found, plain)
    if silent and request.wish is None:
        chat._warn_once(
            f"encode: {chat.name}: by default the prompts of this template ask for no thought, so the thoughts of "
            "answers are left out (thinking=True counts them)"
        )
    return Rows(plain, {**dict.fromkeys(as_text, THOUGHT_AS_TEXT), **dict.fromkeys(silent, THINKING_OFF)})


def _changed(given: Sequence[object], found: Sequence[object]) -> list[int]:
    pairs = enumerate(zip(given, found, strict=True))
    return [index for index, (one, other) in pairs if one is not other]


def _without_thoughts(request: Request, messages: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The messages as answers to the request's prompts: without thoughts where a prompt closes an empty one, or where
    they are not wished for and no prompt opens one."""
    wished = None if request.wish is None else request.wish.on()
    if wished or not any(map(reasoning_of, messages)):
        return messages
    asked = request.around(()).asked("user")
    end = "" if asked is None else edges_of(request.chat.format).end_of(asked.prefix)
    if end == "open" or (end == "" and wished is None):
        return messages
    return [
        {key: value for key, value in message.items() if key not in REASONING}
        if reasoning_of(message)
        else message
        for message in messages
    ]
