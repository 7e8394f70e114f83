"""What a guide asks of its turn (`chatparsers.core.format.Turn`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ..core.definition.features import Definition
from ..core.definition.idioms import Options
from ..core.parser.stream import Stream


class Guided(Protocol):
    """A turn."""

    @property
    def format(self) -> Definition: ...
    @property
    def options(self) -> Options: ...
    @property
    def tokenizer(self) -> Any: ...
    @property
    def prefix(self) -> str: ...
    @property
    def marker_ids(self) -> Mapping[str, int]: ...
    @property
    def call_within(self) -> int | None: ...
    @property
    def stop_ids(self) -> tuple[int, ...]: ...
    def stream(self, *, rollback: int = 0) -> Stream: ...
    def _replace(self, **changes: Any) -> Guided: ...
