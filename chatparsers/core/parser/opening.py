"""What a stream begins from: its turn, what was asked of it, and a machine that has read the prefix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, Protocol, TypeAlias

from ...schema.tools import Toolset
from . import instructions as m
from .machine import Machine
from .transcript import Seeded


class Opening(Seeded, Protocol):
    """What a stream asks of its turn when it begins (`chatparsers.core.format.Turn`)."""

    @property
    def tools(self) -> Toolset: ...
    @property
    def tokenizer(self) -> Any: ...
    def _start(self, inline: bool) -> Start: ...
    def _start_ids(
        self, inline: bool, skip_special_tokens: bool, token_text_fallback: bool
    ) -> tuple[Start, Any]: ...


Asked: TypeAlias = "tuple[Opening, bool, bool, bool, str | None, bool]"
"""A turn and what was asked of its stream: inline reasoning, ``skip_special_tokens``, ``token_text_fallback``, a seed
of its own, and ``check``."""


class Start(NamedTuple):
    """How a stream begins. Many streams may begin so: each copies the machine.

    ``machine`` has read the prefix, which is ``origin`` characters long. The first ``read`` of these are decided. The
    rest is the beginning of a call that the prefix leaves open, and ``call`` holds the items read of it. ``not_given``
    finds calls in a turn without tools.
    """

    machine: Machine
    origin: int
    read: int
    call: tuple[m.Item, ...]
    not_given: Callable[[str], Iterable[tuple[int, str]]] | None = None
