"""What makes the transcoder of an argument's value when the value begins, and the arguments that a tool declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from ..core.machine.instructions import NAMED
from ..core.machine.value import Transcoder
from ..schema.tools import UNKNOWN, Argument, Toolset
from . import Reader
from .raw import RawReader

if TYPE_CHECKING:
    from ..core.machine.machine import Machine


def declared_arguments(tools: Toolset, name: str) -> Mapping[str, Argument]:
    """The arguments that the tool declares. Its schema is read at the first look."""
    tool = tools.get(name)
    return {} if tool is None else tool.arguments


class ArgumentValue:
    """The operand of a `VALUE` that reads an argument: finds what makes the transcoder of the argument that the machine
    is in, with ``read``.

    ``named``: its name comes before it.
    """

    __slots__ = ("named", "raw", "read")

    def __init__(self, read: Reader, named: bool) -> None:
        self.read = read
        self.named = named
        self.raw = read if isinstance(read, RawReader) else None

    def __call__(self, machine: Machine) -> Callable[[], Transcoder]:
        first = machine.nth != NAMED
        machine.nth = NAMED if self.named else machine.nth + 1
        tool = machine.tools.get(machine.tool)
        name = machine.arg
        argument = UNKNOWN if tool is None else tool.arguments.get(name, tool.other)
        if self.raw is None:
            return partial(self.read, argument, name if self.named else "")
        if not self.raw.stops.openers:
            return self.raw.maker(argument)
        left = argument.beside if first else machine.left
        machine.left = tuple([other for other in left if other != name])
        return self.raw.maker(argument, (name, *machine.left), machine.tools)  # type: ignore[arg-type]
