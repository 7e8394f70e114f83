"""The places of requests among those that run."""

from __future__ import annotations

from ..serving import ApiError
from .keys import ANYBODY
from .metrics import Metrics
from .settings import Settings


class Places:
    """The places of one request among those that run, of which there are `Settings.concurrency`, and its key's own.
    ``caller``: who sent it, once that is known."""

    def __init__(self, metrics: Metrics, settings: Settings) -> None:
        self._metrics = metrics
        self._most = settings.concurrency
        self._taken = 0
        self.caller = ANYBODY

    def take(self, number: int = 1) -> None:
        """Takes more places. Raises `ApiError` if there are not so many."""
        if self._metrics.active + number > self._most:
            raise ApiError(f"{self._most} requests are running: try again later", status=429)
        self.caller.take(number)
        self._metrics.active += number
        self._taken += number

    def leave(self) -> None:
        """Gives all of them back."""
        self.caller.take(-self._taken)
        self._metrics.active -= self._taken
        self._taken = 0
