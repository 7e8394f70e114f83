"""What a template writes around answers, read off the traces of short stand-ins.

A trace says where the words of messages are. What is not theirs is the template's: the text between a message and the
answer to it, and the text after an answer. It depends on the role of the message, and on whether the answer calls; so
each is found once for the options of a request, by one rendering. Here is also kept what else was found of the template
for these options.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from ..core.format import Format, Turn
from ..errors import ChatParsersError
from ..templates.probe.edges import opening
from ..templates.probe.stand_ins import answer, answered, question
from ..templates.probe.turns import common, outside_marker
from ..templates.rewrite.outline import Kind, Outline
from ..templates.trace import Trace

_USER, _ANSWER = Kind("user"), Kind("assistant")
_CALL, _RESULT = Kind("assistant", text=False, calls=1), Kind("tool", ids=False)
_ORDER = {"reasoning": 0, "content": 1}


class Rendered:
    """A turn, and the trace of its prompt, which may be found when it is asked for."""

    def __init__(self, turn: Turn, trace: Trace | Callable[[], Trace]) -> None:
        self.turn = turn
        self._trace = trace

    @property
    def trace(self) -> Trace:
        """Whose each character of the prompt is."""
        if not isinstance(self._trace, Trace):
            self._trace = self._trace()
        return self._trace


Traced = Callable[..., Rendered]


class Asked(NamedTuple):
    """What a prompt writes between a message and the answer to it. ``generated``: the last part, which a history does
    not have; ``prefix``: the last part, which belongs to the answer."""

    text: str
    generated: str
    prefix: str

    @property
    def header(self) -> str:
        """The text without the answer's part."""
        return self.text[: len(self.text) - len(self.prefix)]


class Preparation(Protocol):
    """What of a `prepare.Preparation` is used here."""

    def asked(self, role: str) -> Asked | None: ...
    def stand_in(self, outline: Outline, generate: bool) -> tuple[Trace, Format]: ...


