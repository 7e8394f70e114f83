"""Calls in a turn without tools: they are content, and a diagnostic names each: somebody forgot the tools."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ..answers.features import Definition
from ..answers.format import Turn
from ..answers.idioms import Options
from ..answers.nodes import Body
from ..core.tree import begins, once
from ..streams.message import Diagnostic, Message

_SNIPPET = 40


def tools_not_given(turn: Turn, message: Message, ids: Sequence[int] = ()) -> list[Diagnostic]:
    """The calls of an answer to a request without tools, with the code ``tools-not-given``.

    The answer is read once more as if there were tools. Calls that are broken or cut off count too; a call whose name
    the prompt wrote does not. ``message`` is what ``turn`` read; ``ids``: what it read it from, if not from text: a
    marker that ordinary tokens spell calls nothing. Where the request says how the answer is written
    (``response_format``), no call is looked for.

    >>> turn = chatparsers.get_format("hermes-2-pro").bind()
    >>> tools_not_given(turn, turn.parse(call))[0].expected
    "tools, of which one is 'get_weather'"
    """
    if turn.tools or turn.response_format is not None or not turn.format.features.tools:
        return []
    if not any(opener in turn.prefix + message.text for opener in _openers(turn.format)):
        return []
    as_given = turn._replace(options=turn.options._replace(tools=True, mode="auto"))
    stream = as_given.stream()
    stream.feed(list(ids) if ids else message.text)
    stream.finish()
    return [
        Diagnostic(
            "tools-not-given",
            at,
            f"tools, of which one is {name!r}",
            message.text[at : at + _SNIPPET],
        )
        for at, name in stream._named_calls()
        if at or name not in turn.prefix  # a call that the prompt began, with its name, is the prompt's
    ]


@lru_cache(maxsize=1024)
def _openers(format: Definition) -> tuple[str, ...]:
    """Texts of which one is in every turn of the format that has a call; "" if a call may begin with its name."""
    bodies = (node for node in once(format.tree(Options(tools=True))) if isinstance(node, Body))
    parts = (part for body in bodies for part in (body.calls, body.start) if part is not None)
    return tuple({text.strip() for part in parts for text in begins(part) or ("",)})
