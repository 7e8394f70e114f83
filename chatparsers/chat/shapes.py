"""The shape of an answer, how an answer in a history is read, and how the format writes one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..answers.format import Format, Turn
from ..schema.tools import Tools
from ..streams.message import Message
from ..templates.messages import REASONING, reasoning_of
from ..writer.around import written_around

_PLACE = "\ue001"  # from the private use area


class Shape(NamedTuple):
    """What an answer has: a thought, content, and how many calls (2 stands for several)."""

    thought: bool
    content: bool
    calls: int

    def __str__(self) -> str:
        calls = ("", "call", "parallel calls")[self.calls]
        parts = ("thought" if self.thought else "", "text" if self.content else "", calls)
        named = [part for part in parts if part]
        return "answer" if named == ["text"] else " and ".join(named) or "nothing"


def shape_of(message: Mapping[str, Any]) -> Shape:
    """The shape of an assistant's message."""
    calls = message.get("tool_calls") or ()
    return Shape(bool(reasoning_of(message)), bool(message.get("content")), min(len(calls), 2))


def read_answer(turn: Turn, text: str, given: Mapping[str, Any]) -> Message:
    """Reads the text of the answer ``given`` in a history. It may go on in a thought that an earlier answer left open:
    Apertus' template closes a thought only before content. Then it is read as a thought from its beginning."""
    read = turn.parse(text)
    thought = reasoning_of(given).strip()
    if not thought or read.reasoning.strip() == thought:
        return read
    inside = turn._replace(prefix=written_around(turn.format)[0]).parse(text)
    return inside if inside.reasoning.strip() == thought else read


def region_after(fmt: Format, opened: str) -> str:
    """The kind of text that the model writes after ``opened``."""
    return str(fmt.bind(prefix=opened).stream().region or "content")


def text_after(
    fmt: Format,
    opened: str,
    message: Mapping[str, Any],
    tools: Tools | None = None,
    *,
    read_back: bool = True,
) -> str:
    """What the format writes of an answer after its beginning ``opened``, which the prompt has. Raises the errors of
    `Format.render`."""
    thought = reasoning_of(message)

    def rendered(message: Mapping[str, Any]) -> str:
        return fmt.render(message, tools, read_back=read_back)

    thinks = region_after(fmt, opened) == "reasoning"
    if not thinks and not thought:
        return rendered(message).removeprefix(opened)
    before, _, after = rendered({**message, "reasoning_content": _PLACE + thought}).partition(_PLACE)
    if thinks:
        return after
    whole, alone = before + after, not (message.get("content") or message.get("tool_calls"))
    if whole.startswith(opened) or alone:
        return whole.removeprefix(opened)
    # No thought comes after one that the prompt has closed, unless it is all that there is.
    return rendered({key: value for key, value in message.items() if key not in REASONING})
