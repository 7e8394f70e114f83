"""What a guide asks of its turn (`chatparsers.core.format.Turn`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ..core.parser.start import StreamTurn
from ..core.parser.stream import Stream
from ..core.wished import Thoughts


class Guided(StreamTurn, Protocol):
    """A turn."""

    @property
    def marker_ids(self) -> Mapping[str, int]: ...
    @property
    def call_within(self) -> int | None: ...
    @property
    def thoughts(self) -> Thoughts | None: ...
    @property
    def stop_ids(self) -> tuple[int, ...]: ...
    def stream(self, *, rollback: int = 0) -> Stream: ...
    def _replace(self, **changes: Any) -> Guided: ...
