"""The client's stops: texts that end the answer when they come in its content.

They are looked for in the content alone, and not by the engine: a stop that happens to be in an argument or in the
reasoning does not cut it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from ..streams.events import Content, Event


class ContentStops:
    """Cuts the content at the first stop. ``found``: the stop that ended it, None so far.

    >>> from chatparsers.serving import ContentStops
    >>> stops = ContentStops(["END"])
    >>> [*stops.take([chatparsers.Content("One. E")]), *stops.take([chatparsers.Content("ND of it")])]
    [Content(text='One. ')]
    >>> stops.found
    'END'
    """

    __slots__ = ("_held", "_longest", "_stops", "found")

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = sorted(stops)
        self._longest = max(map(len, self._stops), default=0)
        self._held = ""
        self.found: str | None = None

    def take(self, events: Iterable[Event], last: bool = False) -> Iterator[Event]:
        """The events that may go out. The end of the content is held while it may begin a stop. ``last``: no more
        events come."""
        for event in events:
            if self.found is not None:
                return
            if not isinstance(event, Content):
                yield from self._release()
                yield event
                continue
            text = self._held + event.text
            places = [(place, stop) for stop in self._stops if (place := text.find(stop)) >= 0]
            if places:
                place, self.found = min(places, key=lambda found: found[0])
                self._held = ""
                if place:
                    yield Content(text[:place])
                return
            keep = self._begun(text)
            self._held = text[len(text) - keep :]
            if len(text) > keep:
                yield Content(text[: len(text) - keep])
        if last:
            yield from self._release()

    def _release(self) -> Iterator[Event]:
        held, self._held = self._held, ""
        if held and self.found is None:
            yield Content(held)

    def _begun(self, text: str) -> int:
        """How many characters at the end of ``text`` may be the beginning of a stop."""
        for size in range(min(self._longest - 1, len(text)), 0, -1):
            end = text[-size:]
            # In order, the stops that begin so come there; none is `end` itself.
            place = bisect_left(self._stops, end)
            if place < len(self._stops) and self._stops[place].startswith(end):
                return size
        return 0
