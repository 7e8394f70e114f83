"""``<function=get_weather>{"city": "Oslo"}</function>``: the arguments as one JSON object, where the format writes them
one by one and none of them begins with a brace."""

from __future__ import annotations

from collections.abc import Callable

from ...core.machine import instructions as m
from ...core.machine.code import Code, Label, Place
from ...core.machine.white import white_space
from ...core.tree import begins
from ...values import ObjectScanner
from ..nodes import EachArg


def may_be_whole(node: EachArg) -> bool:
    """Whether the text shows where an object stands for the arguments: no argument begins with ``{``."""
    return not any(text.startswith("{") for text in begins(node.any) or "{")


def whole_object(code: Code, one_by_one: Callable[[], None], at: Place) -> None:
    whole, over = Label(), Label()
    code.follows(whole, "{")
    one_by_one()
    code.emit(m.JUMP, over)
    code.place(whole)
    code.emit(m.VALUE, m.ARGUMENT, lambda machine: ObjectScanner, True)
    code.emit(m.SPAN, at.region, white_space)
    code.place(over)
