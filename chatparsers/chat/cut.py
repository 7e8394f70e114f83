"""Cuts the text of a conversation into its messages, and each of them into header, words, thought, call and stop.

    …<|im_end|>⏎<|im_start|>assistant⏎<think>⏎So.⏎</think>⏎⏎Yes.<|im_end|>⏎<|im_start|>user⏎And now?…
    ├ part ─┤  └─────── header ──────┘└─ markup, thought, content ─┘└ stop ─┘└─ header ─────┘└ words ┘

Strategy. The headers that the template writes for each role show where messages begin (templates/probe/roles.py). The
format's parser reads an answer. Where it begins and ends is then found as `Chat.encode` finds it (`places`), by a trace
of the words that were read. So `Chat.parse_prompt`, which has a text, and the judge of labels, which has ids, see the
spans that a loss counts.

A prompt may write the beginning of an answer, and other wishes for thoughts write other beginnings. So an answer begins
after the first of them that is there, and what only some of them write is nobody's (`Part.free`).

Invariants: parts are in the order of the text and do not overlap; what is between two of them is the header of the
second, and before its first marker what follows the stop of the first.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..answers.format import Format, Turn
from ..errors import TemplateError
from ..streams.message import Message
from ..templates.borders import Lead
from ..templates.probe.edges import edges_of
from ..templates.probe.roles import ANY, Headers, role_headers
from ..templates.probe.turns import MARKER
from ..templates.trace import Trace, TraceSpan
from .inline import beside_thoughts
from .marks import answer_runs, kind_of
from .places import NUMBER, Place, Places, find_places
from .request import Request, with_objects
from .sample import Kind, Run

_FIELDS = {"reasoning": "reasoning", "content": "content", "call": "arguments"}
_ANY_TOOL = [{"name": "any"}]
_CALLED = [{"type": "function", "function": {"name": "any"}}]


@dataclass(slots=True)
class Part:
    """A message in a text. ``message``: OpenAI-shaped. ``begin``: where the message before it ends. ``opens``: where
    its header begins. ``start``, ``end``: its words; an answer's, from after the generation prompt to the end of its
    stop, which begins at ``stop``. ``free``: the text that is some prompt's, and after another one the model's.
    ``silent``: where what is written for no thought begins, which ends at ``start``. ``read``: how the format reads the
    answer after its ``header``, from ``at`` on."""

    message: dict[str, Any]
    begin: int
    opens: int
    start: int
    stop: int
    end: int
    free: tuple[int, int] = (-1, -1)
    silent: int = -1
    header: str = ""
    read: Message | None = None
    at: int = 0

    @property
    def written(self) -> bool:
        """Whether the model wrote it."""
        return self.read is not None

    def runs(self) -> Iterator[Run]:
        """What its stretches are: characters and their `Kind`. A later one is over those before it."""
        if self.read is None:
            yield self.start, self.end, int(kind_of(self.message))
            return
        yield self.start, self.stop, int(Kind.ANSWER_MARKUP)
        for start, end, kind in answer_runs(self.read):
            first, last = max(self.at + start, self.start), min(self.at + end, self.stop)
            if first < last:
                yield first, last, int(kind)
        yield self.stop, self.end, int(Kind.STOP)


class _Header(NamedTuple):
    """A header of a role in the text, from ``begin`` to ``start``."""

    role: str
    header: str
    begin: int
    start: int


def headers_of(request: Request) -> Mapping[str, Headers]:
    """The headers of the template's roles. Raises `TemplateError` if it marks none."""
    chat = request.chat
    found = request.fact("headers", lambda: role_headers(chat.template(), chat.syntax))
    if not found:
        name = chat.template().name
        raise TemplateError(
            f"template {name}: no message can be found in its text, as it does not mark where a user's message and the "
            "answer to it begin (read the text with a format's parser, turn by turn)"
        )
    return found


