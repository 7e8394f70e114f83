"""A row of any shape as a conversation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...answers.format import Format
from ...chat.chat import Chat
from ...chat.inline import USUAL, marks_of, with_thoughts
from ...errors import ChatParsersError
from ...streams.call import call_id
from .catalog import Shape, shape_of
from .talk import Talk, Unreadable, json_text
from .wire import decide_row


def read_row(
    row: Mapping[str, Any],
    seed: str,
    *,
    shape: Shape | None = None,
    wire: Format | None = None,
    detect: bool = True,
    roles: Mapping[str, str] | None = None,
) -> tuple[Talk, Shape | None]:
    """The conversation of a row, and its shape. ``wire``: the format of the assistants' texts; with ``detect``, it is
    found for this row. What has no place stays in ``Talk.extra``; a row that cannot be read is kept there whole."""
    found = shape or shape_of(dict(row))
    if found is None:
        talk = Talk(seed)
        columns = ", ".join(name for name, value in row.items() if value is not None)
        talk.fail(f"no shape of a dataset has these columns: {columns or 'none'}")
        talk.extra = {"row": dict(row)}
        return talk, None
    talk = _read(found, row, seed, wire, roles)
    if detect and wire is None and found.wire() is None and talk.messages:
        format = decide_row(list(answers(talk)), talk.tools)
        if format is not None:
            talk, wire = _read(found, row, seed, format, roles), format
    if (detect or wire is not None) and talk.messages:
        marks = USUAL if wire is None else (*marks_of(wire), *USUAL)
        talk.messages = [dict(message) for message in with_thoughts(talk.messages, marks)]
    return talk, found


def answers(talk: Talk) -> Iterator[str]:
    """The assistants' texts that hold no calls yet."""
    for message in talk.messages:
        content = message["content"]
        if message["role"] == "assistant" and isinstance(content, str) and not message.get("tool_calls"):
            yield content


def _read(
    shape: Shape,
    row: Mapping[str, Any],
    seed: str,
    wire: Format | None,
    roles: Mapping[str, str] | None,
) -> Talk:
    talk, left = Talk(seed), dict(row)
    try:
        shape.read(left, talk, wire, roles or {})
        if not talk.messages:
            raise Unreadable("expected at least one message, found none")
    except (Unreadable, ChatParsersError, AttributeError, TypeError, ValueError, KeyError) as error:
        talk = Talk(seed)
        what = str(error) if isinstance(error, (Unreadable, ChatParsersError)) else f"{error!r}"
        talk.fail(f"as {shape.name}: {what}")
        talk.extra = {"row": dict(row)}
        return talk
    for key, value in left.items():
        talk.keep(key, value)
    return talk


def read_rendered(text: str, seed: str, chat: Chat) -> Talk:
    """The conversation of a rendered prompt, read with the template that wrote it."""
    talk = Talk(seed)
    try:
        found = [item.message for item in chat.parse_prompt(text)]
    except ChatParsersError as error:
        talk.fail(str(error))
        talk.extra = {"row": {"text": text}}
        return talk
    if not found:
        talk.fail("text: no message was found by the template's headers")
        talk.extra = {"row": {"text": text}}
    count = 0
    ids: dict[str, str] = {}
    for message in found:
        for call in message.get("tool_calls") or ():
            made = ids[call["id"]] = call_id(seed, count)
            call["id"] = made
            count += 1
        if "tool_call_id" in message:
            message["tool_call_id"] = ids.get(message["tool_call_id"], message["tool_call_id"])
        message["content"] = message.get("content") or ""
        talk.messages.append(message)
    return talk


def as_extra(talk: Talk) -> str | None:
    """What has no place in messages, as JSON text; None if there is nothing."""
    return json_text(talk.extra) if talk.extra else None
