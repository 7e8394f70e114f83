"""Whether a raw text is what its format's own writer writes: then it is well formed, whatever is in its values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

from ..answers.format import Turn
from ..errors import ChatParsersError
from ..streams.message import Message

_WORD = "\ue000"
"""Stands for a part that has no text, so that the writer writes the markers of that part."""


def without_stop(turn: Turn, text: str) -> str:
    """The text without the stop that ends it."""
    for stop in turn.stops:
        text = text.removesuffix(stop)
    return text


def open_call(reading: Message, text: str) -> str:
    """The text of the call that a text ends in; "" if it ends elsewhere."""
    if all(call.complete for call in reading.tool_calls):
        return ""
    return text[reading.regions[-1].start :]


def well_formed(turn: Turn, reading: Message, text: str, markers: Iterable[str], *, cut: bool) -> bool:
    """Whether the writer writes ``text`` for the message that was read in it, but for white space, and no marker is in
    the content or the reasoning, where it could be taken for markup. ``cut``: the text was cut off, so it need only be
    the beginning of what the writer writes."""
    text, message = without_stop(turn, text), reading.to_openai()
    whole = (_bare(text), _bare(f"{turn.prefix}{text}"))
    if cut:
        text, message = _begun(turn, reading, text)
    shown = f"{message['content'] or ''}\n{message.get('reasoning_content', '')}"
    if any(marker in shown for marker in markers):
        return False
    forms = (_bare(text), _bare(f"{turn.prefix}{text}"))
    if cut:
        return _closed_begins(turn, reading, whole) or any(
            written.startswith(forms) for written in _written(turn, message)
        )
    return not forms[0] or any(written in forms for written in _written(turn, message))


def _written(turn: Turn, message: dict[str, Any]) -> Iterator[str]:
    """What the writer writes for a message, without white space: where there is no reasoning or no content, without
    that part, and with its markers around nothing."""
    empty = [part for part in ("reasoning_content", "content") if not message.get(part)]
    for size in range(len(empty) + 1):
        for parts in combinations(empty, size):
            filled = {**message, **dict.fromkeys(parts, _WORD)}
            try:
                written = turn.format.render(filled, list(turn.tools.raw) or None, read_back=False)
            except ChatParsersError:
                continue
            yield _bare(written.replace(_WORD, ""))


def _closed_begins(turn: Turn, reading: Message, forms: tuple[str, str]) -> bool:
    """Whether the writer's text begins so if the value in which the last call was cut off ended there."""
    if all(call.complete for call in reading.tool_calls):
        return False
    message = reading.to_openai()
    function = message["tool_calls"][-1]["function"]
    function["arguments"] += '"}'
    return any(written.startswith(forms) for written in _written(turn, message))


def _bare(text: str) -> str:
    return "".join(text.split())


def _begun(turn: Turn, reading: Message, text: str) -> tuple[str, dict[str, Any]]:
    """What was begun, and a message that begins so: with the open call, or else with a letter more, which makes a part
    that has no text yet one."""
    opened = open_call(reading, text)
    if not opened:
        return f"{text}x", turn.parse(f"{text}x").to_openai()
    message = reading.to_openai()
    message["tool_calls"][-1]["function"]["arguments"] = "{}"
    return text.removesuffix(opened), message
