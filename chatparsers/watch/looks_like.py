"""Text that looks like a call where none was read: the alarm that the wrong parser runs."""

from __future__ import annotations

from ..answers.format import Turn
from ..streams.message import Diagnostic, Message
from .beside import beside

_ENDS = ("}", "]", ")", ">", "`", "|")
"""With which a call ends, in any dialect; prose about tools seldom does."""
_FENCE = "\n```"
_SNIPPET = 40


def looks_like_a_call(turn: Turn, message: Message) -> list[Diagnostic]:
    """The diagnostic ``looks-like-a-call`` for an answer without calls whose last text looks like one; else none.

    It looks like a call if it ends as calls do, and if after its last fence a tool of the request stands in it as
    dialects write it in a call. Mostly another format wrote it, and `chatparsers.explain` names it. Nothing is read
    again, so this costs a few searches of the text, and one look at its end for ordinary prose. An answer that the
    request wants as JSON (``response_format``) is none.

    >>> turn = chatparsers.get_format("qwen3").bind(tools=tools)
    >>> message = turn.parse('<|tool_call>call:get_weather{city:<|"|>Oslo<|"|>}<tool_call|>')
    >>> looks_like_a_call(turn, message)[0].expected
    "a call of 'get_weather' that qwen3 reads"
    """
    if message.tool_calls or turn.response_format is not None or not turn.tools:
        return []
    content = message.content.rstrip()
    shown = content or message.reasoning.rstrip()
    if not shown.endswith(_ENDS):
        return []
    text = message.text.rstrip()
    found = beside(text, turn.tools.names(), max(0, text.rfind(_FENCE, 0, -len(_FENCE))))
    for name, at in sorted(found, key=lambda hit: hit[1]):
        kind = next((region.kind for region in message.regions if region.start <= at < region.end), None)
        if kind == ("content" if content else "reasoning"):
            expected = f"a call of {name!r} that {turn.format.name} reads"
            return [Diagnostic("looks-like-a-call", at, expected, text[at : at + _SNIPPET])]
    return []
