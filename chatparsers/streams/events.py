"""The events of a stream: small records. An event is never taken back."""

# No "annotations" import here: `typing.get_type_hints` looks names up in the module that users see, and finds none.
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import TypeAlias

from ..public import public


@public
@dataclass(slots=True)
class Content:
    """More of the answer."""

    text: str


@public
@dataclass(slots=True)
class Reasoning:
    """More of the reasoning."""

    text: str


@public
@dataclass(slots=True)
class CallStart:
    """A call has begun. ``id`` is None if the format writes it after the arguments; then `CallEnd` has it."""

    index: int
    name: str
    id: str | None


@public
@dataclass(slots=True)
class CallArguments:
    """More JSON text of the call's arguments."""

    index: int
    text: str


@public
@dataclass(slots=True)
class CallEnd:
    """The call is over. ``complete``: its arguments are a JSON text, and its syntax was closed."""

    index: int
    id: str
    complete: bool


Event: TypeAlias = Content | Reasoning | CallStart | CallArguments | CallEnd


def joined_events(events: Iterable[Event]) -> Iterator[Event]:
    """The events; neighbours of the same kind are joined to one."""
    for _, run in groupby(events, type):
        found = list(run)
        head = found[0]
        if len(found) == 1 or isinstance(head, CallStart | CallEnd):
            yield from found
            continue
        text = "".join([event.text for event in found if not isinstance(event, CallStart | CallEnd)])
        yield CallArguments(head.index, text) if isinstance(head, CallArguments) else type(head)(text)
