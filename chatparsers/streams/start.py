"""How a stream begins: with the machine of its format, which has read what the prompt already wrote."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias

from ..answers.features import Definition
from ..answers.idioms import Options
from ..core.machine.alphabet import Alphabet, AlphabetKey
from ..core.machine.fences import after
from ..core.machine.instructions import BROKEN_END, CALL_BEGIN, CALL_END, NOTE, Item, Line
from ..core.machine.machine import Machine
from ..parser import program
from ..schema.tools import Toolset

PLAIN = Alphabet().key


class StreamTurn(Protocol):
    """What a stream asks of its turn (`chatparsers.answers.format.Turn`)."""

    @property
    def format(self) -> Definition: ...
    @property
    def options(self) -> Options: ...
    @property
    def prefix(self) -> str: ...
    @property
    def response_format(self) -> Mapping[str, Any] | None: ...
    @property
    def tools(self) -> Toolset: ...
    @property
    def tokenizer(self) -> Any: ...
    @property
    def token_config(self) -> Mapping[str, Any] | None: ...
    @property
    def id_seed(self) -> str: ...


Asked: TypeAlias = "tuple[StreamTurn, bool, bool, bool, str | None, bool]"
"""A turn and what was asked of its stream: inline reasoning, ``skip_special_tokens``, ``token_text_fallback``, a seed
of its own, and ``check``."""


class Start(NamedTuple):
    """How a stream begins. Many streams may begin so: each copies the machine.

    ``machine`` has read the prefix, which is ``origin`` characters long. The first ``read`` of these are decided. The
    rest is the beginning of a call that the prefix leaves open, and ``call`` holds the items read of it, after the
    notes on what comes after the prefix. ``before`` holds the items before those, if there is a whole call among them.
    ``line``: where these end.
    """

    machine: Machine
    origin: int
    read: int
    call: tuple[Item, ...]
    before: tuple[Item, ...] = ()
    line: Line = ("", "")


def start(
    format: Definition,
    options: Options,
    prefix: str = "",
    tools: Toolset | None = None,
    inline: bool = False,
    alphabet: AlphabetKey = PLAIN,
) -> Start:
    """How a stream of a request begins.

    ``prefix``: what the prompt already wrote, as ``alphabet`` spells it. ``tools``: those of the request; a call in the
    prefix is read with them. ``inline``: reasoning is content.
    """
    options = as_parsed(options)
    # A long prefix is read again each time, so that what is kept is small.
    if (
        len(prefix) <= KEPT_PREFIX
        and (kept := _kept_start(format, options, prefix, inline, alphabet)) is not None
    ):
        return kept
    machine = Machine(program(format, options, inline, alphabet), Toolset() if tools is None else tools)
    return _read(machine, prefix)


KEPT_PREFIX = 4096
"""The longest prefix, in characters, whose start is kept."""


def as_parsed(options: Options) -> Options:
    """What of the options matters to the parser: whether there is a schema, but not which."""
    return options if options.schema is None else options._replace(schema=True)


@lru_cache(maxsize=1024)
def _kept_start(
    format: Definition, options: Options, prefix: str, inline: bool, alphabet: AlphabetKey
) -> Start | None:
    """As `start`, of a short prefix in which nothing depends on the tools, read once: no stream changes it. None for
    another prefix, such as one with a call."""
    tools = Toolset()
    begin = _read(Machine(program(format, options, inline, alphabet), tools), prefix)
    return None if tools.missed else begin


def _read(machine: Machine, prefix: str) -> Start:
    items = machine.feed(prefix) if prefix else []
    begin = len(items)
    whole = False
    for index, item in enumerate(items):
        if item[0] == CALL_BEGIN:
            begin = index
        elif item[0] in (CALL_END, BROKEN_END):
            begin = len(items)
            whole = whole or item[0] == CALL_END
    read = sum(len(item[1]) for item in items[:begin])
    later = [item for item in items[:begin] if item[0] == NOTE and item[2][1] >= len(prefix)]
    call, before = (*later, *items[begin:]), tuple(items[:begin]) if whole else ()
    line = after(None, items[:begin])
    return Start(machine, len(prefix), read, call, before, line)
