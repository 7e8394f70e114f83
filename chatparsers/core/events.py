"""What a stream says as it goes: small records, never taken back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["CallArguments", "CallEnd", "CallStart", "Content", "Event", "Reasoning"]


@dataclass(slots=True)
class Content:
    """More of the answer."""

    text: str


@dataclass(slots=True)
class Reasoning:
    """More of the reasoning."""

    text: str


@dataclass(slots=True)
class CallStart:
    """A call has begun; ``id`` is None where the format writes it after the arguments (`CallEnd` has it then)."""

    index: int
    name: str
    id: str | None


@dataclass(slots=True)
class CallArguments:
    """More JSON text of the call's arguments."""

    index: int
    text: str


@dataclass(slots=True)
class CallEnd:
    """The call is over; ``complete``: its arguments are a JSON text and its syntax was closed."""

    index: int
    id: str
    complete: bool


Event: TypeAlias = Content | Reasoning | CallStart | CallArguments | CallEnd
