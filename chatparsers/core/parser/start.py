"""How a stream begins: with the machine of its format, which has read what the prompt already wrote."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from ..definition.features import Definition
from ..definition.idioms import Options
from ..schema.tools import Toolset
from .alphabet import Alphabet
from .compile import program
from .instructions import BROKEN_END, CALL_BEGIN, CALL_END, Item, Program
from .machine import Machine
from .not_given import NotGiven
from .stream import Start

__all__ = ["start"]

_PLAIN = Alphabet()


def start(
    format: Definition,
    tools: Toolset,
    options: Options,
    prefix: str,
    *,
    inline: bool = False,
    alphabet: Alphabet = _PLAIN,
    ids: Any = None,
    shaped: bool = False,
) -> Start:
    """How a stream of a request begins.

    ``prefix``: what the prompt already wrote, as ``alphabet`` spells it. ``inline``: reasoning is content. ``ids``: the
    feed of ids, None for text. ``shaped``: the request says how the answer is written, so no call is looked for in it.
    """
    compiled = program(format, options, inline, alphabet.key)
    # A long prefix is read again each time, so that the kept machines are small.
    find = _started if len(prefix) <= _KEPT else _started.__wrapped__
    started, read, call = find(compiled, prefix)
    machine = started.copy()
    machine.tools = tools
    not_given = None
    if not tools and not shaped and format.features.tools:
        not_given = NotGiven(format, options, alphabet.key, prefix).calls
    return Start(machine, len(prefix), read, call, ids, not_given)


_KEPT = 4096
"""The longest prefix, in characters, whose machine is kept."""


@lru_cache(maxsize=1024)
def _started(compiled: Program, prefix: str) -> tuple[Machine, int, tuple[Item, ...]]:
    """A machine that has read ``prefix``, which the prompt wrote; how many characters of the prefix are decided, which
    leaves out a call that the prefix leaves open; and the items read of that call."""
    machine = Machine(compiled, Toolset())
    if prefix:
        machine.feed(prefix)
    items = machine.take()
    begin = len(items)
    for index, item in enumerate(items):
        if item[0] == CALL_BEGIN:
            begin = index
        elif item[0] in (CALL_END, BROKEN_END):
            begin = len(items)
    return machine, sum(len(item[1]) for item in items[:begin]), tuple(items[begin:])
