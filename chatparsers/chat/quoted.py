"""The markers that words spell: where a prompt has them, so that they are encoded as text.

The trace says which characters are words: those of users, results, calls and their arguments, and of the tools'
descriptions. A marker in them is text. The words of system texts are the host's own, and may use markers. So may an
answer, those of its format (``<think>`` in a content); a stop or a header in an answer is text too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from ..core.message import Message
from ..templates.jinja.exact import to_json
from ..templates.trace import TOOLS, Trace
from .marks import Indexed, Span
from .request import Request, may_quote

_HOSTS = ("system", "developer")
"""Roles whose words are the host's own."""


def quoted_markers(request: Request, messages: Sequence[Mapping[str, Any]], **options: Any) -> list[Span]:
    """The spans of quoted markers in the rendering of ``messages`` with these options. It is rendered only if a text
    may hold a marker: most hold none."""
    if not may_quote(request.chat.tokenizer, messages, request.options.get("tools")):
        return []
    return quoted_in(request, request.traced(messages, **options).trace, messages)


def quoted_in_answer(request: Request, answer: Message) -> list[Span]:
    """The spans of quoted markers in the text of an answer that was read."""
    pattern, text = request.markers, answer.text
    if pattern is None or pattern.search(text) is None:
        return []
    own = _own(request)
    spans: list[Span] = []
    values = {value for call in answer.tool_calls for value in _texts(call.parsed_arguments)}
    spelt = {one for value in values if pattern.search(value) for one in (value, to_json(value)[1:-1])}
    words = re.compile("|".join(map(re.escape, sorted(spelt, key=len, reverse=True)))) if spelt else None
    for region in answer.regions:
        if region.kind in ("content", "reasoning"):
            found = pattern.finditer(text, region.start, region.end)
            spans += (one.span() for one in found if one[0].strip() not in own)
        elif region.kind == "call" and words is not None:
            for value in words.finditer(text, region.start, region.end):
                spans += (one.span() for one in pattern.finditer(text, *value.span()))
    return spans


def _own(request: Request) -> frozenset[str]:
    """The markers that an answer may write itself."""
    fmt = request.chat.syntax
    return frozenset(token.strip() for token in fmt.preserved_tokens) - {stop.strip() for stop in fmt.stops}


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from chain.from_iterable(map(_texts, chain.from_iterable(value.items())))
    elif isinstance(value, (list, tuple)):
        yield from chain.from_iterable(map(_texts, value))


def quoted_in(request: Request, trace: Trace, messages: Indexed) -> list[Span]:
    """The spans of quoted markers in a rendering of ``messages``."""
    pattern = request.markers
    if pattern is None:
        return []
    own = _own(request)
    spans: list[Span] = []
    for span in trace.spans:
        role = "tool" if span.message == TOOLS else str(messages[span.message].get("role"))
        if role in _HOSTS:
            continue
        said = role == "assistant" and span.field in ("content", "reasoning")
        found = pattern.finditer(trace.text, span.start, span.end)
        spans += (one.span() for one in found if not (said and one[0].strip() in own))
    return spans
