"""The markers that words spell: where a prompt has them, so that they are encoded as text.

The trace says which characters are words: those of users, results, calls and their arguments, and of the tools'
descriptions. A marker in them is text. The words of system texts are the host's own, and may use markers. So may an
answer, those of its format (``<think>`` in a content); a stop or a header in an answer is text too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.message import Message
from ..templates.jinja.traced import carried
from ..templates.trace import TOOLS, Marked, Trace
from .marks import Indexed
from .request import Request, may_quote
from .sample import Span

_HOSTS = ("system", "developer")
"""Roles whose words are the host's own."""


def quoted_markers(request: Request, messages: Sequence[Mapping[str, Any]], **options: Any) -> list[Span]:
    """The spans of quoted markers in the rendering of ``messages`` with these options. It is rendered only if a text
    may hold a marker: most hold none."""
    if not may_quote(request.chat.tokenizer, messages, request.options.get("tools")):
        return []
    return quoted_in(request, request.traced(messages, **options).trace, messages)


def quoted_in_answer(request: Request, text: str, said: Message) -> list[Span]:
    """The spans of quoted markers in the text of an answer that says this."""
    calls = [{"name": call.name, "arguments": call.parsed_arguments} for call in said.tool_calls]
    message = {"role": "assistant", "thinking": said.reasoning, "content": said.content, "tool_calls": calls}
    if not may_quote(request.chat.tokenizer, [message]):
        return []
    marked = Marked()
    trace = marked.trace(carried(text, *marked.messages([message])))
    return quoted_in(request, trace, [message])


def quoted_in(request: Request, trace: Trace, messages: Indexed) -> list[Span]:
    """The spans of quoted markers in a rendering of ``messages``."""
    pattern, fmt = request.markers, request.chat.syntax
    if pattern is None:
        return []
    own = frozenset(token.strip() for token in fmt.preserved_tokens) - {stop.strip() for stop in fmt.stops}
    spans: list[Span] = []
    for span in trace.spans:
        role = "tool" if span.message == TOOLS else str(messages[span.message].get("role"))
        if role in _HOSTS:
            continue
        said = role == "assistant" and span.field in ("content", "reasoning")
        found = pattern.finditer(trace.text, span.start, span.end)
        spans += (one.span() for one in found if not (said and one[0].strip() in own))
    return spans