class Around:
    """What the template writes around answers for the options of one request. ``traced``: renders messages."""

    def __init__(self, preparation: Preparation, traced: Traced) -> None:
        self._preparation = preparation
        self._traced = traced
        self._found: dict[tuple[str, Any], Any] = {}
        self.proved: dict[Any, str] = {}
        """What rollouts found of steps of a kind: see `bridge`."""

    def asked(self, role: str) -> Asked | None:
        """What a prompt writes between a message of this role and the answer; None if the template refuses that."""
        found: Asked | None = self._once("asked", role, self._asked)
        return found

    def generated(self, role: str) -> str:
        """The end of a prompt after a message of this role which a history does not have."""
        asked = self.asked(role)
        return "" if asked is None else asked.generated

    def opens_results(self, stop: str) -> bool:
        """Whether this text comes before each of several results, and not after the last."""
        return bool(self._once("opens results", stop, self._opens_results))

    def fact(self, name: str, find: Callable[[], bool]) -> bool:
        """Another fact, which is found once."""
        return bool(self._once("fact", name, lambda _: find()))

    def alone(self, calls: bool) -> str | None:
        """What comes after an answer that ends the conversation."""
        found: str | None = self._once("alone", calls, self._alone)
        return found

    def followed(self, calls: bool) -> str | None:
        """What comes between an answer and its results, or the next question."""
        found: str | None = self._once("followed", calls, self._followed)
        return found

    def part(self, kind: str, role: str) -> str:
        """What the template writes for a part of this type in a message of ``role``; ``""`` if that is not known."""
        return self._once("part", (kind, role), self._part) or ""

    def stop(self, calls: bool, stops: Sequence[str]) -> str:
        """The stop of an answer that something follows, with the white space before it; ``""`` if there is none."""
        after, alone = self.followed(calls) or "", self.alone(calls) or ""
        found = first_stop(after, stops)
        return "" if found is None else after[min(found[0], common(after, alone.rstrip())) : found[1]]

    def _once(self, what: str, key: Any, find: Callable[[Any], Any]) -> Any:
        if (what, key) not in self._found:
            self._found[what, key] = find(key)
        return self._found[what, key]

    def _asked(self, role: str) -> Asked | None:
        with suppress(ChatParsersError):
            known = self._preparation.asked(role) if role in ("user", "tool") else None
            if known is not None:
                return known
        found = self._shown(_outline(role), True)
        if found is None or not found[0].spans:
            return None
        trace, fmt = found
        text, history = _last_words(trace), self._shown(_outline(role), False)
        begun = len(text)
        if history is not None and history[0].spans:
            begun = outside_marker(text, common(text, _last_words(history[0])))
        return Asked(text, text[begun:], opening(fmt, text[begun:]))

    def _opens_results(self, stop: str) -> bool:
        result = Kind("tool")
        found = self._shown((_USER, _CALL._replace(calls=2), result, result), False)
        if found is None:
            return False
        trace, _ = found
        first, last = (list(trace.of(index, "content")) for index in (2, 3))
        if not first or not last:
            return False
        between, after = (first[-1].end, last[0].start), trace.text[last[-1].end :]
        one_by_one = any(between[0] <= span.start < between[1] for span in trace.of(1, "arguments"))
        return stop in trace.text[slice(*between)] and stop not in after and not one_by_one

    def _alone(self, calls: bool) -> str | None:
        found = self._shown((_USER, _CALL if calls else _ANSWER), False)
        turns = None if found is None else turns_of(found[0], 1, ())
        return found[0].text[found[0].spans[turns[-1][-1]].end :] if found is not None and turns else None

    def _followed(self, calls: bool) -> str | None:
        found = self._shown(_outline("tool") if calls else (_USER, _ANSWER, _USER), True)
        turns = None if found is None else turns_of(found[0], 1, ())
        if found is None or not turns:
            return None
        trace = found[0]
        end = trace.spans[turns[-1][-1]].end
        return trace.text[end : next((span.start for span in trace.of(2) if span.start >= end), None)]

    def _part(self, key: tuple[str, str]) -> str:
        kind, role = key
        source: Any = "data:image/png;base64,AAAA"
        part = {"type": kind, kind: {"url": source} if kind.endswith("_url") else source}
        texts = [{"type": "text", "text": text} for text in ("Some words", "The next words")]
        *history, last = answered() if role == "tool" else [question(), answer(), {"role": role}]
        message = {**last, "content": [texts[0], part, texts[1]]}
        try:
            rendered = self._traced([*history, message], add_generation_prompt=False)
            trace = rendered.trace
        except ChatParsersError:
            return ""
        if "result_parts" in rendered.turn.polyfills:
            return self.part(kind, "user")
        spans = list(trace.of(2, "content"))
        return trace.text[spans[0].end : spans[1].start].strip() if len(spans) > 1 else ""

    def _shown(self, outline: Outline, generate: bool) -> tuple[Trace, Format] | None:
        try:
            return self._preparation.stand_in(outline, generate)
        except ChatParsersError:
            return None


def _outline(role: str) -> Outline:
    """A conversation that ends with a message of this role."""
    short = {"user": (_USER,), "assistant": (_USER, _ANSWER), "tool": (_USER, _CALL, _RESULT)}
    return short.get(role, (_USER, _ANSWER, Kind(role)))


def _last_words(trace: Trace) -> str:
    """The text after the last words."""
    return trace.text[trace.spans[-1].end :]


def turns_of(trace: Trace, index: int, stops: Sequence[str]) -> list[list[int]]:
    """The spans of an answer by their places in the trace, those of a turn together: a new turn begins after a stop, or
    after another message.

    Left out are names and ids that are written once more (in a result, to say whose it is), and all that is out of
    order: a text after the calls is not where the model wrote it.
    """
    found: list[list[int]] = []
    seen: set[tuple[str, int, int]] = set()
    last, latest = 0, (0, 0)
    for number in trace.places.get(index, ()):
        span = trace.spans[number]
        order = _ORDER.get(span.field, 2), span.part if span.field != "content" else 0
        name = span.field, span.part, span.first
        begins = not found or any(other.message != index for other in trace.spans[found[-1][-1] + 1 : number])
        begins = begins or any(stop in trace.text[last : span.start] for stop in stops)
        if (begins and order < latest) or (span.field in ("name", "id") and name in seen):
            continue
        seen.add(name)
        latest = max(order, latest)
        if begins:
            found.append([])
        found[-1].append(number)
        last = span.end
    return found


def first_stop(text: str, stops: Sequence[str]) -> tuple[int, int] | None:
    """The span of the first stop in a text."""
    found = [(at, -len(stop)) for stop in stops if (at := text.find(stop)) >= 0]
    if not found:
        return None
    at, length = min(found)
    return at, at - length
