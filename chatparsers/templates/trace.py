"""Whose is each character of a rendering: by one rendering, for any template.

    messages ──marked──> traced texts ──polyfills, shape, template──> prompt with runs ──> Trace

Strategy. Each text of the messages becomes a `Traced`, which carries its source through the polyfills and the template
(`jinja/traced.py`). What comes out says, for each run of characters, the message and the field that it came from. The
rest is the template's own: headers, stops, the generation prompt. A text that is not shown has no span; one that
is shown twice has two; one that is spelt otherwise (escaped, in capitals) is not `verbatim`.

Invariant: the text is that of a plain rendering. A trace is found for one conversation and kept for none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..kept import cached
from ..public import public
from .jinja.traced import merged, traced

_FIELDS = {
    **dict.fromkeys(("reasoning_content", "reasoning", "thinking"), "reasoning"),
    "name": "name",
    "tool_call_id": "id",
    "refusal": "refusal",
    "tool_plan": "tool_plan",
}
"""The fields of a message that are texts, by their keys."""
TOOLS = -1
"""The index that stands for the request's tools and documents in the place of a message's."""


Source = tuple[int, str, int]
"""A text of a conversation: the index of its message, -1 for tools and documents; its field: ``content``,
``reasoning``, ``refusal``, ``tool_plan``, ``role`` (if it is no plain word), ``name``, ``id``, ``arguments``, ``tools``
or ``documents``; the index of the part of the content, or of the call."""


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

    def given(self, values: Any, field: str, wanted: Callable[[str], object]) -> Any:
        """Tools or documents, in which each text is traced for which ``wanted`` is true."""
        self._wanted, before = wanted, self._wanted
        try:
            return self._value(values, (TOOLS, field, 0))
        finally:
            self._wanted = before

    def _message(self, index: int, message: Mapping[str, Any]) -> Mapping[str, Any]:
        if type(message) is not dict and not isinstance(message, Mapping):
            return message
        out = dict(message)
        if isinstance(role := message.get("role"), str) and not role.isidentifier():
            out["role"] = self._text(role, (index, "role", 0))
        if "content" in message:
            out["content"] = self._content(index, message["content"])
        if len(message) > 2:
            for key in _FIELDS.keys() & message.keys():
                out[key] = self._text(message[key], (index, _FIELDS[key], 0))
            calls = message.get("tool_calls")
            if isinstance(calls, (list, tuple)):
                out["tool_calls"] = [self._call(index, part, call) for part, call in enumerate(calls)]
        return out

    def _content(self, index: int, content: Any) -> Any:
        if type(content) is str or not isinstance(content, (list, tuple)):
            return self._text(content, (index, "content", 0))
        return [self._part(index, number, part) for number, part in enumerate(content)]

    def _part(self, index: int, number: int, part: Any) -> Any:
        if not isinstance(part, Mapping):
            return self._text(part, (index, "content", number))
        fields = {"text": "content", "refusal": "content", "thinking": "reasoning", "reasoning": "reasoning"}
        return {
            key: self._text(value, (index, fields[key], number)) if key in fields else value
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
                out[key] = self._value(value, (index, "arguments", part))
            else:
                out[key] = self._text(value, (index, key, part)) if key in ("name", "id") else value
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
        number, first, size = self._numbers.get(source), 0, len(text)
        if number is None:
            number = self._numbers[source] = len(self.sources)
            self.sources.append(source)
            self.texts.append(str.__str__(text))
        elif (first := self.texts[number].find(text)) < 0:
            first = len(self.texts[number])
            self.texts[number] += text
        return traced(text, ((0, size, number, first, first + size),))

    def trace(self, prompt: str) -> Trace:
        """What a rendering of the marked messages tells."""
        text = "".join((prompt, ""))
        spans = [
            TraceSpan(
                start,
                end,
                *self.sources[number],
                first,
                last,
                last - first == end - start and text.startswith(self.texts[number][first:last], start),
            )
            for start, end, number, first, last in merged(prompt)
        ]
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

    @cached
    def own(self) -> str:
        """The template's own characters, with a null character in the place of each span."""
        ends = [0, *(span.end for span in self.spans)]
        starts = [*(span.start for span in self.spans), len(self.text)]
        return "\0".join(self.text[end:start] for end, start in zip(ends, starts, strict=True))

    @cached
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
