"""Keeps calls that the model broke from going out as calls.

A client runs what looks like a call. One that the model broke has other arguments than it meant, or none. So its text
goes out as text: the client runs nothing, and the model sees in the next request what it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ..streams.events import CallArguments, CallEnd, CallStart, Content, Event


class WholeCalls:
    """Gives the events of a stream, in which each broken call is content.

    >>> from chatparsers.serving import WholeCalls
    >>> stream = chatparsers.get_format("qwen3").bind(tools=tools).stream()
    >>> calls = WholeCalls(stream.call_text)
    >>> list(calls.take(stream.feed('<tool_call>\\n{"name": "f", "arguments": {"a": oops}}')))
    []
    >>> list(calls.take(stream.finish()))
    [Content(text='{"name": "f", "arguments": {"a": oops}}')]

    ``text``: gives the text of the call at an index, as `Stream.call_text` does. ``early``: a call goes out with its
    first arguments, and not at its end. Their last brace waits for the end, so if the call breaks, it stays a call
    whose arguments are no JSON. ``cut``: whether a call that the end of the answer cuts off may go out, as where a
    client wants to go on with it.
    """

    __slots__ = ("_brace", "_cut", "_early", "_held", "_open", "_text")

    def __init__(self, text: Callable[[int], str], *, early: bool = False, cut: bool = False) -> None:
        self._text = text
        self._early = early
        self._cut = cut
        self._held: list[Event] = []
        """The events of the open call that wait."""
        self._open = False
        """Whether events of the open call went out."""
        self._brace = ""
        """The end of the arguments that waits."""

    def take(self, events: Iterable[Event], length: bool = False) -> list[Event]:
        """The events that may go out. ``length``: the answer was cut off, and these are its last events."""
        given = [*events]
        for event in given:
            if type(event) in _OF_CALLS:
                break
        else:
            return given
        found: list[Event] = []
        for event in given:
            match event:
                case CallStart():
                    self._held, self._open, self._brace = [event], False, ""
                case CallArguments() if self._open:
                    self._argued(event, found)
                case CallArguments():
                    self._held.append(event)
                    if self._early and _is_object(self._held):
                        self._open = True
                        found.append(self._held[0])
                        for waited in self._held[1:]:
                            self._argued(waited, found)
                case CallEnd(index=index, complete=complete):
                    self._ended(index, complete or (length and self._cut), found)
                    if self._open:
                        found.append(event)
                case _:
                    found.append(event)
        return found

    def _argued(self, event: Event, found: list[Event]) -> None:
        """More arguments, but for the brace with which they may end."""
        if isinstance(event, CallArguments):
            text = self._brace + event.text
            bare = text.rstrip()
            end = len(bare) - 1 if bare.endswith("}") else len(text)
            self._brace = text[end:]
            if end:
                found.append(CallArguments(event.index, text[:end]))

    def _ended(self, index: int, whole: bool, found: list[Event]) -> None:
        if whole and self._open and self._brace:
            found.append(CallArguments(index, self._brace))
        elif whole and not self._open:
            self._open = True
            found += self._held
        elif not self._open:
            found.append(Content(self._text(index)))


_OF_CALLS = frozenset((CallStart, CallArguments, CallEnd))


def _is_object(events: list[Event]) -> bool:
    """Whether the arguments that were read begin an object."""
    text = "".join([event.text for event in events if isinstance(event, CallArguments)])
    return text.lstrip().startswith("{")
