"""Whose is each character of a rendering: by one rendering, for any template.

    messages ──marked──> traced texts ──polyfills, shape, template──> prompt with runs ──> Trace

Strategy. Each text of the messages becomes a `Traced`, which carries its source through the polyfills and the template
(`jinja/traced.py`). What comes out says, for each run of characters, the message and the field that it came from. The
rest is the template's own: headers, stops, the generation prompt. A text that stands nowhere has no span; one that
stands twice has two; one that is spelt otherwise (escaped, in capitals) is not `verbatim`.

Invariant: the text is that of a plain rendering. A trace is found for one conversation and kept for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ..public import public
from .jinja.traced import Traced, merged, tracing

__all__ = ["Marked", "Source", "Trace", "TraceSpan", "part_of", "tracing"]

_THOUGHTS = ("reasoning_content", "reasoning", "thinking")
TOOLS = -1
"""The index that stands for the request's tools in the place of a message's."""


class Source(NamedTuple):
    """A text of a conversation. ``message``: the index of its message, -1 for the tools. ``field``: ``content``,
    ``reasoning``, ``name``, ``id``, ``arguments`` or ``tools``. ``part``: the index of the part of the content, or of
    the call."""

    message: int
    field: str
    part: int = 0


@public
class TraceSpan(NamedTuple):
    """A run of characters that came from a message: from ``start`` to ``end``. ``message``, ``field``, ``part``: as in
    `Source`. ``first``, ``last``: which characters of the source's text they are. ``verbatim``: they are those
    characters; else they spell them otherwise."""

    start: int
    end: int
    message: int
    field: str
    part: int
    first: int
    last: int
    verbatim: bool


class Marked:
    """Messages whose texts are traced. ``sources``: by their numbers. ``texts``: of each source its text; of arguments
    and tools all texts in them, joined."""

    def __init__(self, wanted: Callable[[str], object] | None = None) -> None:
        self.sources: list[Source] = []
        self.texts: list[str] = []
        self._wanted = wanted
        self._numbers: dict[Source, int] = {}

    def messages(self, messages: Iterable[Mapping[str, Any]], since: int = 0) -> list[Mapping[str, Any]]:
        """The messages, in which each text is traced from the one with the index ``since`` on."""
        return [
            self._message(index, message) if index >= since else message
            for index, message in enumerate(messages)
        ]

    def tools(self, tools: Any, wanted: Callable[[str], object]) -> Any:
        """Tools, in which each text is traced for which ``wanted`` is true."""
        self._wanted, before = wanted, self._wanted
        try:
            return self._value(tools, Source(TOOLS, "tools"))
        finally:
            self._wanted = before

    def _message(self, index: int, message: Mapping[str, Any]) -> Mapping[str, Any]:
        if type(message) is not dict and not isinstance(message, Mapping):
            return message
        out = dict(message)
        for key, value in message.items():
            if key == "content":
                out[key] = self._content(index, value)
            elif key in _THOUGHTS:
                out[key] = self._text(value, Source(index, "reasoning"))
            elif key in ("name", "tool_call_id"):
                out[key] = self._text(value, Source(index, "name" if key == "name" else "id"))
            elif key == "tool_calls" and isinstance(value, (list, tuple)):
                out[key] = [self._call(index, part, call) for part, call in enumerate(value)]
        return out

    def _content(self, index: int, content: Any) -> Any:
        if type(content) is str or not isinstance(content, (list, tuple)):
            return self._text(content, Source(index, "content"))
        return [self._part(index, number, part) for number, part in enumerate(content)]

    def _part(self, index: int, number: int, part: Any) -> Any:
        if not isinstance(part, Mapping):
            return self._text(part, Source(index, "content", number))
        fields = {"text": "content", "thinking": "reasoning"}
        return {
            key: self._text(value, Source(index, fields[key], number)) if key in fields else value
            for key, value in part.items()
        }

    def _call(self, index: int, part: int, call: Any) -> Any:
        if type(call) is not dict and not isinstance(call, Mapping):
            return call
        out = {}
        for key, value in call.items():
            if key == "function":
                out[key] = self._call(index, part, value)
            elif key == "arguments":
                out[key] = self._value(value, Source(index, "arguments", part))
            else:
                out[key] = self._text(value, Source(index, key, part)) if key in ("name", "id") else value
        return out

    def _value(self, value: Any, source: Source) -> Any:
        if type(value) is dict or isinstance(value, Mapping):
            return {self._text(key, source): self._value(item, source) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._value(item, source) for item in value]
        return self._text(value, source)

    def _text(self, text: Any, source: Source) -> Any:
        if not isinstance(text, str) or not text or (self._wanted is not None and not self._wanted(text)):
            return text
        text = str.__str__(text)
        number = self._numbers.setdefault(source, len(self.sources))
        if number == len(self.sources):
            self.sources.append(source)
            self.texts.append("")
        whole = self.texts[number]
        first = whole.find(text) if whole else -1
        if first < 0:
            first = len(whole)
            self.texts[number] = whole + text
        return Traced(text, ((0, len(text), number, first, first + len(text)),))

    def trace(self, prompt: str) -> Trace:
        """What a rendering of the marked messages tells."""
        text = "".join((prompt, ""))
        spans = []
        for start, end, number, first, last in merged(prompt):
            own = self.texts[number][first:last] == text[start:end]
            spans.append(TraceSpan(start, end, *self.sources[number], first, last, own))
        return Trace(text, tuple(spans))


@public
@dataclass(frozen=True)
class Trace:
    """Whose each character of a rendering is. Made by `Chat.trace`. ``text``: the rendering; ``spans``: its runs of
    characters that came from messages, in order. What is in no span is the template's own."""

    text: str
    spans: Sequence[TraceSpan]

    def __repr__(self) -> str:
        return f"<Trace: {len(self.text):,} characters, {len(self.spans)} spans>"

    def __str__(self) -> str:
        """A line for each stretch: whose it is, and its text."""
        lines, at = [], 0
        for span in self.spans:
            if span.start > at:
                lines.append(f"{'':16}{self.text[at : span.start]!r}")
            lines.append(f"{f'{span.message} {span.field}':16}{self.text[span.start : span.end]!r}")
            at = span.end
        if at < len(self.text):
            lines.append(f"{'':16}{self.text[at:]!r}")
        return "\n".join(lines)

    @cached_property
    def own(self) -> str:
        """The template's own characters, with a null character in the place of each span."""
        ends = [0, *(span.end for span in self.spans)]
        starts = [*(span.start for span in self.spans), len(self.text)]
        return "\0".join(self.text[end:start] for end, start in zip(ends, starts, strict=True))

    @cached_property
    def places(self) -> Mapping[int, Sequence[int]]:
        """For each message that is shown the places of its spans in ``spans``."""
        found: dict[int, list[int]] = {}
        for place, span in enumerate(self.spans):
            found.setdefault(span.message, []).append(place)
        return found

    def of(self, message: int, *fields: str) -> Iterator[TraceSpan]:
        """The spans of a message, of these fields or of all.

        >>> trace = chat.trace(messages)
        >>> [trace.text[span.start : span.end] for span in trace.of(0, "content")]
        ['Is it cold in Oslo?']
        """
        spans = (self.spans[place] for place in self.places.get(message, ()))
        return (span for span in spans if not fields or span.field in fields)


def covered(words: str, spans: Iterable[TraceSpan]) -> bool:
    """Whether the spans show all of a text but white space."""
    at = 0
    for first, last in sorted((span.first, span.last) for span in spans):
        if words[at:first].strip():
            return False
        at = max(at, last)
    return not words[at:].strip()


def part_of(trace: Trace, start: int, end: int, *, before: str = "", first: int = 0, index: int = 0) -> Trace:
    """The trace of ``before`` and a part of the text. ``first``: the message that has the index ``index`` there;
    spans of those before it are left out."""
    by = len(before) - start
    spans = tuple(
        span._replace(start=span.start + by, end=span.end + by, message=span.message - first + index)
        for span in trace.spans
        if start <= span.start and span.end <= end and (span.message >= first or not first)
    )
    return Trace(before + trace.text[start:end], spans)
