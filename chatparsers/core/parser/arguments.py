"""Makes the transcoder of an argument's value when the value begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..schema.tools import UNKNOWN
from ..values import Reader
from ..values.base import Transcoder
from .instructions import NAMED

if TYPE_CHECKING:
    from .machine import Machine

__all__ = ["ArgumentValue"]


class ArgumentValue:
    """The operand of a `VALUE` that reads an argument: what ``read`` makes for the argument that the machine is in.

    ``named``: its name stands before it.
    """

    __slots__ = ("named", "read")

    def __init__(self, read: Reader, named: bool) -> None:
        self.read = read
        self.named = named

    def __call__(self, machine: Machine) -> Transcoder:
        machine.nth = NAMED if self.named else machine.nth + 1
        tool = machine.tools.get(machine.tool)
        name = machine.arg
        return self.read(UNKNOWN if tool is None else tool.arguments.get(name, tool.other), name)
