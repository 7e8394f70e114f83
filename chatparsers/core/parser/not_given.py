"""Calls in a turn without tools: they are content, and a note names what was called, as somebody forgot the tools."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from ...schema.tools import Toolset
from ..definition.features import Definition
from ..definition.idioms import Options
from ..definition.nodes import Body
from ..definition.tree import begins, once
from .alphabet import Alphabet, AlphabetKey
from .compile import program
from .instructions import CALL_BEGIN, NAME
from .machine import Machine


def calls_not_given(
    format: Definition, options: Options, alphabet: AlphabetKey, prefix: str, text: str
) -> Iterator[tuple[int, str]]:
    """The calls of ``text``, of a turn whose request has no tools, read as if there were, also broken ones and one that
    the end of the text cuts off: the place where each begins after the prefix, and its name.

    ``alphabet`` and ``prefix`` are as in the turn's stream. Positions count the machine's characters. A call whose name
    the prefix holds is the prompt's."""
    spellings = Alphabet(*alphabet).spellings
    if not any(written in text for opener in _openers(format) for written in spellings(opener)):
        return
    machine = Machine(program(format, options._replace(tools=True, mode="auto"), False, alphabet), Toolset())
    items = machine.feed(prefix + text) + machine.finish()
    at = begin = -len(prefix)
    for op, raw, value in items:
        if op == CALL_BEGIN:
            begin = at
        elif op == NAME and at >= 0:
            yield max(begin, 0), str(value)
        at += len(raw)


@lru_cache(maxsize=1024)
def _openers(format: Definition) -> tuple[str, ...]:
    """Texts of which one is in every turn of the format that has a call; "" if a call may begin with its name."""
    bodies = (node for node in once(format.tree(Options(tools=True))) if isinstance(node, Body))
    parts = (part for body in bodies for part in (body.calls, body.start) if part is not None)
    return tuple({text.strip() for part in parts for text in begins(part) or ("",)})
