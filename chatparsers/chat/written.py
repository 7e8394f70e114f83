"""The ids of an answer as the model would write it after its prompt, with the stop that its turn ends with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..answers.format import Turn
from ..errors import ChatParsersError, RequestError
from ..streams.message import Message
from ..templates.messages import reasoning_of
from ..templates.probe.stand_ins import answer, question
from ..tokens.pieces import as_text, encode_after
from ..writer.around import written_around
from .inline import USUAL, after_thought, marks_of, with_thought
from .places import in_one_text
from .quoted import quoted_in_answer
from .request import Request
from .same import same_message
from .shapes import text_after


def written(request: Request, turn: Turn, message: Mapping[str, Any]) -> list[int]:
    """What the model writes after the prompt of ``turn`` to say ``message``, its stop included. Markers that its words
    spell are text. Raises `RequestError` if the format writes no text that is read as this message."""
    message = in_one_text(message)
    calls = bool(message.get("tool_calls"))
    short = [question(), answer("", calls=1) if calls else answer()]
    around = request.around(request.polyfills(short))
    before, stop = around.ends(calls).closing
    closer = written_around(turn.format)[2]
    for text in dict.fromkeys(_ways(turn, message, around.silent)):
        if stop and closer and text.endswith(closer) and closer not in before:
            text = text.removesuffix(closer)  # gpt-oss ends a turn with another marker than a channel
        whole = text if stop and text.endswith(stop) else text + stop
        read = turn.parse(whole)
        if not _says(read, message):
            continue
        ids, spans = encode_after(turn.tokenizer, whole)
        quoted = quoted_in_answer(turn, around, whole, read)
        if quoted:
            ids, spans = as_text(turn.tokenizer, whole, ids, spans, quoted)
        if not quoted or _says(turn.parse(ids), message):
            return ids
    raise RequestError(
        f"said: the format {turn.format.name!r} has no text that is read as this answer after its prompt: give the ids "
        "to `sampled`"
    )


def _says(read: Message, message: Mapping[str, Any]) -> bool:
    """Whether a text is read as this message; a thought in its text may be read as one."""
    found = read.to_openai()
    return read.complete and (
        same_message(found, message) or same_message(found, with_thought(message, USUAL))
    )


def _ways(turn: Turn, message: Mapping[str, Any], silent: str) -> Iterator[str]:
    """The texts that may be the answer: the prompt may have written its beginning, such as the opened thought.
    ``silent``: what the template writes before an answer without a thought."""
    tools = turn.tools.raw
    silent = silent[: after_thought(silent, marks_of(turn.format))]
    try:
        if silent and silent.startswith(turn.prefix) and not reasoning_of(message):
            yield silent[len(turn.prefix) :] + text_after(turn.format, silent, message, tools)
        yield text_after(turn.format, turn.prefix, message, tools)
        yield turn.format.render(message, tools)
    except ChatParsersError as error:
        raise RequestError(f"said: {error}") from error
