"""Where an answer begins and ends in the text between its words and those beside it.

That text holds the end of what was before, the header, and what of the answer is markup. It is compared with what the
template writes around short stand-ins: a `Lead` before an answer, `Ends` after it. No border is inside a marker. Only
texts are compared here, and nothing is rendered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .probe.turns import MARKER, aligned, common, outside_marker


class Lead(NamedTuple):
    """The text before an answer: what a prompt writes after a message, or all of it. ``generated``: the last part,
    which a history does not have; ``prefix``: the last part, which belongs to the answer."""

    text: str
    generated: str
    prefix: str

    @property
    def header(self) -> str:
        """The text without the answer's part."""
        return self.text[: len(self.text) - len(self.prefix)]

    @property
    def history(self) -> str:
        """The text without what only a prompt has."""
        return self.text[: len(self.text) - len(self.generated)]


class Begin(NamedTuple):
    """Where an answer begins. ``prefix``: what of it the prompt wrote."""

    at: int
    prefix: str


def begin_in(gap: str, leads: Sequence[Lead]) -> Begin | None:
    """Where the answer begins whose words come after ``gap``; None if no part of a header is there. ``leads``: what may
    be before it, the likeliest first."""
    for blank in (False, True):  # a header of white space alone is everywhere
        for lead in leads:
            found = _after_lead(gap, lead) if blank == (not lead.header.strip()) else None
            if found is not None:
                return found
    return None


def _after_lead(gap: str, lead: Lead) -> Begin | None:
    header, prefix = lead.header, lead.prefix
    found = aligned(gap, header, [len(header)]) if header.strip() else (common(gap, header), 0)
    if found is None:
        shared = outside_marker(gap, common(gap, header))
        return Begin(shared, "") if gap[:shared].strip() else None
    begin = found[0]
    shared = outside_marker(gap, begin + common(gap[begin:], prefix)) - begin
    shared = outside_marker(lead.text, len(header) + max(shared, 0)) - len(header)
    return Begin(begin + shared, prefix[: max(shared, 0)])


class Stop(NamedTuple):
    """The stop after an answer, from ``begin`` to ``end``. ``following``: where the next message begins."""

    begin: int
    end: int
    following: int


def first_stop(text: str, stops: Sequence[str]) -> tuple[int, int] | None:
    """The span of the first stop in a text."""
    found = [(at, -len(stop)) for stop in stops if (at := text.find(stop)) >= 0]
    if not found:
        return None
    at, length = min(found)
    return at, at - length


class Ends(NamedTuple):
    """What comes after answers. ``stops``: the format's. What else the template writes is needed only where none of
    them is: ``calls``: they call; ``alone``: after one that ends the conversation; ``followed``: between one and the
    next words."""

    stops: Sequence[str]
    calls: bool = False
    alone: str = ""
    followed: str = ""

    @property
    def closing(self) -> tuple[str, str]:
        """What closes an answer, and its stop with the white space before it; ``""`` for what is not there. A template
        that leaves the last answer open writes the stop where something follows."""
        for after in (self.alone, self.followed):
            found = first_stop(after, self.stops)
            if found is not None:
                closer = after[: found[0]].rstrip()
                return closer, after[len(closer) : found[1]]
        return "", ""

    @property
    def left_out(self) -> str:
        """What of that the template does not write after a last answer; ``""`` if it writes no stop at all."""
        closer, stop = self.closing
        return stop and closer[common(closer, self.alone) :] + stop

    def stop_in(self, after: str, unshown: bool) -> Stop:
        """Where the stop is in the text after an answer's words. ``unshown``: a message comes next that has no words
        there, such as an empty result."""
        if unshown:
            after = self._up_to_next(after)
        found = first_stop(after, self.stops) if after else (0, 0)
        if found is None:
            closed = self._closed(after)
            # The template may write another marker in the place of the stop.
            stopped = first_stop(self.alone, self.stops) is not None
            marker = MARKER.match(after, closed) if stopped else None
            found = closed, marker.end() if marker else closed
        return Stop(*found, len(after))

    def closes(self, after: str) -> bool:
        """Whether what closes a call is in the text after one."""
        return self.calls and self._close_in(after) is not None

    @property
    def _closer(self) -> str:
        """What closes an answer that ends in a text."""
        stop = first_stop(self.alone, self.stops)
        return self.alone[: stop[0]] if stop else self.alone.rstrip()

    def _close_in(self, after: str) -> int | None:
        """Where what closes a call ends. Its last argument may be no text, so the end of that is looked for."""
        closer = self._closer
        ends = (closer[marker.start() :] for marker in MARKER.finditer(closer))
        return next((after.index(end) + len(end) for end in ends if end in after), None)

    def _up_to_next(self, after: str) -> str:
        marker = MARKER.search(self.followed)
        at = after.find(marker[0]) if marker else -1
        if marker is None or at < 0:
            return after
        return after[: at + common(after[at:], self.followed[marker.start() :])]

    def _closed(self, after: str) -> int:
        """Where what closes an answer ends."""
        closer, followed = self._closer, self.followed
        if not self.calls:
            return outside_marker(after, min(common(after, closer), common(followed, closer)))
        found = self._close_in(after)
        if found is None and closer.strip():
            next_begins = followed[common(followed, closer) :]
            at = after.find(next_begins) if next_begins.strip() else -1
            ends = (marker.start() for marker in MARKER.finditer(after))
            found = at if at >= 0 else next(ends, len(after))
        return found or 0
