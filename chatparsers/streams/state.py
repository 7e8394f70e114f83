"""Where a stream is: what the model is writing now, decided as soon as the text says it.

A region is that of text which was read. A state changes with the piece that closes a part, not with the text after it:
after ``</think>`` the thought is over, though what comes next is open.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from ..core.machine import instructions as m
from ..core.machine.instructions import Item
from ..core.machine.machine import Machine
from ..public import public

StateKind: TypeAlias = Literal["reasoning", "content", "call", "between", "ended"]

_NEXT = "\ue000"
"""A character that begins nothing: where it goes is where the machine is."""
_RUNNING: dict[int, StateKind] = {m.CONTENT: "content", m.REASONING: "reasoning"}
_NAMED = (m.NAME, m.ARGS_BEGIN, m.ARG_NAME, m.ARGUMENT, m.CALL_BEGIN)
"""The items of a held call by which its name is known, and its beginning."""
_LONG = 256
"""From how many held characters on they are not read in another way to tell what they are."""


@public
class StreamState(NamedTuple):
    """What the model is writing.

    ``kind``: ``reasoning``, ``content``, a ``call`` whose name is known, ``between`` them (markers, headers, white
    space), or ``ended``. In a call, ``call`` is its index, ``tool`` its name, and ``path`` leads to the value of its
    arguments that is being written: keys, and indexes of lists.
    """

    kind: StateKind
    call: int | None = None
    tool: str = ""
    path: tuple[str | int, ...] = ()


def state_of(machine: Machine, content: bool) -> tuple[StateKind, str]:
    """What the machine reads, and the tool of the call that it holds. ``content``: what came before the text that it
    holds is content."""
    ins = machine.program.code[machine.ip]
    if not machine.live and ins[0] in (m.TEXT, m.VALUE) and ins[1] in _RUNNING:
        return _RUNNING[ins[1]], ""
    named = (item[0] != m.CALL_BEGIN for item in reversed(machine.trail[-128:]) if item[0] in _NAMED)
    if machine.calling and next(named, len(machine.trail) > 128 and machine.tool):  # the last mostly tell
        return "call", machine.tool
    beginning, long = _beginning(machine)
    marked = any(kind == m.MARKUP and raw.strip() for kind, raw, _ in beginning)
    if long:
        # In a thought, what is held becomes a call or stays a part of the thought.
        after = m.MARKUP if marked and machine.text_region != m.REASONING else machine.text_region
    else:
        probe = machine.copy()
        items = [*probe.feed(_NEXT), *probe.trail]
        after = next((item[0] for item in reversed(items) if item[1].endswith(_NEXT)), m.MARKUP)
    if after == m.REASONING:
        return "reasoning", ""
    prose = content and after == m.CONTENT and not marked and (beginning or machine.text)
    return ("content" if prose else "between"), ""


def _beginning(machine: Machine) -> tuple[list[Item], bool]:
    """The first items that the machine holds, of up to so many characters, and whether it holds more."""
    length = len(machine.text)
    for place, item in enumerate(machine.trail):
        length += len(item[1])
        if length > _LONG:
            return machine.trail[:place], True
    return machine.trail, length > _LONG
