"""Words after the end of the turn: no part of the message has them, and whoever reads it would not know."""

from __future__ import annotations

from ..answers.format import Turn
from ..streams.message import Diagnostic, Message

_SNIPPET = 40


def text_after_end(turn: Turn, message: Message) -> list[Diagnostic]:
    """The diagnostic ``text-after-end`` for an answer whose model wrote words after a marker that ends its turn; else
    none. Further markers and white space are no words.

    >>> turn = chatparsers.get_format("qwen3").bind()
    >>> text_after_end(turn, turn.parse("It is cold.<|im_end|>And dark."))[0].expected
    "no words after '<|im_end|>'"
    """
    if not message.regions or message.regions[-1].kind != "markup":
        return []
    start = message.regions[-1].start
    text = message.text[start:]
    ends = [(at, -len(stop), stop) for stop in turn.stops if stop.strip() and (at := text.find(stop)) >= 0]
    if not ends:
        return []
    at, size, stop = min(ends)
    after = words = text[at - size :]
    for marker in sorted((*turn.stops, *turn.format.preserved_tokens), key=len, reverse=True):
        words = words.replace(marker, "")
    place = len(message.text) - len(after.lstrip())
    if not any(map(str.isalnum, words)) or any(one.position >= place for one in message.diagnostics):
        return []
    return [
        Diagnostic(
            "text-after-end", place, f"no words after {stop!r}", message.text[place : place + _SNIPPET]
        )
    ]
