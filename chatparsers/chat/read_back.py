"""Reads a rendered conversation, such as a dataset's row or a log, back into messages, and marks the model's parts.

The headers that the template writes for each role show where messages begin (templates/probe/roles.py). The format's
parser reads an assistant's turn. Where an answer begins and ends is then found as `Chat.encode` finds it (`places`), by
a trace of the words that were read. Text that a template drops or merges cannot come back: the tools stay in the system
text, the reasoning of earlier turns is gone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..answers.format import Format
from ..errors import TemplateError
from ..public import public
from ..templates.probe.edges import opening
from ..templates.probe.roles import ANY, Headers
from ..templates.probe.turns import MARKER
from ..templates.trace import Trace, TraceSpan
from .places import NUMBER, Places, find_places
from .request import Request


@public
@dataclass(frozen=True, slots=True)
class PromptMessage:
    """A message of a rendered conversation.

    ``message``: OpenAI-shaped. ``start``, ``end``: the span of its content in the text. An assistant's span begins
    after the generation prompt and includes the text that ends its turn: all that the model writes, and so all that a
    loss counts. ``tokens``: the same in tokens, None without a tokenizer.
    """

    message: dict[str, Any]
    start: int
    end: int
    tokens: tuple[int, int] | None = None

    @property
    def written(self) -> bool:
        """Whether the model wrote it."""
        return bool(self.message["role"] == "assistant")


class _Place(NamedTuple):
    """The place of a message. Its header goes from ``begin`` to ``start``."""

    role: str
    header: str
    begin: int
    start: int


class _Found(NamedTuple):
    """A message, its span, and the spans of its words with their fields."""

    message: dict[str, Any]
    start: int
    end: int
    words: list[tuple[int, int, str]]


_FIELDS = {"reasoning": "reasoning", "content": "content", "call": "arguments"}


def read_back(
    request: Request, text: str, headers: Mapping[str, Headers], prefixes: Sequence[str]
) -> list[PromptMessage]:
    """The messages of a rendered conversation. ``prefixes``: what generation prompts write of an answer; the first that
    is there is not the model's. Raises `TemplateError` if the template marks no roles."""
    fmt, tokenizer = request.chat.syntax, request.chat.tokenizer
    if not headers:
        name = request.chat.template().name
        raise TemplateError(
            f"template {name}: no message can be found in its text, as it does not mark where a user's message and the "
            "answer to it begin (read the text with a format's parser, turn by turn)"
        )
    places = _places(text, headers)
    offsets = None if tokenizer is None else tokenizer.encode(text, add_special_tokens=False).offsets
    found: list[_Found] = []
    for place, following in zip(places, [*places[1:], None], strict=True):
        end = len(text) if following is None else following.begin
        after = headers[place.role].after
        if place.role == "assistant":
            if following is not None and after.strip() and after.strip() in following.header:
                end = following.start  # the end of a turn is all that comes before the next answer
            item = _answer(text, place, end, fmt, after)
            if not any(item.message.get(key) for key in ("content", "tool_calls", "reasoning_content")):
                continue  # a generation prompt, or nothing between two headers
            # gpt-oss writes a header before each part of an answer.
            if found and _thought_alone(found[-1].message):
                item = _joined(found.pop(), item)
        else:
            content = _without(text[place.start : end], after)
            words = (place.start, place.start + len(content), "content")
            item = _Found({"role": place.role, "content": content}, place.start, words[1], [words])
        found.append(item)
    _answered([item.message for item in found])
    answers = _answers(request, text, found)
    out: list[PromptMessage] = []
    for index, (message, start, end, _) in enumerate(found):
        if message["role"] == "assistant":
            answer = answers.get(index)
            if answer and not any(_over_a_stop(fmt, text[turn.start : turn.stop]) for turn in answer):
                start, end = answer[0].start, answer[-1].end
            given = (prefix for prefix in prefixes if prefix and text.startswith(prefix, start, end))
            start += len(next(given, ""))
        out.append(PromptMessage(message, start, end, _tokens(offsets, start, end)))
    return out


def _over_a_stop(fmt: Format, answer: str) -> bool:
    """Whether the text holds a stop: then a message after the answer was not found."""
    return any(stop in answer for stop in fmt.stops)


def _thought_alone(message: Mapping[str, Any]) -> bool:
    said = message.get("content") or message.get("tool_calls")
    return message["role"] == "assistant" and not said