def cut(request: Request, text: str, wishes: Sequence[bool] = ()) -> list[Part]:
    """The messages of a text. ``request``: its tools read the calls; any tool, without. What its prompt writes of an
    answer is not the model's; else what that of one of these ``wishes`` for thoughts does. Raises `TemplateError` if
    the template marks no roles."""
    fmt, headers = request.chat.syntax, headers_of(request)
    places = _places(text, headers, request.chat.files.bos_token)
    found: list[Part] = []
    for number, place in enumerate(places):
        following = places[number + 1] if number + 1 < len(places) else None
        end = len(text) if following is None else following.begin
        after = headers[place.role].after
        begin = found[-1].end if found else 0
        if place.role != "assistant":
            content = _without(text[place.start : end], after)
            last = place.start + len(content)
            found.append(
                Part({"role": place.role, "content": content}, begin, place.begin, place.start, last, last)
            )
            continue
        if following is not None and after.strip() and after.strip() in following.header:
            end = following.start  # the end of a turn is all that comes before the next answer
        wire = _wire(text[place.start : end], fmt.stops, after)
        part = _answer(request, wire, place, begin)
        if not _says(part) and part.stop == part.end:
            continue  # a generation prompt, or nothing between two headers
        if found and _goes_on(found[-1], part):
            first = found.pop()
            header = _Header("assistant", first.header, first.opens, first.at)
            part = _answer(request, text[first.at : part.end], header, first.begin)
        found.append(part)
    if len(found) > 1 and found[-2].written and not (found[-1].written or found[-1].message["content"]):
        found.pop()  # the stop of the last answer is the next message's header
    _answered([part.message for part in found])
    read = _read(text, found)
    messages = [with_objects(part.message) for part in found]  # the last call may be cut
    answers = _answers(request, read, messages)
    others = [_of_wish(request, wish, read, messages) for wish in wishes]
    for index, part in enumerate(found):
        if part.written:
            begun = [places[index] for places in others if index in places]
            _narrowed(request, part, text, answers.get(index, ()), begun)
            opens = found[index + 1].opens if index + 1 < len(found) else len(text)
            if part.end > opens and text[part.stop : part.end].strip() not in map(str.strip, fmt.stops):
                part.stop = part.end = max(min(part.stop, opens), part.start)
        if index:
            part.begin = found[index - 1].end
    return found


def _narrowed(
    request: Request, part: Part, text: str, turns: Sequence[Place], others: Sequence[Place]
) -> None:
    """Puts the answer where `Chat.encode` counts it: from after the generation prompt, and after what the template
    writes for no thought, to the end of its stop. ``others``: where prompts of other wishes leave it to the model."""
    wrote = False
    if turns and not any(_over_a_stop(request.chat.syntax, text[turn.start : turn.stop]) for turn in turns):
        part.start, part.stop, part.end = turns[0].start, turns[-1].stop, turns[-1].end
        wrote = bool(turns[0].prefix) and any(
            lead is not None and turns[0].prefix == lead.prefix for lead in _leads(request)
        )
    begin, marks = part.start, request.marks
    begins = [begin]
    for place in others:
        if part.opens <= place.start <= part.stop:
            begins.append(place.start)
            if place.prefix and not wrote:
                part.start, wrote = max(part.start, place.start), True
    part.free = min(begins), max(begins)
    if not part.message.get("reasoning_content"):
        if any(text.find(mark.end, *part.free) >= 0 for mark in marks):  # what is written for no thought
            part.start, part.free = max(part.start, *part.free), (begin, begin)
        runs = [(start - begin, end - begin, kind) for start, end, kind in _regions(part)]
        for first, last in beside_thoughts(
            text[begin : part.stop], runs, marks, thought=False, reasoning=True
        ):
            part.start = max(part.start, begin + last) if not first else part.start
    closed = any(text.find(mark.end, begin, part.start) >= 0 for mark in marks)
    part.silent = begin if closed else part.start


def _of_wish(
    request: Request, wish: bool, read: Trace, messages: Sequence[Mapping[str, Any]]
) -> Mapping[int, Place]:
    """Where the answers begin after prompts of another wish for thoughts, where all that they write is there. Nothing
    if they are those without a wish."""
    other = request.but(thinking=wish)
    leads = _leads(other)
    if leads == _leads(request):
        return {}
    begun = {lead.prefix for lead in leads if lead is not None}
    return {
        index: turns[0]
        for index, turns in _answers(other, read, messages).items()
        if turns[0].prefix in begun
    }


def _leads(request: Request) -> tuple[Lead | None, ...]:
    """What prompts write before an answer, after a message of each role."""

    def found() -> tuple[Lead | None, ...]:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # a template may not have the wish: then its prompts are the usual ones
            return tuple(request.around(()).asked(role) for role in ("user", "tool", "assistant"))

    return request.fact("leads", found)


def _over_a_stop(fmt: Format, answer: str) -> bool:
    """Whether the text holds a stop: then a message after the answer was not found."""
    return any(stop in answer for stop in fmt.stops)


def _says(part: Part) -> bool:
    return any(part.message.get(key) for key in ("content", "tool_calls", "reasoning_content"))


def _goes_on(first: Part, second: Part) -> bool:
    """Whether two messages are one answer: a thought and what comes after it, a text and a call, or two calls.
    gpt-oss writes a header before each part of an answer."""
    if not first.written or first.stop < first.end:
        return False
    if not (first.message.get("content") or first.message.get("tool_calls")):
        return True
    return bool(second.message.get("tool_calls"))


def _answer(request: Request, wire: str, place: _Header, begin: int) -> Part:
    """The answer whose text is ``wire``, after its header."""
    fmt = request.chat.syntax
    prefix = edges_of(fmt).opening(place.header)
    read = _reader(request, prefix).parse(wire)
    end = place.start + len(wire)
    closed = wire.rstrip()
    stop = max((len(stop) for stop in fmt.stops if closed.endswith(stop)), default=0)
    stops = place.start + len(closed) - stop if stop else end
    return Part(
        read.to_openai(),
        begin,
        place.begin,
        place.start,
        stops,
        end,
        (-1, -1),
        -1,
        place.header,
        read,
        place.start,
    )


