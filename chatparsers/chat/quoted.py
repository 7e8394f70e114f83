"""The markers that words spell: where a prompt has them, so that they are encoded as text.

The trace says which characters are words: those of users, results, documents, calls and their arguments, and of the
tools' descriptions. A marker of which a word has a character is text. The words of system texts are the host's own, and
may use markers. So may an answer's content, where the format reads it so: see `_Answer`.

Invariant: no words but the host's begin or end a message.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..kept import cached
from ..streams.message import Message
from ..templates.jinja.traced import carried
from ..templates.trace import TOOLS, Marked, Trace, TraceSpan
from ..tokens.pieces import as_text, encode_after
from ..writer.around import written_around
from .marks import Indexed
from .request import Request, may_quote
from .sample import Span

_HOSTS = ("system", "developer")
"""Roles whose words are the host's own."""


def quoted_markers(request: Request, messages: Sequence[Mapping[str, Any]], **options: Any) -> list[Span]:
    """The spans of quoted markers in the rendering of ``messages`` with these options. It is rendered only if a text
    may hold a marker: most hold none."""
    given = request.may_quote("tools") or request.may_quote("documents")
    if not given and not may_quote(request.chat.tokenizer, messages, request.beside):
        return []
    return quoted_in(request, request.traced(messages, **options).trace, messages)


def quoted_in_answer(request: Request, text: str, said: Message) -> list[Span]:
    """The spans of quoted markers in the text of an answer that says this."""
    calls = [{"name": call.name, "arguments": call.parsed_arguments} for call in said.tool_calls]
    message = {"role": "assistant", "thinking": said.reasoning, "content": said.content, "tool_calls": calls}
    if not may_quote(request.chat.tokenizer, [message], text):
        return []
    marked = Marked()
    trace = marked.trace(carried(text, *marked.messages([message])))
    return quoted_in(request, trace, [message])


def quoted_in(request: Request, trace: Trace, messages: Indexed) -> list[Span]:
    """The spans of quoted markers in a rendering of ``messages``."""
    if request.markers is None or not trace.spans:
        return []
    starts = [span.start for span in trace.spans]
    answers: dict[int, _Answer] = {}

    def own(span: TraceSpan, first: int, last: int) -> bool:
        """Whether the marker from ``first`` to ``last`` is the host's, or of what an answer's format writes."""
        if span.message == TOOLS:
            return False
        message = messages[span.message]
        if message.get("role") in _HOSTS:
            return True
        whole = span.verbatim and span.start <= first and last <= span.end
        if message.get("role") != "assistant" or span.field != "content" or not whole:
            return False
        answer = answers.setdefault(span.message, _Answer(request, message))
        return answer.writes(span.part, first - span.start + span.first)

    spans: list[Span] = []
    for found in request.markers.finditer(trace.text):
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

    def __init__(self, request: Request, message: Mapping[str, Any]) -> None:
        self._request = request
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
        request, text = self._request, "".join(text for _, text in self._texts)
        fmt, tokenizer = request.chat.syntax, request.chat.tokenizer
        own, opener = (
            {*map(str.strip, fmt.preserved_tokens)} - turn_markers(request),
            written_around(fmt)[0].strip(),
        )
        ids, spans = encode_after(tokenizer, text)
        assert request.markers is not None
        forged = [found.span() for found in request.markers.finditer(text) if found[0].strip() not in own]
        ids, _ = as_text(tokenizer, text, ids, spans, forged)
        asked = request.around(()).asked("user")
        turn = fmt.bind(
            tools=request.tools,
            prefix=asked.prefix if asked is not None else "",
            tokenizer=tokenizer,
            token_config=request.chat.files.special_config,
        )
        read = turn.parse(ids)
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


def turn_markers(request: Request) -> frozenset[str]:
    """The markers with which the template begins and ends messages."""

    def found() -> frozenset[str]:
        around = request.around(())
        leads = (around.asked(role) for role in ("user", "tool", *_HOSTS))
        texts = [lead.header for lead in leads if lead is not None]
        for calls, after in (
            (calls, after) for calls in (False, True) for after in (around.alone, around.followed)
        ):
            text = after(calls) or ""
            stop = around.first_stop(text)  # before it, calls are closed
            texts.append(text[stop[0] if stop else len(text) :] if calls else text)
        pattern = request.markers
        markers = (one[0].strip() for text in texts for one in (pattern.finditer(text) if pattern else ()))
        return frozenset((*markers, *(stop.strip() for stop in around.stops)))

    return request.fact("turn markers", found)


def _texts(content: Any) -> Iterator[tuple[int, str]]:
    """The texts of a content, by the numbers of their parts."""
    for number, part in enumerate([content] if isinstance(content, str) else content or ()):
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            yield number, text
