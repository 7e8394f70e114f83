"""What a guide asks of its turn (`chatparsers.answers.format.Turn`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ..schema.wished import Thoughts
from ..streams.start import StreamTurn
from ..streams.stream import Stream


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
