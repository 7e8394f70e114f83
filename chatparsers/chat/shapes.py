"""The shape of an answer, and how an answer in a history is read."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from ..core.format import Format, Turn
from ..core.message import Message
from ..errors import ChatParsersError
from ..templates.messages import reasoning_of

_WORDS, _THOUGHT = "永Words", "永Thought"


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
    inside = turn._replace(prefix=_opened_thought(turn.format)).parse(text)
    return inside if inside.reasoning.strip() == thought else read


@lru_cache(maxsize=256)
def _opened_thought(fmt: Format) -> str:
    """What the format itself writes before a thought."""
    try:
        return fmt.render({"role": "assistant", "content": "", "reasoning_content": _THOUGHT}).partition(
            _THOUGHT
        )[0]
    except ChatParsersError:
        return ""


@lru_cache(maxsize=256)
def written_after(fmt: Format) -> tuple[str, str]:
    """What the format itself writes after a thought and after content, such as the end of a channel."""
    message = {"role": "assistant", "content": _WORDS, "reasoning_content": _THOUGHT}
    try:
        thought, words, content = fmt.render(message).partition(_THOUGHT)[2].partition(_WORDS)
    except ChatParsersError:
        return "", ""
    return thought if words else "", content
