"""The markers that words spell: where a prompt has them, so that they are encoded as text.

The trace says which characters are words: those of users, results, documents, calls and their arguments, and of the
tools' descriptions. A marker of which a word has a character is text. The words of system texts are the host's own, and
may use markers. So may an answer's content, where the format reads it so: see `_Answer`.

Invariant: no words but the host's begin or end a message.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..answers.format import Turn
from ..kept import cached
from ..streams.message import Message
from ..templates.jinja.traced import carried
from ..templates.trace import TOOLS, Marked, TraceSpan
from ..tokens.markers import markers_of, may_spell
from ..tokens.pieces import as_text, encode_after
from ..tokens.vocabulary import Vocabulary
from ..writer.around import written_around
from .around import HOSTS, Around, Rendered
from .marks import Indexed
from .places import words_of
from .sample import Span


def quoted_in_answer(turn: Turn, around: Around, text: str, said: Message) -> list[Span]:
    """The spans of quoted markers in the text of an answer that says this."""
    calls = [{"name": call.name, "arguments": call.parsed_arguments} for call in said.tool_calls]
    message = {"role": "assistant", "thinking": said.reasoning, "content": said.content, "tool_calls": calls}
    if not may_quote(turn.tokenizer, [message], text):
        return []
    marked = Marked()
    trace = marked.trace(carried(text, *marked.messages([message])))
    return quoted_in(Rendered(turn, trace, around), [message])


def quoted_in(shown: Rendered, messages: Indexed) -> list[Span]:
    """The spans of quoted markers in a rendering of ``messages``, of a chat with a tokenizer."""
    trace, markers = shown.trace, markers_of(Vocabulary.bare(shown.turn.tokenizer))
    if markers is None or not trace.spans:
        return []
    starts = [span.start for span in trace.spans]
    answers: dict[int, _Answer] = {}

    def own(span: TraceSpan, first: int, last: int) -> bool:
        """Whether the marker from ``first`` to ``last`` is the host's, or of what an answer's format writes."""
        if span.message == TOOLS:
            return False
        message = messages[span.message]
        if message.get("role") in HOSTS:
            return True
        whole = span.verbatim and span.start <= first and last <= span.end
        if message.get("role") != "assistant" or span.field != "content" or not whole:
            return False
        answer = answers.setdefault(span.message, _Answer(shown, markers, message))
        return answer.writes(span.part, first - span.start + span.first)

    spans: list[Span] = []
    for found in markers.finditer(trace.text):
        first, last = found.span()
        place = max(bisect_right(starts, first) - 1, 0)
        words = []
        while place < len(starts) and starts[place] < last:
            words += [trace.spans[place]] if trace.spans[place].end > first else []
            place += 1
        if not all(own(span, first, last) for span in words):
            spans.append((first, last))
    return spans


class _Answer:
    """What an answer's content has of its format's markers: a client that does not parse sends thoughts and calls as
    they were written.

    The content is read by the ids that it stands for. There a marker counts that the format makes the markup of a
    thought or a call of. One that is not the format's never does, nor one of which the template makes headers and ends
    of messages: these are text before the format reads it.
    """

    def __init__(self, shown: Rendered, markers: re.Pattern[str], message: Mapping[str, Any]) -> None:
        self._shown = shown
        self._markers = markers
        self._texts = [*_texts(message.get("content"))]

    def writes(self, part: int, at: int) -> bool:
        """Whether the marker that begins at this character of a part is of the format."""
        for number, text in self._texts:
            if number == part:
                return any(start <= at < end for start, end in self._markup)
            at += len(text)
        return False

    @cached
    def _markup(self) -> list[Span]:
        """Where the format reads the markup of thoughts and calls, in the texts together."""
        turn, around, text = self._shown.turn, self._shown.around, "".join(text for _, text in self._texts)
        fmt, tokenizer = around.syntax, turn.tokenizer
        own = {*map(str.strip, fmt.preserved_tokens)} - around.turn_markers(self._markers)
        opener = written_around(fmt)[0].strip()
        ids, spans = encode_after(tokenizer, text)
        forged = [found.span() for found in self._markers.finditer(text) if found[0].strip() not in own]
        ids, _ = as_text(tokenizer, text, ids, spans, forged)
        asked = around.asked("user")
        reader = fmt.bind(
            tools=turn.tools,
            prefix=asked.prefix if asked is not None else "",
            tokenizer=tokenizer,
            token_config=turn.token_config,
        )
        read = reader.parse(ids)
        if read.text != text:  # the tokenizer spells it otherwise
            return []
        kinds = ["", *(region.kind for region in read.regions), ""]
        return [
            (region.start, region.end)
            for place, region in enumerate(read.regions)
            if region.kind == "markup"
            and (
                {"reasoning", "call"} & {kinds[place], kinds[place + 2]}
                or (opener and opener in text[region.start : region.end])
            )
        ]


def _texts(content: Any) -> Iterator[tuple[int, str]]:
    """The texts of a content, by the numbers of their parts."""
    for number, part in enumerate([content] if isinstance(content, str) else content or ()):
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            yield number, text


def may_quote(tokenizer: Any, messages: Sequence[Mapping[str, Any]], beside: str) -> bool:
    """Whether words of these messages may spell a marker of a tokenizer, alone or together with what is written
    ``beside`` them."""
    return may_spell(tokenizer, ([*messages], [*_joined(messages)], [*_unescaped(messages)]), beside)


def _joined(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Contents of several texts, which may spell a marker together."""
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, (list, tuple)) and len(content) > 1:
            yield "".join(words_of(message))


def _unescaped(messages: Sequence[Mapping[str, Any]]) -> Iterator[Any]:
    """Arguments as data, where their JSON text may spell a marker otherwise."""
    for message in messages:
        calls = message.get("tool_calls") if isinstance(message, Mapping) else None
        for call in calls or ():
            function = call.get("function", call) if isinstance(call, Mapping) else None
            arguments = function.get("arguments") if isinstance(function, Mapping) else None
            if isinstance(arguments, str) and "\\" in arguments:
                yield read_arguments(arguments)


def read_arguments(arguments: Any) -> Any:
    """Arguments as data; a text that is no JSON as it is."""
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except (ValueError, RecursionError):
        return arguments
