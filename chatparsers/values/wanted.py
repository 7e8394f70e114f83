"""A JSON value that must be of a certain kind."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..core.machine.value import Transcoder


class Wanted(Transcoder):
    """Reads a value with ``value``; one that is not ``wanted`` is an error, which says what was ``expected``."""

    __slots__ = ("expected", "read", "value", "wanted")

    def __init__(self, value: Transcoder, wanted: Callable[[Any], bool], expected: str) -> None:
        super().__init__()
        self.value = value
        self.wanted = wanted
        self.expected = expected
        self.read: list[str] = []

    def scan(self, text: str, start: int, final: bool) -> int:
        end = self.value.scan(text, start, final)
        self.read.append(self.value.out)
        self.error = self.value.error
        if self.value.done and not self.error:
            self.done = self._is_wanted("".join(self.read))
            self.error = "" if self.done else self.expected
        return end

    def _is_wanted(self, text: str) -> bool:
        try:
            return self.wanted(json.loads(text))
        except (ValueError, RecursionError):
            return False
