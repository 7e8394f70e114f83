"""What a template writes around answers, read off the traces of short stand-ins.

A trace says where the words of messages are. What is not theirs is the template's: the text between a message and the
answer to it, and the text after an answer. It depends on the role of the message, and on whether the answer calls; so
each is found once for the options of a request, by one rendering. The stand-ins are those by which the format was
detected and the polyfills were planned, so most of these renderings are known before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

from ..answers.format import Format, Turn
from ..errors import ChatParsersError
from ..kept import cached, cached_method
from ..templates.borders import Ends, Lead, first_stop
from ..templates.probe.edges import Edges, end_marker
from ..templates.probe.stand_ins import FOUND, answer, answered, question, results
from ..templates.probe.turns import FOLLOW_UP
from ..templates.renderer import Renderer
from ..templates.trace import Trace

_ORDER = {"reasoning": 0, "content": 1}
HOSTS = ("system", "developer")
"""Roles whose words are the host's own."""


class Rendered(NamedTuple):
    """A turn, whose each character of its prompt is, and what the template writes around such answers. ``parts``: what
    it writes for a part that is no text, by its type and the role of the message; ``""`` if that is not known."""

    turn: Turn
    trace: Trace
    around: Around
    parts: Mapping[tuple[str, str], str] = MappingProxyType({})


Messages = Sequence[Mapping[str, Any]]


class Around:
    """What the template writes around the answers of a conversation that needs these polyfills. ``edges``: of the
    format that reads these answers; ``tools``: whether there are some; ``variables``: the template's; ``given``:
    whether a caller gave some of them, on which the stop may depend."""

    def __init__(
        self,
        renderer: Renderer,
        edges: Edges,
        polyfills: Sequence[str],
        tools: bool,
        variables: Mapping[str, Any],
        given: bool = False,
    ) -> None:
        self._renderer = renderer
        self._edges = edges
        self._polyfills = polyfills
        self._tools = tools
        self._variables = {name: value for name, value in variables.items() if name != "strftime_now"}
        self._given = given

    @cached
    def stops(self) -> tuple[str, ...]:
        """The stops of the format, and the one that the template writes with the variables that a caller gave."""
        format = self._edges.format
        stops, shown = format.stops, ["", ""]
        for place, after in enumerate((self.alone, self.followed) if self._given else ()):
            shown[place] = after(False) or ""
            if any(stop in shown[place] for stop in stops):
                return stops
        return (*end_marker(format, *shown), *stops) if any(shown) else stops

    @cached_method
    def asked(self, role: str) -> Lead | None:
        """What a prompt writes between a message of this role and the answer; None if the template refuses that."""
        with suppress(ChatParsersError):
            found = self._renderer.tail(role, self._polyfills, self._tools, self._variables)
            return None if found is None else Lead(*found, self._edges.opening(found[1]))
        return None

    @property
    def syntax(self) -> Format:
        """The format of tools and calls, also if the template shows none."""
        return self._renderer.syntax

    @cached_method
    def turn_markers(self, pattern: re.Pattern[str]) -> frozenset[str]:
        """The markers, of those that the pattern finds, with which the template begins and ends messages."""
        leads = (self.asked(role) for role in ("user", "tool", *HOSTS))
        texts = [lead.header for lead in leads if lead is not None]
        for ends in map(self.ends, (False, True)):
            for text in (ends.alone, ends.followed):
                stop = first_stop(text, self.stops)  # before it, calls are closed
                texts.append(text[stop[0] if stop else len(text) :] if ends.calls else text)
        markers = (one[0].strip() for text in texts for one in pattern.finditer(text))
        return frozenset((*markers, *(stop.strip() for stop in self.stops)))

    @cached
    def silent(self) -> str:
        """What comes between the header and the words of an answer without a thought: some templates write an empty
        one."""
        trace, asked = self._shown([question(), answer()]), self.asked("user")
        if trace is None or asked is None:
            return ""
        first = next((span.start for span in trace.of(1, "content")), 0)
        before = max((span.end for span in trace.of(0, "content") if span.end <= first), default=0)
        gap = trace.text[before:first]
        return gap.removeprefix(asked.header) if gap.startswith(asked.header) else ""

    @cached_method
    def opens_results(self, stop: str) -> bool:
        """Whether this text comes before each of several results, and not after the last."""
        trace = self._shown(two_results())
        if trace is None:
            return False
        first, last = (list(trace.of(index, "content")) for index in (2, 3))
        if not first or not last:
            return False
        between, after = (first[-1].end, last[0].start), trace.text[last[-1].end :]
        one_by_one = any(between[0] <= span.start < between[1] for span in trace.of(1, "arguments"))
        return stop in trace.text[slice(*between)] and stop not in after and not one_by_one

    @cached_method
    def alone(self, calls: bool) -> str | None:
        """What comes after an answer that ends the conversation."""
        trace = self._shown([question(), answer("", calls=1) if calls else answer()])
        end = _end_of_answer(trace)
        return None if trace is None or end is None else trace.text[end:]

    @cached_method
    def followed(self, calls: bool) -> str | None:
        """What comes between an answer and its results, or the next question."""
        messages = answered() if calls else [question(), answer(), question(FOLLOW_UP)]
        trace = self._shown(messages, generate=calls)
        end = _end_of_answer(trace)
        if trace is None or end is None:
            return None
        return trace.text[end : next((span.start for span in trace.of(2) if span.start >= end), None)]

    def ends(self, calls: bool, followed: bool = True) -> Ends:
        """What comes after an answer, of those that call or of the others. ``followed``: also if something follows."""
        after = self.followed(calls) if followed else ""
        return Ends(self.stops, calls, self.alone(calls) or "", after or "")

    def is_header(self, calls: bool, stop: str) -> bool:
        """Whether the stop after an answer is the next message's header: a conversation that ends there has no stop, or
        the stop opens each result."""
        alone = self.alone(calls)
        if not stop or alone is None:
            return False
        return first_stop(alone, self.stops) is None or (calls and self.opens_results(stop))

    def _shown(self, messages: Messages, generate: bool = False) -> Trace | None:
        try:
            return self._renderer.stand_in(messages, self._polyfills, self._tools, generate, self._variables)
        except ChatParsersError:
            return None


def two_results() -> Messages:
    """A question, two calls for it, and their results, with other words at each place."""
    words = (f"{FOUND} {place}" for place in range(2))
    found = [{**one, "content": text} for one, text in zip(results(2), words, strict=True)]
    return [question(), answer("", calls=2), *found]


def _end_of_answer(trace: Trace | None) -> int | None:
    """Where the words of the answer to a stand-in's question end."""
    turns = [] if trace is None else turns_of(trace, 1, ())
    return trace.spans[turns[-1][-1]].end if trace is not None and turns else None


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
