"""The text of an answer as the model would write it after its prompt, with the stop that its turn ends with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..core.format import Turn
from ..errors import ChatParsersError, RequestError
from ..templates.probe.stand_ins import answer, question
from .request import Request
from .same import same_message
from .shapes import text_after, written_around


def written(request: Request, turn: Turn, message: Mapping[str, Any]) -> str:
    """What the model writes after the prompt of ``turn`` to say ``message``, its stop included. Raises `RequestError`
    if the format writes no text that is read as this message."""
    calls = bool(message.get("tool_calls"))
    short = [question(), answer("", calls=1) if calls else answer()]
    before, stop = request.around(request.polyfills(short)).ending(calls)
    closer = written_around(turn.format)[2]
    for text in dict.fromkeys(_ways(request, turn, message)):
        if stop and closer and text.endswith(closer) and closer not in before:
            text = text.removesuffix(closer)  # gpt-oss ends a turn with another marker than a channel
        whole = text if stop and text.endswith(stop) else text + stop
        read = turn.parse(whole)
        if read.complete and same_message(read.to_openai(), message):
            return whole
    raise RequestError(
        f"said: the format {turn.format.name!r} has no text that is read as this answer after its prompt: give the ids "
        "to `sampled`"
    )


def _ways(request: Request, turn: Turn, message: Mapping[str, Any]) -> Iterator[str]:
    """The texts that may be the answer: the prompt may have written its beginning, such as the opened thought."""
    tools = request.tools.raw
    try:
        yield text_after(turn.format, turn.prefix, message, tools)
        yield turn.format.render(message, tools)
    except ChatParsersError as error:
        raise RequestError(f"said: {error}") from error