def _joined(thought: _Found, answer: _Found) -> _Found:
    """A thought, and the rest of the answer after it."""
    reasoning = thought.message["reasoning_content"] + (answer.message.get("reasoning_content") or "")
    message = {**answer.message, "reasoning_content": reasoning}
    return _Found(message, thought.start, answer.end, thought.words + answer.words)


def _answers(request: Request, text: str, found: Sequence[_Found]) -> Places:
    """The places of the answers, as `Chat.encode` has them, by their indices. The tools are those that are called."""
    messages = [item.message for item in found]
    names = dict.fromkeys(call["function"]["name"] for m in messages for call in m.get("tool_calls") or ())
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    asking = request.but(tools=tools or None)
    around = asking.around(asking.polyfills(messages))
    return find_places(_read(text, found), messages, around)


def _read(text: str, found: Sequence[_Found]) -> Trace:
    """The trace that a rendering of these messages would have: their words were read off the text."""
    spans: list[TraceSpan] = []
    for index, item in enumerate(found):
        for first, last, field in item.words:
            words = text[first:last]
            start, end = first + len(words) - len(words.lstrip()), first + len(words.rstrip())
            if start < end and MARKER.fullmatch(words.strip()) is None:  # else it is the end of a header
                spans.append(TraceSpan(start, end, index, field, 0, start - first, end - first, True))
    return Trace(text, tuple(spans))


def _places(text: str, headers: Mapping[str, Headers]) -> list[_Place]:
    """Every header in the text, in order. If two begin at one place, the longer one."""
    known = [(role, before) for role, header in headers.items() for before in header.before]
    known.sort(key=lambda item: -len(item[1].strip()))
    spelt = (_pattern(before) for _, before in known)
    pattern = re.compile("|".join(f"({one})" for one in spelt))
    found: list[_Place] = []
    for match in pattern.finditer(text):
        role, header = known[(match.lastindex or 1) - 1]
        lead, trail = header[: len(header) - len(header.lstrip())], header[len(header.rstrip()) :]
        begin = match.start() - (len(lead) if text.endswith(lead, 0, match.start()) else 0)
        start = match.end() + (len(trail) if text.startswith(trail, match.end()) else 0)
        found.append(_Place(role, header, begin, start))
    return found


def _pattern(header: str) -> str:
    """The expression of a header, without white space around it: it may hold any name, and any number in the place of
    one that counts. A mere word (``tool``) must end its line."""
    texts = (r"\d+".join(map(re.escape, NUMBER.split(text))) for text in header.strip().split(ANY))
    line = header.rstrip(" ").endswith("\n") and MARKER.search(header) is None
    return r"[^\s<>]+".join(texts) + (r"(?=[ \t]*\n)" if line else "")


def _answer(text: str, place: _Place, end: int, fmt: Format, after: str) -> _Found:
    """The message in an assistant's text, up to where the model's own text ends."""
    wire = text[place.start : end]
    ends = [at + len(stop) for stop in fmt.stops if (at := wire.find(stop)) >= 0]
    if ends:
        wire = wire[: min(ends)]
    elif after.strip() or wire.endswith(after):
        wire = _without(wire, after)
    turn = fmt.bind(tools=[{"name": "any"}], prefix=opening(fmt, place.header))
    read = turn.parse(wire)
    words = [
        (place.start + region.start, place.start + region.end, _FIELDS[region.kind])
        for region in read.regions
        if region.kind in _FIELDS
    ]
    return _Found(read.to_openai(), place.start, place.start + len(wire), words)


def _without(text: str, end: str) -> str:
    """``text`` without ``end``, or without as much of its marker and white space as is there."""
    if end and text.endswith(end):
        return text[: -len(end)]
    marker = end.strip()
    at = text.rfind(marker) if marker else -1
    return text[:at] if at >= 0 and not text[at + len(marker) :].strip() else text


def _tokens(offsets: list[tuple[int, int]] | None, start: int, end: int) -> tuple[int, int] | None:
    """The tokens that hold a character of the span."""
    if offsets is None:
        return None
    inside = [number for number, (first, last) in enumerate(offsets) if first < end and last > start]
    return (inside[0], inside[-1] + 1) if inside else (0, 0)


def _answered(messages: Sequence[dict[str, Any]]) -> None:
    """Gives results the ids and names of the calls that they answer, in their order."""
    waiting: list[Mapping[str, Any]] = []
    for message in messages:
        if message["role"] == "assistant":
            waiting = list(message.get("tool_calls") or ())
        elif message["role"] == "tool" and waiting:
            call = waiting.pop(0)
            message.update(tool_call_id=call["id"], name=call["function"]["name"])
