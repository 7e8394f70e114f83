"""Whether a raw text is what its format's own writer writes: then it is well formed, whatever is in its values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.format import Turn
from ..core.message import Message
from ..errors import ChatParsersError

_THOUGHT = "a thought"


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
    if cut:
        text, message = _begun(turn, reading, text)
    shown = f"{message['content'] or ''}\n{message.get('reasoning_content', '')}"
    if any(marker in shown for marker in markers):
        return False
    silent = not message["content"] and len(message) == 2  # a role alone: there may be an empty thought
    if silent:
        message["reasoning_content"] = _THOUGHT
    try:
        written = turn.format.render(message, list(turn.tools.raw) or None, read_back=False)
    except ChatParsersError:
        written = ""
    written = "".join((written.replace(_THOUGHT, "") if silent else written).split())
    forms = ("".join(text.split()), "".join(f"{turn.prefix}{text}".split()))
    return written.startswith(forms) if cut else written in forms or not forms[0]


def _begun(turn: Turn, reading: Message, text: str) -> tuple[str, dict[str, Any]]:
    """What was begun, and a message that begins so: with the open call, or else with a letter more, which makes a part
    that has no text yet one."""
    opened = open_call(reading, text)
    if not opened:
        return f"{text}x", turn.parse(f"{text}x").to_openai()
    message = reading.to_openai()
    message["tool_calls"][-1]["function"]["arguments"] = "{}"
    return text.removesuffix(opened), message
