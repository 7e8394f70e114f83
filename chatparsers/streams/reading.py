"""What a stream has read. Each piece takes the shortest way to the message.

Strategy: the machine hands out trail items that are final. The transcript turns them into events and the message's
parts. A piece takes the first of these ways that is open. (1) When the machine waits in the middle of text, there is a
shortcut: a search for the first character that may need the machine. Most pieces have no such character; they are
passed on unchanged, and the message gets them all at once when another way is taken or somebody asks. (2) Within
arguments, a piece goes to the value's transcoder, which passes most of them on unchanged, too. (3) At a place that is
known (known.py), what a machine did there with the same text is done again. (4) The machine reads it. Without the third
way, which can be switched off, all is the same, and slower.

Invariants: ``fed`` is the position of the end of the fed text, in the machine's characters (a special token is one
character), without the pieces that were just passed on unchanged (``passed``; of ids, the ids). While a shortcut is
set, the machine has read everything but does not know how much that was; ``held`` is the end of the text, of which an
open value or a known place has made nothing. `_catch_up` gives the machine both before it runs again. While ``spot`` is
set, the machine stands anywhere: `at_place` puts it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any

from ..core.machine import instructions as m
from ..core.machine.machine import Machine
from ..core.machine.value import Search, Transcoder
from ..schema.tools import Toolset
from .back import Back
from .events import Content, Event, joined_events
from .known import MOST_AT_ONCE, Spot, known
from .start import Start, StreamTurn
from .state import StateKind, state_of
from .transcript import Checks, Transcript

NO_SHORTCUT: Callable[[str], object] = len
"""In place of a search: it finds something in every piece."""


class Reading:
    """What was read of one turn, up to here."""

    __slots__ = (
        "at", "back", "early", "ended", "fed", "held", "ids", "kind", "known", "machine", "make", "parts", "passed",
        "pieces", "plain", "spot", "transcript", "value",
    )  # fmt: skip

    def __init__(
        self,
        begin: Start,
        tools: Toolset,
        ids: Any = None,
        back: Back | None = None,
        seed: str | StreamTurn = "",
        checks: Checks | None = None,
    ) -> None:
        """``ids``: the feed of ids, None if text is fed. ``back``: what is kept so that ids can be taken back; None if
        none can. ``seed`` and ``checks`` are those of the transcript."""
        shared, origin, read, call, before, line = begin
        self.machine = machine = shared.copy()
        machine.tools = tools
        self.ids, self.back = ids, back
        self.fed = origin
        self.ended = False
        spelling = ids.spelling if ids is not None else None
        self.transcript = Transcript(tools, machine.program, seed, origin, read, spelling, line)
        if before:
            earlier = Transcript(tools, machine.program, "", 0, 0, spelling)
            earlier.apply(before, [])
            self.transcript.said = {(call.name, call.text()): None for call in earlier.calls if call.complete}
        if checks is not None:
            self.transcript.judge_by(checks)
        self.pieces = self.transcript.pieces
        self.early: list[Event] = []
        """The events of the call that the prefix leaves open. They come with the first piece."""
        # The shortcut: a search for the first character that needs the machine, and what a piece without one becomes.
        self.plain: Callable[[str], object] = NO_SHORTCUT
        self.make: Callable[[str], Event] = Content
        self.parts: list[str] = self.pieces
        self.passed: list[Any] = []
        self.kind = m.CONTENT
        self.value: Transcoder | None = None
        self.held = ""
        # Where the machine is, after ``at`` characters, if that place is known (known.py), or where its value began.
        self.known = known(machine.program, tools)
        self.spot: Spot | None = None
        self.at = origin
        if call:
            self.transcript.apply(call, self.early)
        elif self.known is not None:
            self.spot = self.known.begin(shared)
        self._settle()

    # what is read

    def read(self, text: str, events: list[Event]) -> None:
        """Reads a text by the shortest way there is."""
        if self.plain(text) is None:
            self.give(text, text, events)
        elif self.value is None:
            self.read_on(text, events)
        else:
            self.read_value(self.value, text, events)

    def give(self, piece: str, out: str, events: list[Event]) -> None:
        """Takes a piece that adds ``out`` to the open text."""
        if self.passed:
            self.gather()
        self.pieces.append(piece)
        self.fed += len(piece)
        if out:
            self.parts.append(out)
            events.append(self.make(out))

    def ran(self, id: int) -> str:
        """Takes an id that only adds to running text, and returns its text; else ``""``, and nothing changes."""
        text: str = self.ids.texts[id]
        if not text or self.plain(text) is not None:
            return ""
        self.passed.append(id)
        return text

    def read_id(self, id: int, events: list[Event]) -> None:
        """Reads an id that may do more than add to running text."""
        if self.passed:
            self.note()
        if self.back is not None:
            self.back.keep(self)
            self.back.ids.append(id)
        text = self.ids.text(id)
        if text is None:
            self._decode((id,), events)
        elif text:
            self.read(text, events)
        if self.ids.unknown:
            self.transcript.note_unknown(self.ids.take_unknown())

    def read_ids(self, ids: Sequence[int], events: list[Event]) -> None:
        """Reads several ids: together, if none can be taken back."""
        if self.back is None and len(ids) > 1:
            self._decode(ids, events)
            return
        for id in ids:
            if text := self.ran(id):
                events.append(self.make(text))
            else:
                self.read_id(id, events)
        events[:] = joined_events(events)

    def _decode(self, ids: Sequence[int], events: list[Event]) -> None:
        if self.passed:
            self.note()
        for end, text in self.ids.decode(ids):
            if end < 0:
                if text:
                    self.read(text, events)
                continue
            in_value = self.value is not None or (self.spot is None and self.machine.value is not None)
            if not end or self.ended or (self.ids.is_marker(text) and not in_value):
                if end or self.ended or self.value is not None:
                    self.run(text, events)
                else:
                    self.read_on(text, events)
                if not end or self.ended:
                    continue
            else:
                self._catch_up()
                self.pieces.append(text)
                self.fed += 1
            if not self.ended and (end == 1 or self.transcript.length < self.fed):
                self.end(events)
        if self.ids.unknown:
            self.transcript.note_unknown(self.ids.take_unknown())

    def read_on(self, text: str, events: list[Event]) -> None:
        """Reads a text that is not of a value and does not take the shortcut."""
        spot = self.spot
        if spot is None:
            if self.early or self.plain is not NO_SHORTCUT:
                self.run(text, events)
                return
            self.pieces.append(text)
            self.fed += len(text)
            if not self.machine.hold(text):
                self._go(text, events)
            return
        if self.plain is not NO_SHORTCUT:
            self.note()
            self.plain = NO_SHORTCUT
            if self.fed != self.at:
                spot = spot.known.moved(spot, self.machine)
        self.pieces.append(text)
        self.fed += len(text)
        text = self.held + text
        run = spot.runs.get(text)
        if run is None or not run.passes:
            self.held = ""
            self._follow(spot, text, 0, events)
            return
        if run.items:
            self.transcript.take(run, events)
        self.spot, self.held = run.here, text[run.end :]

    def read_value(self, value: Transcoder, piece: str, events: list[Event]) -> None:
        """Reads a piece inside arguments: it goes straight to the value's transcoder, after what the transcoder left of
        the last piece. The machine goes on only where it brings more than text of the value."""
        text = piece
        if self.held:
            text = self.held + piece
            if value.holds(text):
                self.pieces.append(piece)
                self.fed += len(piece)
                self.held = text
                return
        end = value.scan(text, 0, False)
        odd = value.error or value.notes or value.marked >= 0
        if not (odd or value.done):
            out, held = value.out, text[end:]
            self.plain = value.plain or NO_SHORTCUT
            if out == piece and not held and self.ids is None:
                self.passed.append(piece)
                events.append(self.make(piece))
            else:
                self.give(piece, out, events)
            self.held = held
            return
        if self.passed:
            self.note()
        spot, at = self.spot, self.fed - len(self.held) + end
        if spot is None or odd or at == self.at:
            self.run(piece, events, end)  # also an empty value
            return
        self.pieces.append(piece)
        self.fed += len(piece)
        self.value, self.held, self.plain = None, "", NO_SHORTCUT
        self.transcript.argue(at - self.transcript.length, value.out)
        self._follow(spot.after, text, end, events)

    def run(self, text: str, events: list[Event], scanned: int = -1) -> None:
        """Lets the machine read ``text``. ``scanned`` is as in `Machine.feed`."""
        if text:
            self._catch_up()
            if self.early:
                events += map(copy, self.early)
                self.early = []
            self.pieces.append(text)
            self.fed += len(text)
            self._go(text, events, scanned)

    def _go(self, text: str, events: list[Event], scanned: int = -1) -> None:
        """As `run`, of the last text that was fed, with a machine that is at its place."""
        if self.ended:
            self.transcript.advance(m.MARKUP, len(text))
            return
        machine, known = self.machine, self.known
        items = machine.feed(text, scanned, False, self.line)
        if items or self.transcript.untold:
            self.transcript.apply(items, events)
        self.spot, self.at = None, self.fed
        if not (machine.text or machine.live):
            self._settle()
        if self.plain is NO_SHORTCUT and known is not None and known.looks():
            self.spot = known.spot(machine)

    def line(self) -> m.Line:
        """Where in a line of content the transcript ends."""
        return self.transcript.line_after(self.fed)

    def end(self, events: list[Event], cut_off: bool = False) -> None:
        """Ends the turn and decides the held text. ``cut_off``: the model had more to say."""
        events += map(copy, self.early)
        self.early = []
        machine, transcript = self.machine, self.transcript
        transcript.over()
        spot = None if self.value is not None or cut_off else self._place()
        if spot is not None and self.plain is not NO_SHORTCUT and self.note() != self.at:
            spot = spot.known.moved(spot, machine)
        if spot is None or not spot.over:
            self._catch_up()
            machine.asked = False
            items = machine.finish(cut_off, self.line)
            transcript.apply(items, events)
            if spot is not None:
                spot.over = not (items or machine.asked)
        transcript.close(events, transcript.length)
        if transcript.answer is not None and not cut_off:
            transcript.judge_whole()
        if transcript.length < self.fed:
            transcript.advance(m.MARKUP, self.fed - transcript.length)
        self.ended = True
        self.plain = NO_SHORTCUT

    def _follow(self, spot: Spot, text: str, i: int, events: list[Event]) -> None:
        """Reads ``text``, the last that was fed, from ``i`` on, from a known place to the next: as a machine did
        before, else with the machine, which leaves what it did to be found the next time."""
        known, machine, transcript = spot.known, self.machine, self.transcript
        n = len(text)
        while True:
            if spot.running is not None:
                region, stops = spot.running
                match = stops.find(text, i)
                end = n if match is None else match.start()
                if i < end:
                    transcript.apply([(region, text[i:end], None)], events)
                    spot, i = known.moved(spot, machine), end
                    if i == n:
                        break
            run = spot.run(text, i, machine)
            if run is not None and (run.line is None or run.line == transcript.line_after(self.fed)):
                known.credits += 1
                if run.items:
                    transcript.take(run, events)
            else:
                begin = self.fed - n + i
                if known.credits <= 0:
                    spot.restore(machine, begin)
                    self._go(text[i:], events)
                    return
                items: list[m.Item] = []
                line = partial(transcript.line_after, self.fed, items)
                run = known.learn(spot, machine, text[i : i + MOST_AT_ONCE], begin, items, line)
                transcript.apply(items, events)
                if run is None:
                    self._go(text[i + MOST_AT_ONCE :], events)
                    return
            before, spot, i = spot, run.here, i + run.end
            if spot.value is None:
                if i == n or spot.before or (spot is before and not run.end):  # the rest is held
                    break
                continue
            value = spot.begin(machine)
            end = value.scan(text, i, False)
            if value.error or value.notes or value.marked >= 0 or (value.done and i == end):
                spot.restore(machine, self.fed - n + i)  # a position is that in the machine's window
                self._go(text[i:], events)
                return
            transcript.argue(end - i, value.out)
            if value.done:
                spot, i = spot.after, end
                continue
            transcript.tell(events)
            self.spot, self.at = spot, self.fed - n + i
            self.held = text[end:]
            self._wait(m.ARGUMENT, None if self.held else value.plain, value)
            return
        transcript.tell(events)
        self.spot, self.at, self.held = spot, self.fed, text[i:]
        if spot.waiting is not None and i == n:
            self._wait(spot.waiting[0], spot.waiting[1])

    # the shortcut

    def _settle(self) -> None:
        """Finds the shortcut for the next piece, if there is one."""
        spot, machine = self.spot, self.machine
        self.plain, self.value = NO_SHORTCUT, None
        if not (self.ended or self.early):
            waiting = machine.waiting() if spot is None or spot.value or self.held else spot.waiting
            if waiting is not None:
                self._wait(waiting[0], waiting[1], machine.value)

    def _wait(self, region: int, plain: Search | None, value: Transcoder | None = None) -> None:
        """Sets the shortcut of a machine that waits so (`Machine.waiting`), in an argument's ``value`` or not."""
        self.kind, self.value = (m.CALL, value) if region == m.ARGUMENT else (region, None)
        sink = self.transcript.sink(region)
        if sink is None:
            self._catch_up()
        else:
            self.make, self.parts = sink
            self.plain = plain or NO_SHORTCUT

    def at_place(self) -> Machine:
        """The machine, at its place but for the text that took the shortcut."""
        spot = self._place()
        if spot is not None:
            if self.value is None and self.plain is NO_SHORTCUT:
                self.at = self.fed
            spot.restore(self.machine, self.at, self.value)
        return self.machine

    def _place(self) -> Spot | None:
        """The spot with what is held there."""
        spot = self.spot
        if spot is None or not self.held or self.value is not None:
            return spot
        return spot.origin.place(spot.before + self.held, spot.name, self.machine)

    def _catch_up(self) -> None:
        """Moves the machine to the end of what was fed."""
        machine = self.at_place()
        self.spot = None
        if self.plain is not NO_SHORTCUT or self.value is not None:
            machine.skip_to(self.note(), self.held)
            self.plain = NO_SHORTCUT
            self.value = None
        self.held = ""

    def gather(self) -> None:
        """Gives the message the pieces that were passed on unchanged."""
        text = "".join(self.passed) if self.ids is None else self.ids.ran(self.passed)
        if self.back is not None:
            self.back.ids += self.passed
        self.passed.clear()
        self.pieces.append(text)
        self.parts.append(text)
        self.fed += len(text)

    def note(self) -> int:
        """Tells the transcript how far the shortcut came, and returns where what is not held ends."""
        if self.passed:
            self.gather()
        end = self.fed - len(self.held)
        self.transcript.advance(self.kind, end - self.transcript.length)
        return end

    # what is asked

    def record(self) -> Transcript:
        """The transcript, which says of all that was read in which region it is."""
        if self.plain is not NO_SHORTCUT or self.value is not None:
            self.note()
        return self.transcript

    def stands(self) -> tuple[StateKind, str]:
        """The kind of what the model is writing, and the tool of a call that is held."""
        if self.ended:
            return "ended", ""
        call = self.transcript.call
        if call is not None and call.name is not None:
            return "call", ""
        if self.plain is not NO_SHORTCUT:
            return ("reasoning" if self.kind == m.REASONING else "content"), ""
        spot, content = self._place(), self.transcript.kind == m.CONTENT
        if spot is None or spot.value is not None:
            return state_of(self.at_place(), content)
        if content not in spot.stands:
            spot.stands[content] = state_of(self.at_place(), content)
        return spot.stands[content]

    # copies

    def copy(self) -> Reading:
        """An independent reading at this point, from which no id can be taken back."""
        self.record()
        other = Reading.__new__(Reading)
        other.ended, other.fed, other.held, other.early = self.ended, self.fed, self.held, self.early
        other.machine = self.at_place().copy()
        other.known, other.spot, other.at = self.known, self.spot, self.at
        other.ids = self.ids.copy() if self.ids is not None else None
        other.transcript = transcript = self.transcript.copy()
        other.pieces, other.passed, other.back = transcript.pieces, [], None
        other._settle()
        return other

    def __getstate__(self) -> dict[str, Any]:
        """All but the shortcut, which `__setstate__` finds again, and where it may be known."""
        self.record().settled_seed()  # in place of the turn
        self._catch_up()
        return {name: getattr(self, name) for name in _PICKLED}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self.pieces, self.passed, self.held = self.transcript.pieces, [], ""
        self.known, self.spot, self.at = known(self.machine.program, self.transcript.tools), None, 0
        self._settle()

    def shorten(self, count: int) -> None:
        """Keeps the first ``count`` ids. What comes after them only added to running text."""
        begin = self.ids.keep(count)
        self.record().shorten(begin, self.fed - begin, self.kind)
        self.fed = begin


_PICKLED = ("back", "early", "ended", "fed", "ids", "machine", "transcript")
