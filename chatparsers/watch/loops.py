"""Text that repeats without an end: a model that is stuck.

Strategy: in each region, after every `STEP` characters the last `TAIL` are looked for in the `REACH` before. Where they
are found, the distance is the period of a loop if enough of the text is the same one period earlier. So text of people
costs one search a look, and what is found depends on the region's text alone, not on the pieces in which it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

from ..streams.message import Diagnostic, Loop, Message, RegionKind
from ..streams.transcript import KINDS, Transcript

STEP, TAIL, REACH = 256, 48, 16_384
_TRIES = 4
"""How many of the places where the tail stands are tried, the nearest first."""
TOLD, STUCK = 4, 8
"""From how many rounds on a loop is told, and from how many on the model is stuck."""
_LEAST, _LEAST_SIGNS = 50, 300
"""How many characters there must be for each of these rounds: of text, and of signs alone, with which people draw lines
and tables."""
_SNIPPET = 40


class _Region:
    """One region, as its text comes. ``loops``: those that were found in it, each as far as it goes. ``open``: whether
    the last of them goes on where it looked last."""

    def __init__(self, kind: RegionKind, start: int) -> None:
        self.kind = kind
        self.start = start
        self.loops: list[Loop] = []
        self.open = False
        self._text = ""
        self._gone = 0
        """How many characters were before the text."""
        self._next = STEP

    def take(self, text: str) -> None:
        """Reads more of its text."""
        self._text += text
        while self._next <= self._gone + len(self._text):
            self._look(self._next - self._gone)
            self._next += STEP
        if len(self._text) > 2 * REACH:
            cut = len(self._text) - REACH
            self._text, self._gone = self._text[cut:], self._gone + cut

    @property
    def lacks(self) -> int:
        """How many characters must come before it looks again."""
        return self._next - self._gone - len(self._text)

    def _look(self, end: int) -> None:
        """Looks for a loop that goes on up to ``end``."""
        text, low, self.open = self._text, max(0, end - REACH), False
        tail = text[end - TAIL : end]
        last = end - 1
        for _ in range(_TRIES):
            place = text.rfind(tail, low, last)
            if place < 0:
                return
            period, last = end - TAIL - place, place + TAIL - 1
            least = _LEAST if any(map(str.isalnum, text[end - period : end])) else _LEAST_SIGNS
            size = period + _alike(text, end - period, end, low)
            before = self.loops[-1] if self.loops else None
            start = self.start + self._gone + end - size
            if before is not None and before.period == period and start <= before.end:
                start = before.start
                size = self.start + self._gone + end - start
            if size < max(TOLD * period, TOLD * least):
                continue
            stuck = size >= max(STUCK * period, STUCK * least)
            if before is not None and start == before.start:
                self.loops.pop()
            self.loops.append(Loop(self.kind, start, start + size, period, stuck))
            self.open = True
            return


def _alike(text: str, one: int, other: int, low: int) -> int:
    """How many characters before ``one`` and before ``other`` are the same, from ``low`` on."""
    size, most = 0, one - low
    while size < most:  # a bisection by comparisons of C
        half = (size + most + 1) // 2
        if text[one - half : one - size] == text[other - half : other - size]:
            size = half
        else:
            most = half - 1
    return size


class Loops:
    """The loops of an answer, as it comes: what `Stream.loop` asks. ``due``: before so much was fed, there is nothing
    to look at. ``seen``: up to where it has looked."""

    def __init__(self) -> None:
        self.due = 0
        self.seen = 0
        self.open: Loop | None = None
        self._region: tuple[int, _Region] | None = None

    def look(self, record: Transcript, fed: int, ids: Any) -> None:
        """Looks at what was read since the last time. ``fed``: how much was fed."""
        for start, kind, text in record.since(self.seen, fed):
            if self._region is None or self._region[0] != start:
                self._region = start, _Region(KINDS[kind], 0)
            region = self._region[1]
            if region.kind != "markup":
                region.take(text)
            self.open = None
            if region.open:
                begin, found = record.place(start, ids), region.loops[-1]
                self.open = found._replace(start=begin + found.start, end=begin + found.end)
        self.seen = record.length
        left = STEP if self._region is None or self._region[1].kind == "markup" else self._region[1].lacks
        self.due = self.seen + (left if self.open is None else 1)  # its region may end with any piece


def loops(message: Message) -> list[Loop]:
    """The loops in a whole message: each text of at least 200 characters that stands in it four times in a row.

    >>> turn = chatparsers.get_format("qwen3").bind()
    >>> found = loops(turn.parse("So I will look at it once more. " * 20))
    >>> found[0].period, found[0].rounds, found[0].stuck
    (32, 16, True)
    """
    if len(message.text) < STEP:
        return []
    found = []
    for region in message.regions:
        if region.kind != "markup" and region.end - region.start >= STEP:
            one = _Region(region.kind, region.start)
            one.take(message.text[region.start : region.end])
            found += one.loops
    return found


def repeated_text(message: Message) -> list[Diagnostic]:
    """The loops of a message as diagnostics, with the code ``repeated-text``."""
    return [
        Diagnostic(
            "repeated-text",
            loop.start,
            f"text that goes on, and not {loop.period} characters {loop.rounds} times",
            message.text[loop.start : loop.start + min(loop.period, _SNIPPET)],
        )
        for loop in loops(message)
    ]


TOLD_TURNS, STUCK_TURNS = 3, 5
"""How often the same calls with the same results are told, and how often the model is stuck."""


def repeated_turns(messages: Sequence[Any]) -> int:
    """How often a conversation has the same calls with the same results, one after the other, at its end; 0 if it does
    not end with results. The ids of calls do not count, nor what the model says beside them.

    >>> asked = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}
    >>> repeated_turns([{"role": "user", "content": "?"}, *[asked, {"role": "tool", "content": "no"}] * 3])
    3
    """
    rounds = _rounds(messages)
    first = next(rounds, None)
    return 0 if first is None else 1 + sum(1 for _ in takewhile(first.__eq__, rounds))


def _rounds(messages: Sequence[Any]) -> Iterator[tuple[list[Any], list[Any]]]:
    """The calls and the results of each round, from the last one back to what is no round."""
    results: list[Any] = []
    for message in reversed(messages):
        role = message.get("role")
        if role == "tool":
            results.append(message.get("content"))
        elif role == "assistant" and results and message.get("tool_calls"):
            calls = [call.get("function", call) for call in message["tool_calls"]]
            yield [(call.get("name"), call.get("arguments")) for call in calls], results
            results = []
        else:
            return


def repeated_turn(messages: Sequence[Any]) -> list[Diagnostic]:
    """The diagnostic ``repeated-turn`` for a conversation that ends with the same calls and the same results three
    times in a row, or more often; else none."""
    count = repeated_turns(messages)
    if count < TOLD_TURNS:
        return []
    calls, _ = next(_rounds(messages))
    said = ", ".join(str(name) for name, _ in calls)
    return [
        Diagnostic("repeated-turn", 0, f"another step than {count} times the same with the same result", said)
    ]
