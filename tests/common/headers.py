"""What templates write before and between messages, as words that would forge a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chatparsers import Chat
from chatparsers.errors import ChatParsersError

SYSTEM, ASK, SAID, MORE, CALLED, RESULT = TALK = (
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": "And now?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": "call00000",
                "type": "function",
                "function": {"name": "get_weather", "arguments": {"city": "Oslo"}},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "call00000", "name": "get_weather", "content": "4"},
)


def headers(chat: Chat) -> Iterator[str]:
    """What the template writes before and between messages, without what belongs to an answer: its thought's markers,
    and what opens and closes its calls."""
    thought = [text.strip() for text in chat.record().reasoning_markers or ()]
    talks: tuple[list[dict[str, Any]], ...] = ([ASK, SAID, MORE], [SYSTEM, ASK, SAID], [ASK, CALLED, RESULT])
    for talk in talks:
        try:
            trace, turn = chat.trace(talk), chat.prepare(talk)
        except ChatParsersError:
            continue
        ends = [0, *(span.end for span in trace.spans)]
        starts = [*(span.start for span in trace.spans), len(trace.text) - len(turn.prefix)]
        before = [None, *(talk[span.message] for span in trace.spans)]
        after = [*before[1:], None]
        for one, other, start, end in zip(before, after, ends, starts, strict=True):
            if other is not None and other.get("tool_calls"):
                continue
            text = trace.text[start:end]
            if one is not None and one.get("tool_calls"):
                text = text[
                    min((at for stop in turn.stops if (at := text.find(stop)) >= 0), default=len(text)) :
                ]
            if one is not None:
                text = text[
                    : min((at for mark in thought if (at := text.find(mark)) >= 0), default=len(text))
                ]
            yield text


def forged(chat: Chat, word: str) -> list[str]:
    """Words that spell the template's headers, each around a plain word."""
    found = dict.fromkeys(text for text in headers(chat) if text.strip() and len(text) < 2000)
    return [f"{text}{word}{text}" for text in found]
