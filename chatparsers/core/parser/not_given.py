"""Calls in a turn without tools: they are content, and a note names what was called, as somebody forgot the tools."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from ...errors import DefinitionError
from ...schema.tools import Toolset
from ..definition.features import Definition
from ..definition.idioms import Options
from ..definition.nodes import Body
from ..definition.tree import first, walk
from .alphabet import Alphabet, AlphabetKey
from .compile import program
from .instructions import CALL_BEGIN, NAME
from .machine import Machine


@dataclass(frozen=True, slots=True)
class NotGiven:
    """Looks for calls in a turn whose request has no tools. ``alphabet`` and ``prefix`` are as in the turn's stream."""

    format: Definition
    options: Options
    alphabet: AlphabetKey
    prefix: str

    def calls(self, text: str) -> Iterator[tuple[int, str]]:
        """The calls of ``text``, read as if there were tools, also broken ones and one that the end of the text cuts
        off: the place where each begins after the prefix, and its name. Positions count the machine's characters. A
        call whose name the prefix holds is the prompt's."""
        alphabet = Alphabet(*self.alphabet)
        openers = {spelt for opener in _openers(self.format) for spelt in alphabet.spellings(opener)}
        if not any(opener in text for opener in openers):
            return
        options = self.options._replace(tools=True, mode="auto")
        machine = Machine(program(self.format, options, False, self.alphabet), Toolset())
        items = machine.feed(self.prefix + text) + machine.finish()
        at = begin = -len(self.prefix)
        for op, raw, value in items:
            if op == CALL_BEGIN:
                begin = at
            elif op == NAME and at >= 0:
                yield max(begin, 0), str(value)
            at += len(raw)


@lru_cache(maxsize=1024)
def _openers(format: Definition) -> tuple[str, ...]:
    """Texts of which one is in every turn of the format that has a call."""
    found: set[str] = set()
    for node in walk(format.tree(Options(tools=True))):
        if isinstance(node, Body):
            try:
                found.update(
                    text.strip()
                    for part in (node.calls, node.start)
                    if part is not None
                    for text in first(part)
                )
            except DefinitionError:  # a call may begin with its name
                return ("",)
    return tuple(found)
