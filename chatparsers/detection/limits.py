"""What an analysis did not prove, and which tools need it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..schema.tools import Toolset

TYPES = ("array", "boolean", "null", "number", "object")
"""The parts that are JSON types of arguments."""
_ALIKE = {"integer": "number"}


@dataclass(frozen=True, slots=True)
class Limit:
    """A part of what the template writes that the format is not proved to read, or its grammar to write.

    ``part`` names it: ``array``, ``boolean``, ``null``, ``number``, ``object`` (arguments of this JSON type),
    ``special characters`` (in strings), ``several calls``, ``text beside calls``, ``calls after reasoning``,
    ``white space`` (around content or reasoning: it stays there), ``grammar``, ``told form`` (the prompt tells another
    form of calls), ``past calls`` (the template writes them in another form than the prompt tells), ``reasoning`` (it
    is content), ``turn`` (the template writes one that the format does not read), ``family`` (a known format's markers
    are in the prompt, and an analysis is read in its place), ``response template`` (the model's files have one that is
    not used).
    ``why``: what was asked, and what was read instead.
    """

    part: str
    why: str

    def __str__(self) -> str:
        return f"{self.part}: {self.why}"


def needed(limits: Iterable[Limit], tools: Toolset) -> list[Limit]:
    """The limits that calls of these tools may meet. A JSON type is met if an argument may have it."""
    known = filter(None, map(tools.get, tools.names()))
    types = {
        _ALIKE.get(type, type) for tool in known for arg in tool.arguments.values() for type in arg.types
    }
    return [limit for limit in limits if limit.part not in TYPES or limit.part in types]
