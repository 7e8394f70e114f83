"""The promises C1 to C6 of every stream, checked on one feeding.

C1 each character is in one region, and a region holds the text that its kind promises (`conservation`); C2 the message
is that of the whole text; C3 deltas only append and indices only grow; C4 no text is held longer than needed
(`longest_silence`); C5 no error is raised; C6 arguments are JSON if the call is complete, and the streamed arguments
are those of the message.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields

from ..answers.format import ReasoningMode, Turn
from ..streams.events import CallArguments, CallEnd, CallStart, Content, Event, Reasoning
from ..streams.message import Message
from .conservation import check_conservation
from .rendering import Case, exact

__all__ = [
    "Deltas",
    "check_conservation",
    "check_cuts",
    "check_expected",
    "check_message",
    "check_prefixes",
    "check_stream",
    "longest_silence",
    "same",
    "smallest",
]


class Deltas:
    """What a reader of the events knows; each event is checked as it comes (C3)."""

    def __init__(self) -> None:
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[tuple[str, str | None]] = []
        self.arguments: list[list[str]] = []
        self.ends: list[tuple[str, bool]] = []

    def add(self, events: Iterable[Event]) -> None:
        """Raises AssertionError for an event that takes back, repeats or comes out of order."""
        for event in events:
            if isinstance(event, Content):
                assert event.text, "an event without text"
                self.content.append(event.text)
            elif isinstance(event, Reasoning):
                assert event.text, "an event without text"
                self.reasoning.append(event.text)
            elif isinstance(event, CallStart):
                assert event.index == len(self.calls), (
                    f"call {event.index} starts after {len(self.calls)} calls"
                )
                assert len(self.ends) == len(self.calls), f"call {event.index} starts inside another"
                self.calls.append((event.name, event.id))
                self.arguments.append([])
            elif isinstance(event, CallArguments):
                assert event.text, "an event without text"
                assert event.index == len(self.calls) - 1 == len(self.ends), (
                    f"arguments of call {event.index} out of turn"
                )
                self.arguments[event.index].append(event.text)
            else:
                assert isinstance(event, CallEnd)
                assert event.index == len(self.ends) == len(self.calls) - 1, (
                    f"call {event.index} ends out of turn"
                )
                self.ends.append((event.id, event.complete))

    def check(self, message: Message) -> None:
        """Raises AssertionError if the message differs from the streamed events."""
        assert "".join(self.content) == message.content, "the content is not the deltas"
        assert "".join(self.reasoning) == message.reasoning, "the reasoning is not the deltas"
        calls = message.tool_calls
        assert [name for name, _ in self.calls] == [call.name for call in calls], (
            "the calls are not those that started"
        )
        assert [call.index for call in calls] == list(range(len(calls))), "indices do not count the calls"
        streamed = ["".join(texts) for texts in self.arguments]
        assert streamed == [call.arguments for call in calls], "the arguments are not the deltas"
        assert self.ends == [(call.id, call.complete) for call in calls], "the calls are not those that ended"
        for (_, id), call in zip(self.calls, calls, strict=True):
            assert id is None or id == call.id, f"call {call.index} changed its id from {id!r} to {call.id!r}"


def check_message(message: Message, turn: Turn | None = None) -> None:
    """What holds for every message: conservation, arguments that are JSON whenever complete.

    ``turn``: what read it, for what only the format can say.
    """
    check_conservation(message, turn)
    for call in message.tool_calls:
        assert call.name and call.id, f"call {call.index} has no name or no id"
        if call.complete:
            found = json.loads(call.arguments)
            assert isinstance(found, dict), (
                f"the arguments of call {call.index} are no object: {call.arguments[:80]!r}"
            )
    for diagnostic in message.diagnostics:
        assert 0 <= diagnostic.position <= len(message.text), f"outside the text: {diagnostic}"
    if message.complete:
        assert all(call.complete for call in message.tool_calls)


def same(message: Message, expected: Message, what: str) -> None:
    """Raises AssertionError if the two messages are not equal. The error names the fields that differ."""
    if message == expected:
        return
    lines = [what]
    for field in fields(Message):
        found, wanted = getattr(message, field.name), getattr(expected, field.name)
        if found == wanted:
            continue
        name = field.name
        if isinstance(found, list):
            at = next(
                (n for n, pair in enumerate(zip(found, wanted, strict=False)) if pair[0] != pair[1]), -1
            )
            at = min(len(found), len(wanted)) if at < 0 else at
            name, found, wanted = (
                f"{name}[{at}] of {len(found)}, {len(wanted)}",
                found[at:][:1],
                wanted[at:][:1],
            )
        lines += [f"  {name}", f"    in pieces {found!r:.400}", f"    whole     {wanted!r:.400}"]
    raise AssertionError("\n".join(lines))


def check_stream(
    turn: Turn,
    text: str,
    pieces: Iterable[str | int | list[int]],
    *,
    whole: Message | None = None,
    reasoning: ReasoningMode = "split",
) -> Message:
    """Feeds ``pieces``, which make up ``text``, and checks C1 to C6; returns the message.

    ``whole``: what a parse of the whole text gives, if it is known. Raises AssertionError. What holds for one message
    (C1, C6) is checked once for equal messages in a row.
    """
    stream, deltas = turn.stream(reasoning=reasoning), Deltas()
    for piece in pieces:
        if events := stream.feed(piece):
            deltas.add(events)
    deltas.add(stream.finish())
    message = stream.message
    deltas.check(message)
    expected = turn.parse(text, reasoning=reasoning) if whole is None else whole
    same(message, expected, "the message depends on the cuts")
    assert message.text == text, "the text is not what was fed"
    if not any(expected is known for known in _CHECKED):
        check_message(message, turn)
        _CHECKED.append(expected)
    return message


_CHECKED: deque[Message] = deque(maxlen=1)
"""The message of a whole text that was checked last."""


def check_prefixes(turn: Turn, text: str, every: int = 1) -> int:
    """The text cut off at every ``every``-th position: nothing is raised or lost, the message is that of a
    parse of what there is, an open call is not complete. Returns how many positions were tried."""
    stream, deltas = turn.stream(), Deltas()
    tried = 0
    for at, character in enumerate(text):
        if at % every == 0:
            fork = stream.fork()
            events = fork.finish()
            message = fork.message
            same(
                message,
                turn.parse(text[:at]),
                f"cut off at {at}, a stream's fork is not a parse of what was fed",
            )
            check_message(message, turn)
            assert message.text == text[:at]
            whole = Deltas()
            whole.content, whole.reasoning = deltas.content[:], deltas.reasoning[:]
            whole.calls, whole.ends = deltas.calls[:], deltas.ends[:]
            whole.arguments = [texts[:] for texts in deltas.arguments]
            whole.add(events)
            whole.check(message)
            if at % 16 == 0:
                late = stream.fork()
                late.finish("length")
                assert not late.message.complete, f"complete, though the length ran out at {at}"
                codes = [diagnostic.code for diagnostic in late.message.diagnostics]
                assert "truncated" in codes, f"no diagnostic, though the length ran out at {at}"
            tried += 1
        deltas.add(stream.feed(character))
    return tried


def check_expected(case: Case, message: Message, turn: Turn | None = None) -> None:
    """Checks that the message is the one that the case expects, without diagnostics. Raises AssertionError.

    ``turn``: the turn that read it, if it is not the case's own.
    """
    turn = turn or case.turn()
    expected = case.expected
    wrong = [d for d in message.diagnostics if d.code not in ("mended", "markup-in-value", "repeated-call")]
    assert not wrong, "; ".join(map(str, wrong))
    if expected.reasoning is not None:
        assert message.reasoning == expected.reasoning, f"reasoning is {message.reasoning!r:.300}"
    if expected.content is not None:
        assert message.content == expected.content, f"content is {message.content!r:.300}"
    else:
        assert message.content.strip(), "the text after the calls is lost"
    found = [call.name for call in message.tool_calls]
    assert found == [name for name, _ in expected.calls], (
        f"calls are {found}, the text is {message.text!r:.300}"
    )
    for call, (_, arguments) in zip(message.tool_calls, expected.calls, strict=True):
        assert call.complete, f"call {call.index} is not complete"
        assert exact(call.arguments) == exact(arguments), f"arguments are {call.arguments!r:.600}"
        generated = call.id == turn.call_id(call.index)
        assert generated or call.id in message.text, f"the id {call.id!r} is not what was written"
    for id in case.expected.ids:
        assert id in [call.id for call in message.tool_calls], f"the id {id!r} was written and is lost"
    ids = [call.id for call in message.tool_calls]
    assert len(set(ids)) == len(ids), f"ids come twice: {ids}"
    assert message.complete, "the message is not complete"


def longest_silence(turn: Turn, text: str, start: int, end: int) -> int:
    """The most pieces in a row without an event, ``text`` fed by the character, between ``start`` and ``end``."""
    stream = turn.stream()
    stream.feed(text[:start])
    silence = longest = 0
    for character in text[start:end]:
        silence = 0 if stream.feed(character) else silence + 1
        longest = max(longest, silence)
    return longest


def check_cuts(
    turn: Turn, text: str, cuts: Iterable[Sequence[str]], *, reasoning: ReasoningMode = "split"
) -> Message:
    """`check_stream` for the whole text and for each way to cut it. A failure is made small before it is reported."""
    whole = turn.parse(text, reasoning=reasoning)
    for pieces in ([text], *cuts):
        try:
            check_stream(turn, text, pieces, whole=whole, reasoning=reasoning)
        except Exception as error:
            raise AssertionError(
                _made_small(turn, text, pieces, reasoning) or f"{error}\n{text!r}"
            ) from error
    return whole


def _made_small(turn: Turn, text: str, pieces: Sequence[str], reasoning: ReasoningMode) -> str:
    """What still fails of it, and how."""
    told = [""]

    def fails(pieces: Sequence[str]) -> bool:
        try:
            check_stream(turn, "".join(pieces), pieces, reasoning=reasoning)
        except Exception as error:
            told[0] = f"{type(error).__name__}: {error}".replace("AssertionError: ", "").partition(
                "\nassert "
            )[0]
            return True
        return False

    if len(text) > 5000 or not fails(pieces):
        return ""
    found, size = list(pieces), max(len(pieces) // 2, 1)
    while True:  # fewer pieces, then fewer cuts
        at, before = 0, len(found)
        while at < len(found):
            fewer = found[:at] + found[at + size :]
            if fewer and fails(fewer):
                found = fewer
            else:
                at += size
        if size == 1 and len(found) == before:
            break
        size = max(size // 2, 1)
    found = smallest(fails, found)
    fails(found)
    options = f"prefix={turn.prefix!r}, tools={'…' if turn.tools else None}, reasoning={reasoning!r}"
    return f"{told[0]}\n  {turn.format.name}, {options}\n  pieces = {found!r}"


def smallest(fails: Callable[[Sequence[str]], bool], pieces: Sequence[str]) -> list[str]:
    """Fewer pieces of the same text that still fail, neighbours joined as long as it does."""
    found = list(pieces)
    at, budget = 0, 400
    while at < len(found) - 1 and budget:
        joined = [*found[:at], found[at] + found[at + 1], *found[at + 2 :]]
        budget -= 1
        if fails(joined):
            found = joined
        else:
            at += 1
    return found