def _reader(request: Request, prefix: str) -> Turn:
    """The turn that reads answers after this beginning."""

    def made() -> Turn:
        return request.chat.syntax.bind(tools=request.tools.raw or _ANY_TOOL, prefix=prefix)

    return request.fact(("reader", prefix), made)


def _wire(wire: str, stops: Sequence[str], after: str) -> str:
    """An assistant's text up to where the model's own text ends. ``after``: what the template writes there."""
    ends = [at + len(stop) for stop in stops if (at := wire.find(stop)) >= 0]
    if ends:
        return wire[: min(ends)]
    return _without(wire, after) if after.strip() or wire.endswith(after) else wire


def _answers(request: Request, read: Trace, messages: Sequence[Mapping[str, Any]]) -> Places:
    """The places of the answers, as `Chat.encode` has them, by their indices."""
    called = any(message.get("tool_calls") for message in messages)
    asking = request if request.tools else request.but(tools=_CALLED if called else None)
    return find_places(read, messages, asking.around(asking.polyfills(messages)))


def _read(text: str, found: Sequence[Part]) -> Trace:
    """The trace that a rendering of these messages would have: their words were read off the text."""
    spans: list[TraceSpan] = []
    for index, part in enumerate(found):
        for first, last, field in _words(part):
            words = text[first:last]
            start, end = first + len(words) - len(words.lstrip()), first + len(words.rstrip())
            if start < end and MARKER.fullmatch(words.strip()) is None:  # else it is the end of a header
                spans.append(TraceSpan(start, end, index, field, 0, start - first, end - first, True))
    return Trace(text, tuple(spans))


def _words(part: Part) -> Iterator[tuple[int, int, str]]:
    """The spans of a message's words, with their fields."""
    if part.read is None:
        yield part.start, part.end, "content"
        return
    for start, end, kind in _regions(part):
        if kind in _FIELDS:
            yield start, end, _FIELDS[kind]


def _regions(part: Part) -> Iterator[tuple[int, int, str]]:
    """What the format read in an answer."""
    for region in part.read.regions if part.read is not None else ():
        yield part.at + region.start, part.at + region.end, region.kind


def _places(text: str, headers: Mapping[str, Headers], bos: str | None) -> list[_Header]:
    """Every header in the text, in order. If two begin at one place, the longer one. ``bos``: may be before the
    first."""
    known = [(role, before) for role, header in headers.items() for before in header.before]
    known.sort(key=lambda item: -len(item[1].strip()))
    ends = [header.after for header in headers.values()]
    after = [*ends, bos or ""] if all(MARKER.search(end) and end == end.strip() for end in ends) else []
    spelt = (_pattern(before, after) for _, before in known)
    pattern = re.compile("|".join(f"({one})" for one in spelt))
    found: list[_Header] = []
    for match in pattern.finditer(text):
        role, header = known[(match.lastindex or 1) - 1]
        lead, trail = header[: len(header) - len(header.lstrip())], header[len(header.rstrip()) :]
        begin = match.start() - (len(lead) if text.endswith(lead, 0, match.start()) else 0)
        start = match.end() + (len(trail) if text.startswith(trail, match.end()) else 0)
        found.append(_Header(role, header, begin, start))
    return found


def _pattern(header: str, after: Sequence[str]) -> str:
    """The expression of a header, without white space around it: it may hold any name, and any number in the place of
    one that counts. One without a marker (``tool``) must end its line, and stand after what ends a message, where each
    of these texts (``after``) has a marker."""
    texts = (r"\d+".join(map(re.escape, NUMBER.split(text))) for text in header.strip().split(ANY))
    found, bare = r"[^\s<>]+".join(texts), MARKER.search(header) is None
    if bare and after and header == header.lstrip():
        found = rf"(?:\A|{'|'.join(f'(?<={re.escape(end)})' for end in after if end)}){found}"
    line = header.rstrip(" ").endswith("\n") and bare
    return found + (r"(?=[ \t]*\n)" if line else "")


def _without(text: str, end: str) -> str:
    """``text`` without ``end``, or without as much of its marker and white space as is there."""
    if end and text.endswith(end):
        return text[: -len(end)]
    marker = end.strip()
    at = text.rfind(marker) if marker else -1
    return text[:at] if at >= 0 and not text[at + len(marker) :].strip() else text


def _answered(messages: Sequence[dict[str, Any]]) -> None:
    """Gives results the ids and names of the calls that they answer, in their order."""
    waiting: list[Mapping[str, Any]] = []
    for message in messages:
        if message["role"] == "assistant":
            waiting = list(message.get("tool_calls") or ())
        elif message["role"] == "tool" and waiting:
            call = waiting.pop(0)
            message.update(tool_call_id=call["id"], name=call["function"]["name"])
